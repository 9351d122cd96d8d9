"""What the package metadata asks for."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from geneb.base import requirements
from geneb.base.requirements import core_requirements, extra_bringing, extras, is_met


@pytest.fixture
def asks(monkeypatch):
    """Replace geneb's requirements and the versions that are installed."""

    def ask(lines: list[str], installed: dict[str, str], names: tuple[str, ...] = ()) -> None:
        monkeypatch.setattr(requirements.importlib.metadata, "requires", lambda _: lines)
        monkeypatch.setattr(requirements, "version", installed.get)
        monkeypatch.setattr(requirements.importlib.metadata, "metadata", lambda _: _Metadata(names))

    return ask


class _Metadata:
    def __init__(self, names):
        self._names = names

    def get_all(self, field):
        assert field == "Provides-Extra"
        return list(self._names) or None


def names(wanted: list[Requirement]) -> list[str]:
    return [canonicalize_name(requirement.name) for requirement in wanted]


def test_the_core_is_what_no_extra_adds(asks):
    """Markers of another system or Python do not apply either."""
    asks(
        ["a>=1", 'b; extra == "x"', 'c; sys_platform == "no such"', 'd; python_version >= "3"'], {}
    )

    assert names(core_requirements()) == ["a", "d"]


def test_extras_bring_what_others_bring(asks):
    """An extra that is made of others is as complete as they are."""
    asks(
        ["core", 'a; extra == "x"', 'b; extra == "y"', 'geneb[y,x]; extra == "z"'],
        {},
        ("x", "y", "z"),
    )

    assert {name: names(wanted) for name, wanted in extras().items()} == {
        "x": ["a"],
        "y": ["b"],
        "z": ["a", "b"],
    }


def test_without_extras_there_are_none(asks):
    """The metadata has no such field then."""
    asks(["core"], {})

    assert extras() == {}
    assert extra_bringing("core") is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [("a>=1", True), ("a>=3", False), ("a", True), ("b", False), ("a==2.0", True), ("a<2", False)],
)
def test_a_requirement_is_met_by_an_allowed_version(asks, line, expected):
    """Installed, and within the range."""
    asks([], {"a": "2.0"})

    assert is_met(Requirement(line)) is expected


def test_a_development_version_counts(asks):
    """Whoever runs the next release of a package knows why."""
    asks([], {"a": "2.0.dev1"})

    assert is_met(Requirement("a>=1"))


@pytest.mark.parametrize(
    ("package", "expected"),
    [
        ("safetensors", "models"),
        ("huggingface_hub", "hub"),
        ("Huggingface-Hub", "hub"),
        ("numpy", None),
        ("no_such_package", None),
    ],
)
def test_a_package_is_found_in_the_extra_that_brings_it(package, expected):
    """geneb's real extras; spelling as in imports or as in requirements."""
    assert extra_bringing(package) == expected
