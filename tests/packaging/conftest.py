"""The project built once: a copy of the checkout, its sdist, its wheel, and the wheel installed.

The checkout itself is never written to, and nothing is fetched: the build uses the setuptools
that is installed, and the installed wheel borrows its dependencies from the running environment.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.command import Outcome


@dataclass(frozen=True)
class Distributions:
    """The two files that a release consists of."""

    sdist: Path
    wheel: Path


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and a folder outside the checkout to stand in."""

    folder: Path
    elsewhere: Path

    def run(self, program: str, *args: str, timeout: float = 300) -> Outcome:
        """Run one of the environment's programs, deaf to variables that could reach a checkout."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GENEB_", "PYTHON"))
        }
        done = subprocess.run(
            [self.folder / "bin" / program, *args],
            cwd=self.elsewhere,
            env=inherited,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)


def run(*command: object) -> str:
    """Run a command that must succeed; return all that it said."""
    done = subprocess.run(
        [*map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def project(root, tmp_path_factory) -> Path:
    """A copy of the checkout without what git ignores."""
    ignored = [
        line.rstrip("/") for line in (root / ".gitignore").read_text(encoding="utf-8").splitlines()
    ]
    copy = tmp_path_factory.mktemp("project") / "geneb"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".git", *ignored))
    return copy


@pytest.fixture(scope="session")
def distributions(project, tmp_path_factory) -> Distributions:
    """The sdist, and the wheel that is built from the unpacked sdist."""
    pytest.importorskip("build", reason="the extra 'test' is not installed: no package 'build'")
    pytest.importorskip("setuptools", reason="the extra 'test' is not installed: no setuptools")
    out = tmp_path_factory.mktemp("dist")
    said = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, project)
    assert "DeprecationWarning" not in said, said
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return Distributions(sdist, wheel)


@pytest.fixture(scope="session")
def installed(distributions, tmp_path_factory) -> Environment:
    """The wheel in an environment that has its declared dependencies and nothing else.

    The environment is new and does not see the running one: each distribution that the wheel's
    metadata asks for, and those ask for in turn, is linked into it by name. So neither torch nor
    the checkout can be reached, and a dependency that is used but not declared is missed. That
    the same holds with packages freshly downloaded is .ci/run's part.
    """
    folder = tmp_path_factory.mktemp("installed")
    environment = Environment(folder / "venv", folder / "elsewhere")
    environment.elsewhere.mkdir()
    venv.create(environment.folder, symlinks=True, with_pip=False)
    (site,) = (environment.folder / "lib").glob("python*/site-packages")
    for distribution in dependencies(distributions.wheel):
        link(distribution, site)
    pip = (sys.executable, "-m", "pip", "--python", environment.folder / "bin" / "python")
    run(*pip, "install", "--no-index", "--no-deps", distributions.wheel)
    run(*pip, "check")
    return environment


def dependencies(wheel: Path) -> list[importlib.metadata.Distribution]:
    """The installed distributions that a wheel needs, directly or not, without any extra."""
    version = wheel.name.split("-")[1]
    metadata = zipfile.Path(wheel, f"geneb-{version}.dist-info/")
    found: dict[str, importlib.metadata.Distribution] = {}
    wanted = list(importlib.metadata.PathDistribution(metadata).requires or ())
    while wanted:
        requirement = Requirement(wanted.pop())
        name = canonicalize_name(requirement.name)
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if applies and name not in found:
            found[name] = importlib.metadata.distribution(name)
            wanted += found[name].requires or ()
    return list(found.values())


def link(distribution: importlib.metadata.Distribution, site: Path) -> None:
    """Make a distribution importable from another site-packages folder."""
    tops = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
    for top in tops:
        (site / top).symlink_to(Path(str(distribution.locate_file(top))).resolve())
