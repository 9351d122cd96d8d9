"""Packing results folders into submissions."""

from __future__ import annotations

import json
import shutil

import pytest
from support.results_folders import run_info, write_results
from support.small_stores import random_task, write_store

import geneb
from geneb.benchmark.spec import load_spec
from geneb.errors import InputError, NotFoundError
from geneb.reporting.pack import (
    Statement,
    check_statement,
    pack,
    refuse_to_replace,
    write_packed,
)
from geneb.reporting.validate import validate_files
from geneb.results import ResultsFolder
from geneb.stores import open_store

SPEC = load_spec()
SAID = Statement(display="Some model", params=12, submitted_by="A lab")
SOME = SPEC.task_ids[:2]


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """A complete results folder; not to be changed."""
    return write_results(tmp_path_factory.mktemp("complete"), run_info())


@pytest.fixture(scope="module")
def packed(complete):
    """What is made of it."""
    [one] = pack([complete], SAID)
    return one


def refused(*args, **kwargs):
    with pytest.raises(InputError) as caught:
        pack(*args, **kwargs)
    return str(caught.value)


class TestComplete:
    def test_the_file_is_valid_and_without_a_doubt(self, packed, tmp_path):
        """Under the model's name, with its evidence beside it."""
        [path] = write_packed([packed], tmp_path / "new" / "folder")
        files = sorted(path.parent.iterdir())

        assert [file.name for file in files] == ["some-model.evidence.json", "some-model.json"]
        assert path == files[1]
        assert [(one.faults, one.warnings) for one in validate_files(files)] == [([], [])] * 2

    def test_the_scores_are_the_folder_s_to_the_bit(self, packed, complete):
        """Full doubles."""
        document = json.loads(packed.submission)

        assert document["results"] == ResultsFolder.open(complete).summary()

    def test_what_is_said_about_the_model(self, packed):
        """Always self-reported, whoever packs it."""
        document = json.loads(packed.submission)

        assert document["harness_version"] == f"geneb-{geneb.__version__}"
        assert document["meta"] == {
            "display": "Some model",
            "params": 12,
            "url": None,
            "zero_shot": None,
            "training_data": None,
            "provenance": "self-reported",
            "submitted_by": "A lab",
        }

    def test_the_evidence(self, packed, complete):
        """What the schema has no room for."""
        evidence, info = json.loads(packed.evidence), ResultsFolder.open(complete).info
        task = evidence["tasks"][SPEC.task_ids[7]]

        assert evidence["store"] == {"fingerprint_id": "a" * 64, "fingerprint": None}
        assert (evidence["protocol"], evidence["backend"]) == ("geneb-lr-1", "sklearn")
        assert evidence["seeds"] == list(SPEC.seeds)
        assert (evidence["versions"], evidence["blas"]) == (info.versions, info.blas)
        assert (evidence["run_key"], evidence["environment"]) == (info.key, info.environment)
        assert set(evidence["tasks"]) == set(SPEC.task_ids)
        assert task["embeddings_digest"] == f"{7:064x}"
        assert [task["regimes"][name]["fits"] for name in SPEC.regimes] == [1, 5, 5]
        assert task["regimes"]["10shot"]["converged"] == 4
        assert task["regimes"]["10shot"]["n_iter"] == 104
        assert task["regimes"]["1shot"]["gradient_norm"] == 5e-5

    def test_the_same_results_give_the_same_bytes(self, packed, complete):
        """Also when they are named by the folder above."""
        assert pack([complete.parent], SAID) == [packed]

    def test_convergence_is_told(self, packed):
        """As a note."""
        assert any("200 of 1,100 fits stopped" in note for note in packed.notes)


