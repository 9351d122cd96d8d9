"""Scores of cuML: they stand in the leaderboard with a calibration, and not without."""

from __future__ import annotations

import pytest
from support.calibrations import SPEC, calibration
from support.results_folders import run_info, write_results

from geneb.errors import InputError
from geneb.probing.calibration import calibration_tasks
from geneb.reporting.entries import backend_notes, read_leaderboard
from geneb.reporting.pack import Statement, pack, write_packed
from geneb.reporting.validate import validate_files

SAID = Statement(display="Some model", params=1000)
TASK = calibration_tasks(SPEC)[0]
TOO_FAR = {(TASK, "full", "MCC"): 0.2}


@pytest.fixture
def results(tmp_path):
    """A complete results folder of the backend cuml."""
    info = run_info(backend="cuml", versions={"cuml-cu12": "26.4.0"})
    return write_results(tmp_path / "results", info)


def packed(results, out, given):
    """Pack and write; return what was noted, and the evidence's path."""
    [one] = pack([results], SAID, calibration=given)
    [path] = write_packed([one], out)
    return one.notes, path.with_name("some-model.evidence.json")


@pytest.mark.parametrize("differences", [None, TOO_FAR], ids=["none", "too far"])
def test_without_one_that_holds_the_submission_is_refused(results, tmp_path, differences):
    """When it is packed that is said, when it is validated it is a fault, and it gets no row."""
    given = calibration(differences) if differences else None
    notes, evidence = packed(results, tmp_path / "out", given)

    assert any("cannot be submitted" in note for note in notes)
    (report,) = validate_files([evidence])
    place = f"$.calibration.tasks.{TASK}.full.MCC" if differences else "$.calibration"
    faults = [fault for fault in report.faults if fault.where == place]
    assert len(faults) == 1
    assert "geneb analyze backends" in faults[0].fix or "backend sklearn" in faults[0].fix
    with pytest.raises(InputError, match=r"some-model\.evidence\.json, \$\.calibration"):
        read_leaderboard(tmp_path / "out")


def test_with_one_that_holds_it_stands_in_the_leaderboard(results, tmp_path):
    """The evidence carries it."""
    notes, evidence = packed(results, tmp_path / "out", calibration())

    assert not any("cannot be submitted" in note for note in notes)
    assert any("backend cuml" in note for note in notes)
    (report,) = validate_files([evidence])
    assert report.faults == []
    entries = read_leaderboard(tmp_path / "out").entries
    assert [(one.model_id, one.backend) for one in entries] == [("some-model", "cuml")]
    assert backend_notes(entries) == ["some-model: its fits were solved by the backend cuml"]


def test_scikit_learn_needs_none(tmp_path):
    """As ever."""
    results = write_results(tmp_path / "results", run_info())
    notes, evidence = packed(results, tmp_path / "out", None)
    assert not any("cannot be submitted" in note for note in notes)
    assert validate_files([evidence])[0].faults == []
    assert backend_notes(read_leaderboard(tmp_path / "out").entries) == []
