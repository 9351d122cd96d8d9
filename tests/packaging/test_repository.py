"""The checkout itself: what its documents promise, and what must not stand in any file."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.source import project_settings

# What README.md tells a newcomer to run; .ci/run runs the same lines.
COMMANDS = (
    'python -m pip install -e ".[test]" -c constraints.txt && pytest',
    "python -m pip install -e . && geneb demo",
)

# Written with brackets so that this file does not match itself.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.~}])/(?:work|root|farm|tmp)/\w"),
    "a package registry's host": re.compile(
        r"py[p]i\.org|python[h]osted|download\.py[t]orch|npm[j]s|ana[c]onda\.org", re.IGNORECASE
    ),
    "an option that names a package index": re.compile(r"--(?:extra-)?[i]ndex-url|--[f]ind-links"),
}


def tracked_files(root: Path) -> list[Path]:
    """The files that git knows, or that it would not ignore."""
    if shutil.which("git") is None or not (root / ".git").exists():
        pytest.skip("not a git checkout")
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    paths = [root / name for name in done.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names(what, root):
    """Nothing depends on one machine or one registry."""
    found = [
        f"{path.relative_to(root)}, line {number}: {line.strip()[:100]}"
        for path in tracked_files(root)
        for number, line in enumerate(
            path.read_text(encoding="utf-8", errors="replace").splitlines(), 1
        )
        if FORBIDDEN[what].search(line)
    ]

    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("a path of one machine", "data in /" + "work/data/tasks"),
        ("a package registry's host", "see https://py" + "pi.org/project/geneb"),
        ("an option that names a package index", "pip install --index" + "-url X geneb"),
    ],
)
def test_the_scan_sees(what, line):
    """Each pattern finds what it is there for."""
    assert FORBIDDEN[what].search(line)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("file", ["README.md", ".ci/run"])
def test_the_readme_s_commands_are_those_that_are_checked(root, file, command):
    """What a newcomer copies from README.md is, letter for letter, what .ci/run runs."""
    assert command in (root / file).read_text(encoding="utf-8")


def test_links_in_documents_lead_somewhere(root):
    """Every relative link in a Markdown file names a file or folder that is there."""
    dead = [
        f"{path.relative_to(root)}: {target}"
        for path in tracked_files(root)
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8"))
        if "://" not in target and not (path.parent / target).exists()
    ]

    assert not dead, "\n".join(dead)


def test_each_room_says_what_belongs_in_it(root):
    """Every top-level folder that git tracks has a README.md of more than a heading."""
    tops = {path.relative_to(root).parts[0] for path in tracked_files(root)}
    rooms = [root / top for top in tops if not top.startswith(".") and (root / top).is_dir()]

    silent = [
        room.name
        for room in rooms
        if not (room / "README.md").is_file()
        or len((room / "README.md").read_text(encoding="utf-8").split()) < 20
    ]

    assert not silent, "\n".join(silent)


def test_constraints_pin_every_direct_dependency_within_its_range(root):
    """constraints.txt is complete for core and tests, exact, and agrees with pyproject.toml."""
    project = project_settings(root)["project"]
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    versions = {}
    for pin in pins:
        ((operator, version),) = [(part.operator, part.version) for part in pin.specifier]
        assert operator == "=="
        versions[canonicalize_name(pin.name)] = version

    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    wrong = [
        line
        for line in map(Requirement, wanted)
        if not line.specifier.contains(versions.get(canonicalize_name(line.name), "0"))
    ]

    assert not wrong, "\n".join(wrong)
    assert len(versions) == len(pins)


def test_test_folders_shadow_nothing(root):
    """tests/ is on the path for `support`: a package in it would hide an installed one."""
    packages = {path.parent.name for path in (root / "tests").glob("*/__init__.py")}

    assert {"support"} == packages
    assert not (root / "tests" / "geneb").exists()


def test_test_files_have_names_of_their_own(root):
    """A failing test's file is found by its name."""
    names = [path.name for path in (root / "tests").rglob("test_*.py")]

    assert sorted(set(names)) == sorted(names)
