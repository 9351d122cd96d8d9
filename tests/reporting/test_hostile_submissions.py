"""What a stranger might hand in to be taken for something else, or to do harm."""

from __future__ import annotations

import json
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.results_folders import run_info, write_results
from support.submissions import harmless, submission, write_submission

from geneb.base.canonical import digest
from geneb.benchmark.spec import load_spec
from geneb.errors import InputError
from geneb.reporting.faults import in_brief
from geneb.reporting.pack import Statement, pack, write_packed
from geneb.reporting.submission import shipped_submissions
from geneb.reporting.validate import check_document, validate_files

SPEC = load_spec()
TASK = SPEC.task_ids[3]
SHIPPED = sorted(shipped_submissions())
ALL_TASKS = {regime: set(SPEC.task_ids) for regime in SPEC.regimes}
DOCUMENT = {"schema_version", "model_id", "harness_version", "meta", "results"}


def validate_with(tmp_path, model_id="some-model", **meta):
    """The paths of all faults of a submission that says this of the model."""
    document = submission(model_id)
    document["meta"] |= meta
    [report] = validate_files([write_submission(tmp_path, document)])
    return [fault.where for fault in report.faults]


class TestNames:
    @pytest.mark.parametrize(
        "text",
        [
            "\u3164", "a\u3164", "\u2800", "\u115fa", "a\u034fb", "a\ufe0f", "a\u180b", "\uffa0",
            "A\u00a0lab", "A\u2003lab", "a\u3000b", "a\U000e0100", "a" + "\u0301" * 3, "\u0301a",
            "A \u0301lab",
        ],
    )  # fmt: skip
    def test_what_is_drawn_as_nothing_or_over_other_lines(self, tmp_path, text):
        """Two models could look the same, or one cover another."""
        assert validate_with(tmp_path, display=text) == ["$.meta.display"]
        assert validate_with(tmp_path, submitted_by=text) == ["$.meta.submitted_by"]

    @pytest.mark.parametrize(
        "text", ["Évo", "E\u0301vo", "Việt Nam", "Vie\u0302\u0323t", "ДНК 2", "遺伝子", "a-b (c) µ"]
    )
    def test_names_in_any_language(self, tmp_path, text):
        """However their accents are written."""
        assert validate_with(tmp_path, display=text) == []

    @pytest.mark.parametrize("model_id", ["grover", "Grover", "dnabert-s", "SPACE"])
    def test_an_id_that_is_listed_in_other_letters(self, tmp_path, model_id):
        """Also where the listed model's file is not among those validated."""
        assert "$.model_id" in validate_with(tmp_path, model_id, display="Mine")

    @pytest.mark.parametrize("display", ["GROVER", "grover", "\uff27ROVER"])
    def test_the_name_of_a_listed_model(self, tmp_path, display):
        """It belongs to one id."""
        assert validate_with(tmp_path, display=display) == ["$.meta.display"]

    @pytest.mark.parametrize("name", ["GENEB authors", "geneb AUTHORS"])
    def test_the_name_of_those_who_make_official_scores(self, tmp_path, name):
        """Without saying official."""
        assert validate_with(tmp_path, submitted_by=name) == ["$.meta.submitted_by"]

    @pytest.mark.parametrize("model_id", ["x.PARTIAL", "x.Evidence", "x.JSON"])
    def test_endings_in_capitals(self, tmp_path, model_id):
        """Some file systems do not tell them apart."""
        assert validate_with(tmp_path, model_id) == ["$.model_id"]


