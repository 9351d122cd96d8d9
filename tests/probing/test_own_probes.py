"""A user's own estimator, and protocols of installed packages."""

from __future__ import annotations

import importlib
import re
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from support.command import check_mistake, geneb
from support.own_estimators import SHARED
from support.small_stores import random_task, write_store

import geneb as package
from geneb.errors import InputError, WorkError
from geneb.probing import own
from geneb.probing.backends import SklearnBackend
from geneb.probing.factories import load_factory
from geneb.probing.fit import probe_task
from geneb.probing.own import GROUP, own_probe, registered
from geneb.probing.probes import check_backend
from geneb.probing.protocol import PROTOCOLS, choose_protocol, own_protocol
from geneb.probing.run import ProbeError
from geneb.results import RunInfo

HERE = "support.own_estimators"


@pytest.fixture
def task():
    return random_task(1, classes=3, rows=60)


def outcomes(task, target, regimes=("full", "10shot")):
    protocol = choose_protocol(own_protocol(target), regimes)
    return probe_task(task.for_probe(), protocol, SklearnBackend())


def fit(task, target):
    return own_probe(target).fit(task.train, task.train_labels, 13, SklearnBackend())


class TestWhatIsFitted:
    def test_it_is_the_users_estimator(self, task):
        """With the published regimes and seeds; where no seed matters, one fit stands for all."""
        done = outcomes(task, f"{HERE}:nearest")
        assert [one.fit.seed for one in done] == [None, 13, 17, 42, 123, 997]
        plain = KNeighborsClassifier(n_neighbors=1).fit(task.train, task.train_labels)
        assert done[0].predicted.tolist() == plain.predict(task.test).tolist()

    def test_seeds_are_run_where_the_factory_takes_one(self, task):
        """They matter: scores differ. Nothing differs from one run to the next."""
        done = outcomes(task, f"{HERE}:stochastic", ["full"])
        assert [one.fit.seed for one in done] == [13, 17, 42, 123, 997]
        assert len({one.predicted.tobytes() for one in done}) > 1
        again = outcomes(task, f"{HERE}:stochastic", ["full"])
        assert [one.predicted.tolist() for one in again] == [one.predicted.tolist() for one in done]

    def test_a_class_is_a_factory(self, task):
        """scikit-learn's own can be named as they are."""
        assert own_probe("sklearn.svm:LinearSVC").seeded
        assert not own_probe("sklearn.naive_bayes:GaussianNB").seeded
        assert fit(task, "sklearn.naive_bayes:GaussianNB").predict(task.test).shape == (60,)

    def test_the_rows_of_other_fits_stay_as_they_are(self, task):
        """An estimator may spoil its input; it gets a copy."""
        before = task.train.copy()
        first = outcomes(task, f"{HERE}:in_place")
        np.testing.assert_array_equal(task.train, before)
        second = outcomes(task, f"{HERE}:in_place")
        assert [one.predicted.tolist() for one in first] == [
            one.predicted.tolist() for one in second
        ]

    def test_one_object_for_all_fits_is_copied(self, task):
        """Otherwise all regimes would be predicted by the last fit."""
        shared, new = (outcomes(task, f"{HERE}:{name}") for name in ("shared", "nearest"))
        assert [one.predicted.tolist() for one in shared] == [one.predicted.tolist() for one in new]
        assert not hasattr(SHARED, "classes_")

    def test_labels_are_numbered_for_it(self, task):
        """From 0 to K - 1, as some libraries want them, also where a class is missing."""
        task.train_labels[task.train_labels == 1] = 7
        assert set(fit(task, "sklearn.naive_bayes:GaussianNB").predict(task.test)) <= {0, 2, 7}

    def test_iterations_and_convergence_are_recorded(self, task):
        """Of a pipeline's last step; that it stopped early is no warning but a fact."""
        told = [(one.fit.n_iter, one.fit.converged) for one in outcomes(task, f"{HERE}:stochastic")]
        assert set(told) == {(3, False)}
        none = outcomes(task, f"{HERE}:nearest")[0].fit
        assert (none.n_iter, none.converged, none.objective) == (None, None, None)

    def test_its_other_warnings_are_the_users(self, task):
        """They are passed on."""
        with pytest.warns(RuntimeWarning, match="something of the user's"):
            fit(task, f"{HERE}:warns")

    def test_a_probe_may_be_made_instead(self, task):
        """It is fitted as the named one is, and says where it comes from."""
        probe = own_probe(f"{HERE}:probe")
        named = PROTOCOLS["geneb-centroid-1"].probe
        made = [
            one.fit(task.train, task.train_labels, None, SklearnBackend()) for one in (probe, named)
        ]
        assert made[0].predict(task.test).tolist() == made[1].predict(task.test).tolist()
        assert probe.describe().startswith(f"{named.describe()} ({HERE}:probe, sha256 ")
        assert (probe.seeded, probe.backends) == (named.seeded, named.backends)


