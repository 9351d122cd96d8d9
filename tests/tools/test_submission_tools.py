"""The scripts that keep the published names of commands and arguments."""

from __future__ import annotations

import json

import pytest
from support.command import check_mistake, run_script
from support.results_folders import run_info, write_legacy, write_results
from support.submissions import submission, write_submission


@pytest.fixture(scope="module")
def tool(root):
    """Run a script of tools/."""

    def run(name, *args):
        return run_script(root / "tools" / name, *args)

    return run


def pack_arguments(folder, **changes):
    """The published arguments."""
    values = {
        "raw_dir": folder,
        "model_id": "some-model",
        "display": "-Some model-",
        "params": 12,
        "url": "https://x.org",
        "submitted_by": "A lab",
    }
    return [f"--{name}={value}" for name, value in {**values, **changes}.items()]


def test_validate(tool, tmp_path):
    """The same exit codes as the command's."""
    good = write_submission(tmp_path, submission("good"))
    bad = write_submission(tmp_path, {**submission("bad"), "harness_version": "mine"})

    assert tool("validate_submission.py", good).code == 0
    done = tool("validate_submission.py", good, bad)
    assert done.code == 1
    assert "$.harness_version" in done.out
    assert tool("validate_submission.py", tmp_path / "none.json").code == 2


def test_pack_the_published_runner_s_files(tool, tmp_path):
    """What is not called zero-shot is not."""
    folder = write_legacy(tmp_path / "raw")
    done = tool("pack_submission.py", *pack_arguments(folder, out=tmp_path / "s"))
    path = tmp_path / "s" / "some-model.json"

    assert done.code == 0, done.err
    meta = json.loads(path.read_text())["meta"]
    assert meta == {
        "display": "-Some model-",
        "params": 12,
        "url": "https://x.org",
        "zero_shot": False,
        "training_data": None,
        "provenance": "self-reported",
        "submitted_by": "A lab",
    }
    assert tool("validate_submission.py", path).code == 0


def test_pack_a_results_folder(tool, tmp_path):
    """With the optional arguments."""
    folder = write_results(tmp_path / "out", run_info())
    args = pack_arguments(folder, out=tmp_path, training_data="Reads")
    done = tool("pack_submission.py", *args, "--zero_shot")

    assert done.code == 0, done.err
    meta = json.loads((tmp_path / "some-model.json").read_text())["meta"]
    assert (meta["zero_shot"], meta["training_data"]) == (True, "Reads")


def test_pack_mistakes(tool, tmp_path):
    """One message, nothing written."""
    args = pack_arguments(tmp_path / "none", out=tmp_path / "s")
    check_mistake(tool("pack_submission.py", *args), "no results")
    check_mistake(tool("pack_submission.py"), "--raw_dir")
    assert not (tmp_path / "s").exists()


def test_the_published_submissions_can_be_written_again(tool, root, real_data, tmp_path):
    """Byte for byte, from the tables of published figures."""
    reference = real_data.parent / "reference"
    if not (reference / "published_scores.csv").is_file():
        pytest.skip(f"the published figures are not at {reference}")
    done = tool("import_published.py", reference, "--out", tmp_path)

    assert done.code == 0, done.err
    shipped = root / "leaderboard" / "submissions"
    names = {path.name for path in tmp_path.iterdir()}
    assert len(names) == 41
    for name in names:
        assert (tmp_path / name).read_bytes() == (shipped / name).read_bytes()