class TestFilesThere:
    def test_the_same_content_is_written_again(self, packed, tmp_path):
        """Nobody loses anything."""
        assert write_packed([packed], tmp_path) == write_packed([packed], tmp_path)

    @pytest.mark.parametrize("name", ["some-model.json", "some-model.evidence.json"])
    def test_other_content_is_kept(self, packed, tmp_path, name):
        """Neither file is written, unless forced."""
        (tmp_path / name).write_text("mine")
        with pytest.raises(InputError, match="other content"):
            write_packed([packed], tmp_path)

        assert [path.name for path in tmp_path.iterdir()] == [name]
        assert (tmp_path / name).read_text() == "mine"
        write_packed([packed], tmp_path, force=True)
        assert all(one.valid for one in validate_files(tmp_path.iterdir()))

    def test_a_link_is_no_file_to_replace(self, tmp_path):
        """It might lead anywhere."""
        (tmp_path / "link").symlink_to(tmp_path / "x")
        with pytest.raises(InputError, match="cannot be read"):
            refuse_to_replace(tmp_path / "link", "x")


class TestIncomplete:
    def test_all_that_is_missing_is_listed(self, complete, tmp_path):
        """Regimes as a whole, tasks by name."""
        folder = write_results(tmp_path, run_info(), SOME, ["full", "10shot"])
        message = refused([folder], SAID)

        assert "1shot: all 100 tasks are missing" in message
        assert "full: 98 tasks are missing" in message
        assert SPEC.task_ids[2] in message
        assert f" {SOME[0]}," not in message

        almost = shutil.copytree(complete, tmp_path / "almost" / "some-model")
        (almost / "tasks" / f"{SPEC.task_ids[50]}.csv").unlink()
        message = refused([almost], SAID)
        assert message.count(SPEC.task_ids[50]) == 3
        assert message.count(SPEC.task_ids[51]) == 0

    def test_on_request_a_partial_file_is_written(self, tmp_path):
        """Never under the final name, and never valid."""
        folder = write_results(tmp_path / "out", run_info(), [*SOME, "own_task"])
        [one] = pack([folder], SAID, partial=True)
        [path] = write_packed([one], tmp_path)
        names = sorted(file.name for file in tmp_path.glob("*.json"))
        [report] = validate_files([path])

        assert not one.complete
        assert names == ["some-model.partial.evidence.json", "some-model.partial.json"]
        assert {len(tasks) for tasks in json.loads(path.read_text())["results"].values()} == {2}
        assert "$.model_id" in [fault.where for fault in report.faults]
        assert sum("missing" in fault.problem for fault in report.faults) == 3 * 98
        assert any("own_task" in note for note in one.notes)

    def test_a_complete_one_has_the_final_name_all_the_same(self, complete, packed):
        """Partial is what it is, not what was asked for."""
        assert pack([complete], SAID, partial=True) == [packed]

    def test_a_trial_never_has_the_final_name(self, packed, tmp_path):
        """Whatever is in it: `geneb run --limit` asks for that."""
        write_packed([packed], tmp_path, trial=True)
        names = sorted(file.name for file in tmp_path.iterdir())

        assert names == ["some-model.partial.evidence.json", "some-model.partial.json"]
        assert not any(one.valid for one in validate_files(tmp_path.iterdir()))

    def test_tasks_outside_the_benchmark_are_nothing(self, tmp_path):
        """Not even partially."""
        folder = write_results(tmp_path, run_info(), ["own_task"])

        assert "no score of any task" in refused([folder], SAID, partial=True)