class TestWhatIsSaidOfIt:
    def test_the_protocol_is_named_after_it(self):
        """Its id can be no other protocol's: no other has a colon."""
        assert own_protocol("sklearn.svm:LinearSVC").id == "own:sklearn.svm:LinearSVC"
        assert not any(":" in name for name in PROTOCOLS)
        other = choose_protocol(own_protocol("sklearn.svm:LinearSVC"), seeds=[1])
        assert other.id == "own:sklearn.svm:LinearSVC+seeds-1"

    def test_a_description_has_parameters_and_source(self):
        """In one line, without addresses in memory."""
        text = own_probe(f"{HERE}:stochastic").describe()
        assert "SGDClassifier(max_iter=3, random_state=seed)" in text
        assert f"of {HERE}:stochastic, sha256 " in text
        odd = own_probe(f"{HERE}:with_address").describe()
        assert "print_nothing" in odd
        assert "0x" not in odd

    def test_other_code_and_other_parameters_are_told_apart(self, tmp_path, monkeypatch):
        """By the digest of the source; a long list of parameters by its own."""
        code = "from sklearn.dummy import DummyClassifier as make\nclass K(make): pass\n"
        texts = []
        monkeypatch.syspath_prepend(tmp_path)
        for more in ("", "# changed\n"):
            (tmp_path / "own_changing.py").write_text(code + more)
            texts.append(own_probe("own_changing:K").describe())
            load_factory.cache_clear()
        assert texts[0] != texts[1]
        long = [
            own._describe(KNeighborsClassifier(metric_params={"x" * 400: leaf}))
            for leaf in (KNeighborsClassifier(leaf_size=7), KNeighborsClassifier(leaf_size=8))
        ]
        assert long[0] != long[1]
        assert max(map(len, long)) < 400

    def test_versions_of_other_libraries_are_told(self, tmp_path, monkeypatch):
        """Also of those that a part of a pipeline comes from."""
        (tmp_path / "own_library.py").write_text(
            "from sklearn.pipeline import make_pipeline\n"
            "from sklearn.dummy import DummyClassifier\n"
            "__version__ = '4.5'\n"
            "class Own(DummyClassifier): pass\n"
            "def make(): return make_pipeline(Own())\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        assert own_probe("own_library:make").describe().endswith(", own_library 4.5")


class TestWhatGoesWrong:
    @pytest.mark.parametrize(
        ("target", "words"),
        [
            ("nonsense", "does not name what makes an estimator"),
            ("a b:c", "does not name"),
            (":c", "does not name"),
            ("no_such_module_at_all:x", "there is no module no_such_module_at_all"),
            (f"{HERE}:nothing", "has no nothing"),
            (f"{HERE}:NOT_CALLABLE", "is not a factory"),
            (f"{HERE}:no_estimator", "makes no classifier"),
            (f"{HERE}:needs", "could not make an estimator"),
            (f"{HERE}:breaks", "could not make an estimator"),
        ],
    )
    def test_what_cannot_be_used_is_refused(self, target, words):
        """In words, before anything is fitted."""
        with pytest.raises(InputError, match=words):
            own_probe(target)

    @pytest.mark.parametrize(
        ("code", "words"),
        [
            ("1 / 0", r"ZeroDivisionError: division by zero \(line 1 of own_broken.py\)"),
            ("x = (", r"SyntaxError: .*line 1 of own_broken.py"),
            ("raise SystemExit(3)", "SystemExit: 3"),
            ("import no_such_library", "there is no module no_such_library"),
        ],
    )
    def test_a_module_that_cannot_be_imported(self, tmp_path, monkeypatch, code, words):
        """What it raised, and on which line."""
        (tmp_path / "own_broken.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(InputError) as caught:
            own_probe("own_broken:make")
        assert re.search(words, str(caught.value)), str(caught.value)

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("raises", "could not be fitted to 60 rows of 3 classes"),
            ("exits", "could not be fitted"),
            ("predict_raises", "could not predict"),
            ("regression", "predicted what is not a label"),
            ("nan", "not a label"),
            ("short", "not a label"),
            ("other", "not a label"),
        ],
    )
    def test_an_estimator_that_fails_fails_its_task(self, task, name, words):
        """Whatever it raises or returns: never a traceback, never a silent NaN."""
        with pytest.raises(WorkError, match=words):
            fit(task, f"{HERE}:{name}").predict(task.test)

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("BrokenInFit", "could not be fitted to 60 rows"),
            ("BrokenInPredict", "could not predict"),
            ("BrokenProbe", "how near the optimum"),
        ],
    )
    def test_a_probe_that_fails_fails_its_task(self, task, name, words):
        """A stranger's probe is trusted no more than an estimator."""
        with pytest.raises(WorkError, match=words):
            outcomes(task, f"{HERE}:{name}", ["full"])

    def test_the_other_tasks_go_on(self, tmp_path):
        """Three neighbours cannot be had of two rows."""
        store = write_store(
            tmp_path / "s.zarr", {"large": random_task(), "small": random_task(rows=4)}
        )
        with pytest.raises(ProbeError, match="could not predict") as caught:
            package.probe(
                store, protocol=own_protocol("sklearn.neighbors:KNeighborsClassifier"),
                regimes=["full"],
            )  # fmt: skip
        assert set(caught.value.results.task) == {"large"}

    def test_no_other_backend_fits_it(self):
        """Its numbers would bear the name of one that had no part in them."""
        with pytest.raises(InputError, match="cannot fit this probe"):
            check_backend(own_probe(f"{HERE}:nearest"), SimpleNamespace(name="torch:cpu"))


