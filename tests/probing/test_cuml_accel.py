"""cuml.accel replaces scikit-learn's solvers without a trace; every way to switch it on is seen."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from geneb.base.env import cuml_accel_active
from geneb.errors import InputError
from geneb.probing.backends import open_backend


def load(monkeypatch, **content) -> None:
    """Let a module of that name be loaded."""
    module = ModuleType("cuml.accel")
    vars(module).update(content)
    monkeypatch.setitem(sys.modules, "cuml.accel", module)


@pytest.mark.parametrize("value", ["1", "true", "True", "TRUE", "yes"])
def test_by_the_variable(monkeypatch, value):
    """Which Python reads when it starts, and child processes inherit."""
    monkeypatch.setenv("CUML_ACCEL_ENABLED", value)
    assert cuml_accel_active()
    with pytest.raises(InputError, match=r"cuml\.accel has taken over"):
        open_backend("sklearn")


@pytest.mark.parametrize("value", ["", "0", "false", "False", " "])
def test_the_variable_may_switch_it_off(monkeypatch, value):
    """Then scikit-learn is itself."""
    monkeypatch.setenv("CUML_ACCEL_ENABLED", value)
    assert not cuml_accel_active()


@pytest.mark.parametrize("enabled", [True, False])
def test_by_installing_it(monkeypatch, enabled):
    """`python -m cuml.accel`, `%load_ext` and `install()` enable it; an import alone does not."""
    load(monkeypatch, enabled=lambda: enabled)
    assert cuml_accel_active() is enabled
    if enabled:
        with pytest.raises(InputError, match=r"cuml\.accel has taken over"):
            open_backend("sklearn")


def test_a_version_that_does_not_tell(monkeypatch):
    """Is taken for active."""
    load(monkeypatch)
    assert cuml_accel_active()


def test_usually_it_is_not():
    """In this process."""
    assert not cuml_accel_active()