class TestOtherRuns:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"protocol": "geneb-lr-2"}, "geneb-lr-2"),
            ({"protocol": "geneb-lr-1+seeds-1-2", "seeds": [1, 2]}, "seeds-1-2"),
            ({"seeds": [1, 2, 3, 4, 5]}, "1, 2, 3, 4, 5"),
            ({"seeds": list(reversed(SPEC.seeds))}, "997, 123"),
        ],
    )
    def test_other_protocols_and_seeds_are_refused(self, tmp_path, changes, words):
        """With what was expected and found."""
        folder = write_results(tmp_path, run_info(**changes), SOME)
        message = refused([folder], SAID, partial=True)

        assert "published protocol" in message
        assert words in message

    def test_another_backend_is_said(self, tmp_path):
        """In a note and in the evidence."""
        folder = write_results(tmp_path, run_info(backend="cuml"), SOME)
        [one] = pack([folder], SAID, partial=True)

        assert any("cuml" in note for note in one.notes)
        assert json.loads(one.evidence)["backend"] == "cuml"

    def test_doubtful_scores_are_said(self, tmp_path):
        """Real results of a task's name on other rows."""
        store = write_store(tmp_path / "s.zarr", {SPEC.task_ids[0]: random_task()})
        geneb.probe(store, out=tmp_path / "out")
        [one] = pack([tmp_path / "out"], SAID, partial=True)

        assert any("doubtful" in note for note in one.notes)

    def test_the_store_s_fingerprint_goes_into_the_evidence(self, tmp_path):
        """If it is the store that was probed."""
        for name in ("small-model", "other-model"):
            path = write_store(tmp_path / f"{name}.zarr", {SPEC.task_ids[0]: random_task()}, name)
            geneb.probe(path, out=tmp_path / "out")
        store = open_store(tmp_path / "small-model.zarr")
        [one] = pack([tmp_path / "out/small-model"], SAID, store=store, partial=True)
        found = json.loads(one.evidence)

        assert found["store"] == {
            "fingerprint_id": store.fingerprint_id,
            "fingerprint": store.fingerprint.as_read(),
        }
        digest = found["tasks"][SPEC.task_ids[0]]["embeddings_digest"]
        assert digest == store.task(SPEC.task_ids[0]).manifest.digest
        message = refused([tmp_path / "out/other-model"], SAID, store=store, partial=True)
        assert "not made of this store" in message


class TestStatement:
    def test_what_is_known_need_not_be_said(self, tmp_path):
        """Name and parameters are as published; that the scores are not official is told."""
        folder = write_results(tmp_path, run_info("GROVER"), SOME)
        [one] = pack([folder], Statement(), partial=True)
        meta = json.loads(one.submission)["meta"]

        assert (meta["display"], meta["params"]) == ("GROVER", 87101793)
        assert any("official" in note for note in one.notes)

    def test_the_registry_knows_a_display_name(self):
        """And no number of parameters."""
        check_statement("kmer3", Statement(params=64))
        with pytest.raises(
            InputError, match=r"number of parameters must be said(.|\n)*give --params N$"
        ):
            check_statement("kmer3", Statement())

    def test_an_unknown_model(self):
        """Both are asked for at once."""
        with pytest.raises(InputError, match=r"give --display TEXT and --params N$"):
            check_statement("some-model", Statement())

    @pytest.mark.parametrize(
        ("statement", "path"),
        [
            (Statement("x\x1b[2J", 1), "$.meta.display"),
            (Statement("x", 10**14), "$.meta.params"),
            (Statement("x", 1, url="ftp://x"), "$.meta.url"),
            (Statement("x", 1, submitted_by=" "), "$.meta.submitted_by"),
            (Statement("x\udc80", 1), "$"),
        ],
    )
    def test_what_a_submission_cannot_say(self, statement, path):
        """Refused before there is any result."""
        with pytest.raises(InputError) as caught:
            check_statement("some-model", statement)
        assert f"    {path}: " in str(caught.value)

    @pytest.mark.parametrize("model_id", ["CON", "x.evidence"])
    def test_ids_that_cannot_be_submitted(self, model_id):
        """Though a store may have them."""
        with pytest.raises(InputError, match=r"\$\.model_id"):
            check_statement(model_id, SAID)

    def test_several_models_are_not_one(self, tmp_path):
        """What holds for one is not said of all; what holds for all may be."""
        for name in ("GROVER", "MutBERT"):
            write_results(tmp_path, run_info(name), SOME)
        for said in (SAID, Statement(params=1), Statement(url="https://x.org")):
            assert "several models" in refused([tmp_path], said, partial=True)
        packed = pack([tmp_path], Statement(submitted_by="A lab"), partial=True)

        assert [one.model_id for one in packed] == ["GROVER", "MutBERT"]
        assert {json.loads(one.submission)["meta"]["submitted_by"] for one in packed} == {"A lab"}

    def test_another_model_s_results(self, tmp_path):
        """An id does not rename them."""
        folder = write_results(tmp_path, run_info(), SOME)

        assert "another model" in refused([folder], SAID, model_id="other", partial=True)


def test_no_results(tmp_path):
    """A folder without any, and no folder."""
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(NotFoundError, match="no results"):
            pack([path], SAID)