class TestTheCommand:
    @pytest.fixture
    def store(self, tmp_path):
        return write_store(tmp_path / "s.zarr", {"a": random_task(2)})

    def test_a_file_in_the_working_directory(self, tmp_path, store):
        """It is imported by name, what it prints goes to stderr, and processes give the same."""
        (tmp_path / "mine.py").write_text(
            textwrap.dedent("""
                from sklearn.tree import DecisionTreeClassifier
                print("imported")
                def tree(random_state):
                    print("made")
                    return DecisionTreeClassifier(max_depth=2, random_state=random_state)
            """)
        )
        found = {}
        for jobs in (1, 2):
            done = geneb(
                "probe", store, "--out", f"out{jobs}", "--probe", "mine:tree", "--jobs", jobs,
                "--json", cwd=tmp_path,
            )  # fmt: skip
            assert done.code == 0, done.err
            [model] = done.json["models"]
            assert (model["protocol"], model["fits"]) == ("own:mine:tree", 15)
            assert "imported" in done.err
            found[jobs] = model["results"]
        assert found[1] == found[2]
        info = RunInfo.read(tmp_path / "out1/small-model/run.json")
        assert info.probe.startswith("DecisionTreeClassifier(max_depth=2, random_state=seed) of")

    @pytest.mark.parametrize(
        ("args", "words"),
        [
            (["--probe", "no_such_module_at_all:x"], ["there is no module", "what to do"]),
            (["--probe", "sklearn.svm"], ["package.module:factory"]),
            (["--probe", "a:b", "--protocol", "geneb-lr-1"], ["exclude each other"]),
            (["--protocol", "own:os:getcwd"], ["no such protocol", "geneb-knn-1"]),
        ],
    )
    def test_mistakes_start_nothing(self, tmp_path, store, args, words):
        """Exit code 2 and one message; a protocol's id runs nobody's code."""
        check_mistake(geneb("probe", store, "--out", tmp_path / "out", *args), *words)
        assert not (tmp_path / "out").exists()

    def test_the_protocols_are_listed(self):
        """Each in one line, without a store."""
        done = geneb("probe", "--protocols")
        assert done.code == 0, done.err
        lines = [line.split(None, 1) for line in done.out.splitlines()[1:]]
        assert {name: text.strip() for name, text in lines} == {
            name: protocol.probe.describe() for name, protocol in PROTOCOLS.items()
        }


