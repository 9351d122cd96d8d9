"""The smoke test finds nothing to agree where there is nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest


def smoke(root, *options):
    done = subprocess.run(
        [sys.executable, root / "tools" / "smoke_test_geneb.py", *map(str, options)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.parametrize("folder", ["none", "."])
def test_a_folder_without_results(root, tmp_path, folder):
    """No score is no agreement."""
    shipped = root / "leaderboard" / "submissions" / "GROVER.json"
    done = smoke(root, "--submission", shipped, "--raw_dir", tmp_path / folder)

    assert done.returncode == 2
    assert "no result files" in done.stderr


@pytest.mark.parametrize("tolerance", ["nan", "inf", "-1", "x"])
def test_a_tolerance_that_lets_everything_pass(root, tmp_path, tolerance):
    """Nothing differs by more than NaN."""
    done = smoke(root, "--submission", "x", "--raw_dir", tmp_path, f"--tolerance={tolerance}")

    assert done.returncode == 2
    assert "--tolerance" in done.stderr
