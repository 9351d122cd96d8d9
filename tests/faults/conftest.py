"""What the tests of failures share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fork_server import ForkServer
from support.small_tasks import write_small_tasks


@pytest.fixture(scope="session")
def small_data(demo_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of three small tasks that share rows."""
    return write_small_tasks(demo_data, tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """Runs the command line in processes that are made to fail."""
    with ForkServer(tmp_path_factory.mktemp("server")) as server:
        yield server
