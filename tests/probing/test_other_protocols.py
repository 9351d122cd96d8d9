"""Results of other protocols than the published one never get into the main table."""

from __future__ import annotations

import json
import shutil

import pytest
from support.results_folders import run_info, write_results

from geneb.errors import InputError
from geneb.probing.protocol import PROTOCOLS
from geneb.reporting.pack import Statement, pack, write_packed
from geneb.reporting.validate import validate_files
from geneb.results import ResultsFolder

SAID = Statement(display="Some model", params=12, submitted_by="A lab")
OTHERS = [*(name for name in PROTOCOLS if name != "geneb-lr-1"), "own:mine:svm", "bayes-1"]


@pytest.fixture(scope="module")
def submission(tmp_path_factory):
    """A valid one; not to be changed."""
    out = tmp_path_factory.mktemp("published")
    [path] = write_packed(pack([write_results(out, run_info())], SAID), out / "submission")
    return path.parent


@pytest.mark.parametrize("protocol", OTHERS)
def test_they_are_not_packed(tmp_path, protocol):
    """Whatever else about them is right."""
    folder = write_results(tmp_path, run_info(protocol=protocol), ["gue_mouse_0"])
    with pytest.raises(InputError, match="only results of the published protocol"):
        pack([folder], SAID, partial=True)


@pytest.mark.parametrize("protocol", OTHERS)
def test_a_submission_of_them_is_not_valid(tmp_path, submission, protocol):
    """The evidence says which protocol it is of."""
    shutil.copytree(submission, tmp_path / "submission")
    files = sorted((tmp_path / "submission").iterdir())
    evidence = json.loads(files[0].read_text())
    files[0].write_text(json.dumps({**evidence, "protocol": protocol}))
    faults = [fault for one in validate_files(files) for fault in one.faults]
    assert "$.protocol" in str(faults)
    assert "only results of the published protocol" in str(faults)


@pytest.mark.parametrize("protocol", OTHERS)
def test_a_results_folder_holds_one_protocol(tmp_path, protocol):
    """They are not added to the published one's, and do not pass by another run.json."""
    write_results(tmp_path / "out", run_info(), ["a"])
    with pytest.raises(InputError, match="another run"):
        write_results(tmp_path / "out", run_info(protocol=protocol), ["b"])
    folder = write_results(tmp_path / "other", run_info(protocol=protocol), ["a"])
    (folder / "run.json").write_text(run_info().model_dump_json())
    assert ResultsFolder.open(folder).current() == []
    with pytest.raises(InputError, match=r"run\.json is of another run"):
        pack([folder], SAID, partial=True)
