"""What geneb's own package metadata asks for, and what of it is installed. Nothing is imported."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from geneb.base.env import version

DISTRIBUTION = "geneb"


def core_requirements() -> list[Requirement]:
    """Return what every installation needs."""
    return list(_applicable(extra=""))


def extras() -> dict[str, list[Requirement]]:
    """Return what each extra brings, in the order in which the metadata names the extras.

    An extra made of others brings what those bring.
    """
    names = importlib.metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    return {name: list(_brought_by(name)) for name in names}


def is_met(requirement: Requirement) -> bool:
    """Return whether a requirement is installed in a version that it allows."""
    found = version(requirement.name)
    return found is not None and requirement.specifier.contains(found, prereleases=True)


def extra_bringing(package: str) -> str | None:
    """Return the first extra that brings a package of this name; None where no extra does."""
    wanted = canonicalize_name(package)
    for name, requirements in extras().items():
        if wanted in {canonicalize_name(requirement.name) for requirement in requirements}:
            return name
    return None


def _applicable(extra: str) -> Iterator[Requirement]:
    """Yield what is asked for with this extra and not without; with none, the core's."""
    for line in importlib.metadata.requires(DISTRIBUTION) or []:
        requirement = Requirement(line)
        marker = requirement.marker
        always = marker is None or marker.evaluate({"extra": ""})
        if (always and not extra) or (
            extra and not always and marker is not None and marker.evaluate({"extra": extra})
        ):
            yield requirement


def _brought_by(extra: str) -> Iterator[Requirement]:
    for requirement in _applicable(extra):
        if canonicalize_name(requirement.name) != DISTRIBUTION:
            yield requirement
            continue
        for other in sorted(requirement.extras):
            yield from _brought_by(other)