class TestInstalledPackages:
    @pytest.fixture
    def install(self, tmp_path, monkeypatch):
        """Put a package with entry points on the path, and a module that tells if it is run."""
        monkeypatch.syspath_prepend(tmp_path)

        def write(entries, name="geneb_more"):
            folder = tmp_path / f"{name}-1.0.dist-info"
            folder.mkdir()
            (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            (folder / "entry_points.txt").write_text(f"[{GROUP}]\n{entries}\n")
            importlib.invalidate_caches()

        (tmp_path / "more_probes.py").write_text(
            "from sklearn.naive_bayes import GaussianNB\n"
            "def bayes():\n    return GaussianNB(var_smoothing=1e-3)\n"
        )
        yield write
        sys.modules.pop("more_probes", None)
        load_factory.cache_clear()

    def test_one_is_loaded_when_it_is_named(self, install, tmp_path):
        """And not before: its protocol has the name that the package gave it."""
        install("bayes-1 = more_probes:bayes")
        assert list(registered()) == ["bayes-1"]
        with pytest.raises(InputError, match="geneb-mlp-1, bayes-1"):
            choose_protocol("bayes-2")
        listed = geneb("probe", "--protocols", env={"PYTHONPATH": str(tmp_path)}, fresh=True)
        assert "more_probes:bayes, of an installed package" in listed.out
        assert "more_probes" not in sys.modules
        protocol = choose_protocol("bayes-1")
        assert protocol.id == "bayes-1"
        assert protocol.probe.describe().startswith("GaussianNB(var_smoothing=0.001) of more_p")

    def test_none_can_take_a_built_in_name(self, install):
        """Not that of a protocol, nor one like it."""
        install("geneb-lr-1 = more_probes:bayes\ngeneb-knn-9 = more_probes:bayes")
        assert choose_protocol("geneb-lr-1") is PROTOCOLS["geneb-lr-1"]
        with pytest.raises(InputError, match="cannot give its protocol this name"):
            choose_protocol("geneb-knn-9")
        assert "more_probes" not in sys.modules

    @pytest.mark.parametrize("name", ["a+seeds-1", "own:x", "a b"])
    def test_names_that_would_mislead(self, install, name):
        """Ids with a meaning, and what is no name."""
        install(f"{name} = more_probes:bayes")
        with pytest.raises(InputError, match="name"):
            choose_protocol(name)
        assert "more_probes" not in sys.modules

    def test_two_of_one_name_are_refused(self, install):
        """Which is meant cannot be told."""
        install("bayes-1 = more_probes:bayes")
        install("bayes-1 = more_probes:other", name="geneb_others")
        with pytest.raises(InputError, match="several packages"):
            choose_protocol("bayes-1")
