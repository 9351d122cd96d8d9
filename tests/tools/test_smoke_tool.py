"""The smoke test finds nothing to agree where there is nothing."""

from __future__ import annotations

import pytest
from support.command import run_script


def smoke(root, *options):
    done = run_script(root / "tools" / "smoke_test_geneb.py", *options)
    assert "Traceback" not in done.err
    return done


@pytest.mark.parametrize("folder", ["none", "."])
def test_a_folder_without_results(root, tmp_path, folder):
    """No score is no agreement."""
    shipped = root / "leaderboard" / "submissions" / "GROVER.json"
    done = smoke(root, "--submission", shipped, "--raw_dir", tmp_path / folder)

    assert done.code == 2
    assert "no result files" in done.err


@pytest.mark.parametrize("tolerance", ["nan", "inf", "-1", "x"])
def test_a_tolerance_that_lets_everything_pass(root, tmp_path, tolerance):
    """Nothing differs by more than NaN."""
    done = smoke(root, "--submission", "x", "--raw_dir", tmp_path, f"--tolerance={tolerance}")

    assert done.code == 2
    assert "--tolerance" in done.err
