"""Fixtures for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command import Started
from support.fork_server import ForkServer

# The tests run in as many processes as there are cores; libraries that bring threads of their own
# for each core would only wait for each other. Set before any of them is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent

# Folders whose files share what is dear to make: a built distribution, a running browser.
TOGETHER = {"packaging", "site"}
# A file whose tests share nothing, and take long.
APART = {"test_killed.py"}
# The folders whose groups take longest: begun late, one of them would be waited for in the end.
FIRST = ("faults", "packaging", "site", "extractors", "embedding", "cli")


def group(nodeid: str) -> str:
    """Return what a test is kept together with in one of the parallel processes."""
    path = Path(nodeid.partition("::")[0])
    if path.name in APART:
        return nodeid
    return str(path.parent if path.parent.name in TOGETHER else path)


@pytest.hookimpl(optionalhook=True)  # nobody asks where xdist is not installed
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep groups together without xdist's marks, which pytest 9.2 does not let through."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    return Groups(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest."""
    order = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(item.path.parent.name, len(FIRST)))


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    """Leave the user's cache alone, and what tests find in it out of their results."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENEB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True, scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """Runs the command line in forked processes; `support.command.geneb` does so by it."""
    with ForkServer(tmp_path_factory.mktemp("server")) as Started.server:
        yield Started.server


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
