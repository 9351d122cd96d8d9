"""``geneb submission`` as a command."""

from __future__ import annotations

import json
import os

import pytest
from support.command import check_mistake, geneb
from support.results_folders import run_info, write_results
from support.small_stores import random_task, write_store
from support.submissions import submission, write_submission

from geneb.benchmark.spec import load_spec

SOME = load_spec().task_ids[:2]


def run(*args):
    return geneb("submission", *args)


class TestValidate:
    def test_the_shipped_submissions(self, root):
        """All are valid, and nothing is to be said about them."""
        done = run("validate", *sorted((root / "leaderboard/submissions").glob("*.json")))

        assert done.code == 0, done.err
        assert len(done.out.splitlines()) == 41
        assert "41 of 41 file(s) valid, 0 fault(s), 0 warning(s)" in done.err

    def test_every_fault_of_every_file(self, tmp_path):
        """With file, path and what to do; one valid file does not make the rest valid."""
        good = write_submission(tmp_path, submission("good"))
        document = submission("bad")
        document["results"]["full"][SOME[0]]["MCC"] = True
        document["meta"]["url"] = "x"
        bad = write_submission(tmp_path, document)
        done = geneb("submission", "validate", good, bad, tmp_path / "none.json", fresh=True)

        assert done.code == 1
        assert f"{good}: valid" in done.out
        for words in (
            f"{bad}: fault at $.meta.url",
            f"{bad}: fault at $.results.full.{SOME[0]}.MCC",
            f"{tmp_path / 'none.json'}: no such file",
            "what to do",
        ):
            assert words in done.out
        assert "1 of 3 file(s) valid, 3 fault(s)" in done.err

    def test_an_incomplete_file_is_told_in_few_lines(self, tmp_path):
        """Missing tasks by regime; --json has every one of them."""
        document = submission("some-model")
        for tasks in document["results"].values():
            for task in list(tasks)[1:]:
                del tasks[task]
        path = write_submission(tmp_path, document)
        done = run("validate", path)

        assert done.code == 1
        assert "$.results.10shot: 99 tasks are missing: " in done.out
        assert "and 96 more" in done.out
        assert len(done.out.splitlines()) < 20
        assert "--json lists every fault" in done.err
        assert len(run("validate", path, "--json").json["files"][0]["faults"]) == 297

    def test_as_json(self, tmp_path):
        """The same for programs; doubtful scores are warnings, and the file is valid."""
        good = write_submission(tmp_path, submission("good"))
        done = run("validate", good, "--json")

        assert done.code == 0, done.err
        [file] = done.json["files"]
        assert (done.json["valid"], file["valid"], file["model_id"]) == (True, True, "good")
        assert file["faults"] == []
        assert set(file["warnings"][0]) == {"path", "problem", "expected", "found", "fix"}

    def test_nothing_to_read(self, tmp_path):
        """Exit code 2."""
        os.mkfifo(tmp_path / "pipe.json")
        done = run("validate", tmp_path / "none.json", tmp_path, tmp_path / "pipe.json")

        assert done.code == 2
        for words in ("none.json: no such file", ": this is a folder", "not a regular file"):
            assert words in done.out
        assert "fault" not in done.out
        check_mistake(run("validate"), "FILE")

    def test_a_hostile_file_reaches_no_terminal(self, tmp_path):
        """Neither its name nor its content does."""
        document = submission("evil")
        document["\x1b[31m\ud800"] = document["meta"]["display"] = "\x1b[2J\u202e"
        path = tmp_path / "\x1b[31m.json"
        path.write_text(json.dumps(document))
        for done in (run("validate", path), run("validate", path, "--json")):
            assert done.code == 1
            assert (done.out + done.err).replace("\n", "").isprintable()


class TestPack:
    def test_results_to_a_valid_file(self, tmp_path):
        """The path goes to stdout, notes to stderr; what is packed validates."""
        folder = write_results(tmp_path / "out", run_info())
        args = ("pack", folder, "--out", tmp_path / "s", "--display", "X", "--params", "12")
        done = run(*args, "--zero-shot", "--submitted-by", "A lab", "--url", "https://x.org")
        path = tmp_path / "s" / "some-model.json"

        assert done.code == 0, done.err
        assert done.out == f"{path}\n"
        assert "stopped before they converged" in done.err
        assert json.loads(path.read_text())["meta"]["zero_shot"] is True
        checked = run("validate", path, path.with_name("some-model.evidence.json"))
        assert (checked.code, "warning at" in checked.out) == (0, False)

        check_mistake(run(*args), "other content", "--force")
        assert run(*args, "--force").code == 0
        assert json.loads(path.read_text())["meta"]["zero_shot"] is None

    def test_a_store_and_partial_results(self, tmp_path):
        """Its fingerprint is put into the evidence."""
        store = write_store(tmp_path / "s.zarr", {SOME[0]: random_task()})
        assert geneb("probe", store, "--out", tmp_path / "out").code == 0
        args = ("pack", tmp_path / "out", "--out", tmp_path, "--display", "X", "--params", "12")
        check_mistake(run(*args), "1shot: 99 tasks are missing", "--partial")
        done = run(*args, "--partial", "--store", store)

        assert done.code == 0, done.err
        assert "cannot be submitted" in done.err
        assert done.out == f"{tmp_path / 'small-model.partial.json'}\n"
        evidence = json.loads((tmp_path / "small-model.partial.evidence.json").read_text())
        assert evidence["store"]["fingerprint"]["extractor"] == "by-hand"

    @pytest.mark.parametrize("folder", ["nothing", "."])
    def test_mistakes(self, tmp_path, folder):
        """No results there."""
        check_mistake(run("pack", tmp_path / folder, "--out", tmp_path / "s"), "no results")
        assert not (tmp_path / "s").exists()


def test_card(tmp_path):
    """Written once; what people have filled in is not written over."""
    store = write_store(tmp_path / "s.zarr", {"own": random_task()})
    path = tmp_path / "cards" / "card.md"
    done = run("card", store, "--out", path)

    assert done.code == 0, done.err
    assert done.out == f"{path}\n"
    assert "answers are to be filled in" in done.err
    path.write_text(path.read_text().replace("**to be filled in**", "Nobody", 1))
    check_mistake(run("card", store, "--out", path), "other content")
    assert run("card", store, "--out", path, "--force").code == 0
    check_mistake(run("card", tmp_path / "none", "--out", path), "no embedding store")


def test_schema(root):
    """The file beside the submissions."""
    done = run("schema")

    assert done.code == 0, done.err
    assert done.out == (root / "leaderboard/submission.schema.json").read_text(encoding="utf-8")