class TestFilesOfAnotherKind:
    def test_a_probe_s_summary(self, tmp_path):
        """What to do about it, and nothing else."""
        path = tmp_path / "results.json"
        path.write_text('{"model_id": "x", "protocol": "geneb-lr-1", "results": {"full": {}}}')
        [report] = validate_files([path])

        assert ["geneb submission pack" in (one.fix or "") for one in report.faults] == [True]

    def test_a_folder(self, tmp_path):
        """Its files are to be named."""
        [report] = validate_files([tmp_path])

        assert (report.read, report.faults[0].problem) == (False, "this is a folder")
        assert f"{tmp_path}/*.json" in report.faults[0].fix

    def test_one_file_named_in_two_ways(self, tmp_path, monkeypatch):
        """It has no twin."""
        path = write_submission(tmp_path, submission("some-model"))
        monkeypatch.chdir(tmp_path)

        assert [one.valid for one in validate_files([path, path.relative_to(tmp_path)])] == [True]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A complete results folder; not to be changed."""
    return write_results(tmp_path_factory.mktemp("complete"), run_info())


class TestEvidence:
    @pytest.fixture
    def check(self, results, tmp_path):
        """Change the evidence of a packed submission; return the report on it."""
        write_packed(pack([results], Statement(display="x", params=1)), tmp_path)
        path = tmp_path / "some-model.evidence.json"

        def run(change):
            evidence = json.loads(path.read_text())
            change(evidence)
            path.write_text(json.dumps(evidence))
            [report] = validate_files([path])
            return report

        return run

    @pytest.mark.parametrize(
        ("change", "where"),
        [
            (lambda e: e.update(protocol="geneb-lr-1-converged"), "$.protocol"),
            (lambda e: e.update(seeds=[1, 2, 3, 4, 5]), "$.seeds"),
            (lambda e: e.update(model_id="other"), "$.model_id"),
            (lambda e: e["store"].update(fingerprint={"dim": 1}), "$.store.fingerprint"),
            (lambda e: e["environment"].update(x=float("nan")), "$.environment.x"),
            (lambda e: e["blas"].append({"x": [1e400]}), "$.blas[1].x"),
            (lambda e: e["store"].update(fingerprint={"x": -1e400}), "$.store.fingerprint.x"),
            (lambda e: e["tasks"].update(own=e["tasks"][TASK]), "$.tasks.own"),
            (
                lambda e: e["tasks"][TASK]["regimes"]["full"].update(converged=2),
                f"$.tasks.{TASK}.regimes.full",
            ),
            (
                lambda e: e["tasks"][TASK]["regimes"]["10shot"].update(fits=4),
                f"$.tasks.{TASK}.regimes.10shot",
            ),
            (
                lambda e: e["tasks"][TASK]["regimes"].update(
                    {"2shot": e["tasks"][TASK]["regimes"]["full"]}
                ),
                f"$.tasks.{TASK}.regimes.2shot",
            ),
        ],
    )
    def test_what_cannot_be_true(self, check, change, where):
        """One fault, at the place of the lie."""
        assert [fault.where for fault in check(change).faults] == [where]

    def test_a_fingerprint_that_fits(self, check):
        """Whatever stands in it."""

        def change(evidence):
            evidence["store"]["fingerprint"] = {"dim": 3}
            evidence["store"]["fingerprint_id"] = digest({"dim": 3})

        assert check(change).valid

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda e: e["tasks"].pop(TASK), "without evidence"),
            (lambda e: e["tasks"][TASK]["regimes"]["full"].update(n_test=7), "number of rows"),
        ],
    )
    def test_what_is_doubtful(self, check, change, words):
        """A warning."""
        report = check(change)

        assert report.valid
        assert [words in warning.problem for warning in report.warnings] == [True]

    def test_a_link(self, tmp_path, results):
        """It is not followed."""
        [packed] = pack([results], Statement(display="x", params=1))
        write_packed([packed], tmp_path)
        path = tmp_path / "some-model.evidence.json"
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
        [report] = validate_files([path])

        assert (report.read, report.faults[0].found) == (False, "a symbolic link")


class TestEditedResults:
    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            (",1e-05,", ",-1.0,", "edited by hand"),
            (",1000,", ",-1000,", "edited by hand"),
            (f"{3:064x}", "zz", "edited by hand"),
            ("a" * 64, "b" * 64, "do not agree"),
            ("sklearn", "cuml", "do not agree"),
            ("geneb-lr-1", "other", "do not agree"),
            (",full,", ",\x1b[2J,", "full: 1 task is missing"),
            (",1e-05,", ",nan,", "not a finite number"),
            (",1000,", f",{'9' * 5000},", "not a task's results"),
            (",1000,", ",\u0661\u0660\u0660\u0660,", "edited by hand"),
            (",1000,", ",1_000,", "edited by hand"),
            ("\n", "\r\n", "edited by hand"),
            ("seed", "Seed", "columns"),
        ],
    )
    def test_a_table(self, results, tmp_path, old, new, words):
        """One clear message, whichever cell was changed."""
        folder = shutil.copytree(results, tmp_path / "some-model")
        path = folder / "tasks" / f"{TASK}.csv"
        path.write_bytes(path.read_text().replace(old, new).encode())
        with pytest.raises(InputError) as caught:
            pack([folder], Statement(display="x", params=1))

        assert words in str(caught.value)

    def test_a_row_that_stands_twice(self, results, tmp_path):
        """Two fits of the full regime are not what was measured."""
        folder = shutil.copytree(results, tmp_path / "some-model")
        path = folder / "tasks" / f"{TASK}.csv"
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join([*lines[:2], *lines[1:]]))
        with pytest.raises(InputError, match="full: 1 task is missing"):
            pack([folder], Statement(display="x", params=1))

    @pytest.mark.parametrize("change", [{"versions": {"numpy": "9"}}, {"backend": "cuml"}])
    def test_what_they_were_made_with(self, results, tmp_path, change):
        """Then no table is of that run."""
        folder = shutil.copytree(results, tmp_path / "some-model")
        path = folder / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
        with pytest.raises(InputError, match="of another run than the tables"):
            pack([folder], Statement(display="x", params=1))


ODD = [None, True, "0.5", "", -0.0, 1e400, float("nan"), 10**400, [], {}, "\u0661", "\ud800", 2]


@st.composite
def mutated(draw):
    """The bytes of one of the published files after some changes."""
    document = json.loads(shipped_submissions()[draw(st.sampled_from(SHIPPED))])
    for _ in range(draw(st.integers(1, 4))):
        place = document
        while inner := [value for value in place.values() if isinstance(value, dict) and value]:
            if not draw(st.booleans()):
                break
            place = draw(st.sampled_from(inner))
        key = draw(st.sampled_from(list(place)))
        match draw(st.sampled_from(["drop", "rename", "replace"])):
            case "drop" if len(place) > 1:
                del place[key]
            case "rename":
                place[draw(st.text(max_size=6))] = place.pop(key)
            case _:
                place[key] = draw(st.sampled_from(ODD))
    return Bytes(json.dumps(document).encode())


class Bytes(bytes):
    """Shown by their length: the test's report stays readable."""

    def __repr__(self):
        return f"{len(self)} bytes"


def scores_in_range(document):
    """By hand: all scores of all tasks are there and are numbers that they can be."""
    results = document["results"]
    if {regime: set(tasks) for regime, tasks in results.items()} != ALL_TASKS:
        return False
    scores = [one for tasks in results.values() for one in tasks.values()]
    return all(
        set(one) == {"MCC", "Acc", "F1"}
        and all(type(value) in (int, float) for value in one.values())
        and -1 <= one["MCC"] <= 1
        and 0 <= one["Acc"] <= 1
        and 0 <= one["F1"] <= 1
        for one in scores
    )


@given(mutated())
@settings(deadline=None, max_examples=60)
def test_no_published_file_can_be_spoilt_unseen(data):
    """Complete without a fault means that by hand nothing is found either; lists stay short."""
    found = check_document(data)
    faults = [*found.faults, *found.missing]

    assert len(in_brief(faults)) < 40
    for fault in faults:
        assert harmless(str(fault))
    if not faults:
        assert set(found.document) == DOCUMENT
        assert scores_in_range(json.loads(data))
