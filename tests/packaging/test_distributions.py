"""What a release contains: every package, every data file, and nothing that is not the program."""

from __future__ import annotations

import email
import tarfile
import zipfile
from pathlib import Path

import pytest
from support.source import package_folders, project_settings

# Folders with Python files that are not part of the program.
NOT_PACKAGES = {"tests", "tools"}

# For readers of the source: says what belongs in the room.
NOT_SHIPPED = {"README.md"}

# Built by the program from what it ships; large, and for readers of the source as well.
BUILT = Path("leaderboard", "tables")


def python_folders(top: Path) -> set[Path]:
    """A folder and those below it that hold Python files."""
    return {path.parent for path in top.rglob("*.py")}


def program_files(project: Path) -> set[str]:
    """Every file of the program under the name that it has when installed."""
    folders = package_folders(project)
    places = {folder: package.replace(".", "/") for package, folder in folders.items()}
    files = set()
    for top in {project / folder.relative_to(project).parts[0] for folder in folders.values()}:
        for path in top.rglob("*"):
            built = path.relative_to(project).is_relative_to(BUILT)
            if path.is_dir() or built or path.name in NOT_SHIPPED:
                continue
            package = next(folder for folder in path.parents if folder in places)
            files.add(f"{places[package]}/{path.relative_to(package).as_posix()}")
    return files


@pytest.fixture(scope="module")
def wheel_files(distributions) -> set[str]:
    """What the wheel holds."""
    with zipfile.ZipFile(distributions.wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def metadata(distributions):
    """The wheel's core metadata."""
    with zipfile.ZipFile(distributions.wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def test_the_listed_packages_are_the_folders_that_hold_python_files(project):
    """A new folder that nobody listed would be missing from every installation."""
    tops = {path.parent for path in project.glob("*/__init__.py")}
    tops = {path for path in tops if path.name not in NOT_PACKAGES}
    expected = {folder for top in tops for folder in python_folders(top)}

    assert expected == set(package_folders(project).values())


def test_each_package_has_an_init_file(project):
    """None is a namespace package, which another installed project could add modules to."""
    bare = [
        package
        for package, folder in package_folders(project).items()
        if not (folder / "__init__.py").is_file()
    ]

    assert bare == []


def test_the_mapped_rooms_are_the_top_level_packages(project):
    """package-dir maps each top-level package into geneb, under its own name."""
    mapped = project_settings(project)["tool"]["setuptools"]["package-dir"]
    tops = {path.parent.name for path in project.glob("*/__init__.py")} - NOT_PACKAGES

    assert {name if name == "geneb" else f"geneb.{name}": name for name in tops} == mapped


def test_the_wheel_holds_the_whole_program_and_nothing_else(project, wheel_files):
    """Every module and every data file; only geneb lands in site-packages."""
    shipped = {name for name in wheel_files if ".dist-info/" not in name}

    assert program_files(project) == shipped


def test_the_wheel_is_typed_and_brings_its_data(wheel_files):
    """The files that are neither code nor found by an import."""
    expected = {
        "geneb/benchmark/test_sizes.json",
        "geneb/demo/demo_chloroplast_coding.csv",
        "geneb/demo/demo_splice_junctions.csv",
        "geneb/leaderboard/submission.schema.json",
        "geneb/leaderboard/submissions/GROVER.json",
        "geneb/py.typed",
    }

    assert expected <= wheel_files


def test_the_sdist_holds_the_whole_checkout(project, distributions):
    """Tests, tools and constraints too: what a distribution's packager needs to check a build."""
    with tarfile.open(distributions.sdist) as archive:
        members = archive.getmembers()
    inside = {member.name.partition("/")[2] for member in members if member.isfile()}
    checkout = {
        path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file()
    }
    made = {name for name in checkout if name.startswith("geneb.egg-info/")}

    assert set() == checkout - made - inside
    assert {"tests/conftest.py", "constraints.txt", "CONTRIBUTING.md", ".ci/run"} <= inside


def test_the_metadata_names_the_licence_and_brings_its_text(metadata, wheel_files):
    """Apache-2.0 as an SPDX expression, and the licence file in the wheel."""
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel_files)


def test_the_version_is_the_program_s_own(metadata, installed):
    """One number: in the metadata, in `geneb.__version__` and in `geneb --version`."""
    said = installed.run("geneb", "--version")

    assert f"geneb, version {metadata['Version']}\n" == said.out


def test_the_core_installation_asks_for_no_encoder_library(metadata):
    """Probing and reporting cached embeddings needs no torch."""
    core = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]

    assert core
    assert not [line for line in core if line.startswith(("torch", "transformers"))]
