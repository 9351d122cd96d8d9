"""Fixtures for all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# The tests run in as many processes as there are cores; libraries that bring threads of their own
# for each core would only wait for each other. Set before any of them is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent

# Folders whose files share what is dear to make: a built distribution, a running browser.
TOGETHER = {"packaging", "site"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep a file's tests, and those of some folders, in one of the parallel processes."""
    for item in items:
        folder = item.path.parent
        group = folder if folder.name in TOGETHER else item.path
        item.add_marker(pytest.mark.xdist_group(str(group.relative_to(ROOT))))


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    """Leave the user's cache alone, and what tests find in it out of their results."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENEB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


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
