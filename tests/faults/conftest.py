"""What the tests of failures share."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.small_tasks import write_small_tasks


@pytest.fixture(scope="session")
def small_data(demo_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of three small tasks that share rows."""
    return write_small_tasks(demo_data, tmp_path_factory.mktemp("data"))
