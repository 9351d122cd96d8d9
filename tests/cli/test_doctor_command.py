"""``geneb doctor`` in a sound installation, and in some that are not."""

from __future__ import annotations

import os
import shutil
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.command import Outcome, geneb
from support.source import project_settings

from geneb import diagnosis
from geneb.base import env
from geneb.extractors import registry
from geneb.extractors.registry import model_ids

# Stands in for torch where a test is about something else: importing torch takes seconds.
TORCH = """
from types import SimpleNamespace as Namespace
card = Namespace(name="Card", total_memory=2**30)
cuda = Namespace(device_count=lambda: 2, get_device_properties=lambda index: card)
backends = Namespace(mps=Namespace(is_available=lambda: False))
Tensor = type("Tensor", (), {})
"""


def doctor(folder: Path, *args: str, torch: str = TORCH, **variables: str) -> Outcome:
    """Run it where modules and metadata in a folder come first."""
    (folder / "torch.py").write_text(torch, encoding="utf-8")
    # From there, too: in a checkout the metadata of its last build would come first.
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    return geneb("doctor", *args, cwd=folder, env={"PYTHONPATH": path, **variables})


@pytest.fixture
def with_metadata(tmp_path):
    """Run it where a package of this version and these requirements seems to be installed."""

    def run(name: str, version: str, *lines: str) -> Outcome:
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        text = "\n".join(("Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *lines))
        (folder / "METADATA").write_text(text + "\n", encoding="utf-8")
        return doctor(tmp_path, "--json")

    return run


def failing(outcome: Outcome) -> list[dict[str, Any]]:
    """The checks that do not hold."""
    return [check for check in outcome.json["checks"] if not check["holds"]]


@pytest.fixture(scope="module")
def report():
    """What it says of the environment that the tests run in."""
    outcome = geneb("doctor", "--json", fresh=True)
    assert outcome.code == 0, outcome.out
    return outcome.json


def test_a_sound_installation_is_said_to_be_sound(tmp_path):
    """Exit code 0; the parts that a person asks about are all named."""
    outcome = doctor(tmp_path)

    assert outcome.code == 0, outcome.out
    assert "The installation is sound" in outcome.out
    for part in ("processor", "cores", "BLAS", "zarr", "python -m pip install", "sklearn", "cpu"):
        assert part in outcome.out


def test_the_report_holds_what_results_depend_on(report):
    """Versions, machine, BLAS, devices, backends, models."""
    assert report["sound"] is True
    assert {"python", "geneb", "numpy", "scikit-learn", "zarr"} <= set(report["versions"])
    assert report["machine"]["cores"] >= 1
    assert report["machine"]["memory_bytes"] > 2**28
    assert report["machine"]["free_disk_bytes"] >= 0
    assert any(library["user_api"] == "blas" for library in report["blas"])
    assert report["devices"][0]["name"] == "cpu"
    assert {"name": "sklearn", "usable": True, "reason": ""} in report["backends"]
    assert [one["name"] for one in report["backends"]] == ["sklearn", "torch", "cuml"]
    assert report["cuml_accel"] is False
    assert len(model_ids()) == report["models"]


def test_the_extras_are_those_of_the_metadata(report):
    """In their order, each with what it is for and the command that brings it."""
    names = metadata("geneb").get_all("Provides-Extra")

    assert names == [extra["name"] for extra in report["extras"]]
    for extra in report["extras"]:
        assert extra["install"] == f"python -m pip install 'geneb[{extra['name']}]'"


def test_every_extra_has_a_purpose(root):
    """What the metadata cannot say is written down for each extra, and for no other."""
    declared = project_settings(root)["project"]["optional-dependencies"]

    assert set(declared) == set(diagnosis.EXTRA_PURPOSES)


def test_rooms_and_data_files_are_those_of_the_project(root):
    """What doctor looks for is what pyproject.toml packs."""
    settings = project_settings(root)["tool"]["setuptools"]
    helpers = {"geneb.base", "geneb.cli", "geneb.demo", "geneb.testing"}

    rooms = {name for name in settings["packages"] if name.startswith("geneb.")} - helpers

    assert rooms == {f"geneb.{room}" for room in diagnosis.ROOMS}
    assert {
        package: list(patterns) for package, patterns in diagnosis.DATA_FILES.items()
    } == settings["package-data"]


def test_an_extra_that_is_missing_is_offered(with_metadata):
    """Extras are read from the metadata: one that nobody has ever heard of is listed."""
    report = with_metadata(
        "geneb",
        "0.1.0",
        "Provides-Extra: unheard",
        "Provides-Extra: more",
        'Requires-Dist: no-such-package>=2; extra == "unheard"',
        'Requires-Dist: numpy>=1; extra == "unheard"',
        'Requires-Dist: geneb[unheard]; extra == "more"',
    ).json

    assert [
        {
            "name": name,
            "purpose": "",
            "missing": ["no-such-package>=2"],
            "install": f"python -m pip install 'geneb[{name}]'",
        }
        for name in ("unheard", "more")
    ] == report["extras"]


def test_a_package_that_is_too_old_fails(with_metadata):
    """zarr before 3.1.3 does not write atomically: exit code 1, and the command that mends it."""
    outcome = with_metadata("zarr", "3.1.2")

    (zarr,) = failing(outcome)
    assert outcome.code == 1
    assert outcome.json["sound"] is False
    assert zarr["what"] == "zarr>=3.1.3 is installed"
    assert zarr["found"] == "zarr 3.1.2"
    assert zarr["fix"] == "python -m pip install 'zarr>=3.1.3'"


def test_a_package_that_is_not_there_fails(with_metadata):
    """What the metadata asks for is looked for."""
    outcome = with_metadata("geneb", "0.1.0", "Requires-Dist: no-such-package>=2")

    (check,) = failing(outcome)
    assert outcome.code == 1
    assert check["what"] == "no-such-package>=2 is installed"
    assert check["found"] == "not installed"


def test_a_torch_that_cannot_be_imported_fails(tmp_path):
    """A GPU build without its libraries: said in one line, and the rest of the report is there."""
    broken = "raise OSError('libcudart.so: cannot open shared object')"

    outcome = doctor(tmp_path, torch=broken)

    assert outcome.code == 1
    assert "Traceback" not in outcome.err
    for part in ("1 of", "checks fail", "devices can be listed", "libcudart", "sklearn"):
        assert part in outcome.out


def test_what_replaces_scikit_learn_s_solver_is_told(tmp_path):
    """With cuml.accel active the backend sklearn is not what its name says."""
    report = doctor(tmp_path, "--json", CUML_ACCEL_ENABLED="1").json

    (sklearn,) = (backend for backend in report["backends"] if backend["name"] == "sklearn")
    assert report["cuml_accel"] is True
    assert sklearn["usable"] is False
    assert "cuml.accel" in sklearn["reason"]


def test_the_devices_that_torch_sees_are_listed(tmp_path):
    """By the names that --device takes."""
    devices = doctor(tmp_path, "--json").json["devices"]

    assert [device["name"] for device in devices] == ["cpu", "cuda:0", "cuda:1"]
    assert devices[2] == {"name": "cuda:1", "description": "Card", "memory_bytes": 2**30}


@pytest.mark.parametrize(
    "pattern",
    [one for one in diagnosis.DATA_FILES["geneb.leaderboard"] if one != "verifications/*.json"],
)
def test_the_leaderboard_s_data_is_missed(tmp_path, monkeypatch, root, pattern):
    """Each kind of file, at any depth; folders of the right name are no files."""
    room = tmp_path / "leaderboard"
    shutil.copytree(root / "leaderboard", room)
    for path in room.glob(pattern):
        path.unlink()
        path.mkdir()
    monkeypatch.setattr(diagnosis.importlib.resources, "files", lambda _: room)
    monkeypatch.setattr(
        diagnosis, "DATA_FILES", {"geneb.leaderboard": diagnosis.DATA_FILES["geneb.leaderboard"]}
    )

    (gone,) = (check for check in diagnosis._data_file_checks() if not check.holds)

    assert gone.what == f"geneb.leaderboard brings {pattern}"
    assert gone.found == "nothing"


def test_every_library_that_an_extra_brings_is_recorded(root):
    """Under the name of the distribution that provides it; what only tests need is not."""
    extras = project_settings(root)["project"]["optional-dependencies"]
    brought = {
        canonicalize_name(Requirement(line).name)
        for extra in extras.keys() - {"test", "all"}
        for line in extras[extra]
    }

    recorded = {canonicalize_name(name) for name in env.CORE_PACKAGES + env.OPTIONAL_PACKAGES}

    assert brought <= recorded


@pytest.mark.parametrize("name", ["cuml", "cuml-cu12", "cuml-cu13"])
def test_the_version_of_cuml_is_told_whatever_provides_it(with_metadata, name):
    """From PyPI its name says for which CUDA it was built."""
    assert with_metadata(name, "25.10.0").json["versions"][name] == "25.10.0"


@pytest.mark.parametrize("family", ["kmer:NoClass", "nomodule:KmerExtractor"])
def test_a_model_without_its_class_is_named(monkeypatch, family):
    """Whether the module is missing or only what should be in it."""
    changed = registry.models()["kmer3"].model_copy(update={"family": family})
    monkeypatch.setattr(registry, "models", lambda: {"kmer3": changed})

    check, count = diagnosis._models()

    assert (check.holds, check.found, count) == (False, "no class for kmer3", 1)
    assert "pip install" in check.fix


def test_files_and_rooms_that_are_gone_are_named(monkeypatch):
    """Each by its package, with what to do."""
    monkeypatch.setattr(diagnosis, "DATA_FILES", {"geneb.demo": ("*.csv", "*.parquet")})
    monkeypatch.setattr(diagnosis, "ROOMS", ("stores", "cellar"))

    found = diagnosis.diagnose(Path())

    gone = {check.what: check.fix for check in found.checks if not check.holds}
    assert set(gone) == {"geneb.demo brings *.parquet", "geneb.cellar can be imported"}
    assert all("pip install" in fix for fix in gone.values())
    assert not found.sound
