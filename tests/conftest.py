"""Fixtures for all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def demo_data() -> Path:
    """The two real tasks that are shipped."""
    return ROOT / "geneb" / "demo"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Real task data outside the project: ``GENEB_TEST_DATA`` or ``../shared/data``."""
    path = Path(os.environ.get("GENEB_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not (path / "tasks").is_dir():
        pytest.skip(f"real task data is not at {path}; set GENEB_TEST_DATA to where it is")
    return path
