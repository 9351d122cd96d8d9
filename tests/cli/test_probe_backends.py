"""`geneb probe --backend`: what is asked for is what runs, and is said beside every number."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.command import check_mistake, geneb
from support.small_stores import random_task, write_store

from geneb.base.progress import Silent
from geneb.errors import InputError
from geneb.probing.backends import open_backend
from geneb.probing.probes import LogisticProbe
from geneb.probing.protocol import GENEB_LR_1
from geneb.probing.run import run_probe


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with one task."""
    return write_store(tmp_path_factory.mktemp("store") / "s.zarr", {"task": random_task(1)})


@pytest.mark.parametrize("jobs", [1, 2])
def test_torch_needs_nothing_set(store, tmp_path, jobs):
    """The command switches the array API on before anything imports scipy, workers inherit it."""
    out = tmp_path / "out"
    done = geneb(
        "probe", store, "--out", out, "--backend", "torch:cpu", "--jobs", jobs, "-q", fresh=True
    )

    assert done.code == 0, done.err
    run = json.loads((out / "small-model" / "run.json").read_text(encoding="utf-8"))
    assert run["backend"] == "torch:cpu"
    assert run["versions"]["torch"]
    assert run["environment"]["device"]
    assert ",torch:cpu," in (out / "small-model" / "tasks" / "task.csv").read_text(encoding="utf-8")


def test_backends_do_not_mix_in_one_folder(store, tmp_path):
    """Whichever came first; nothing of it is touched."""
    out = tmp_path / "out"
    assert geneb("probe", store, "--out", out, "-q").code == 0
    table = out / "small-model" / "tasks" / "task.csv"
    before = table.read_bytes()

    done = geneb("probe", store, "--out", out, "--backend", "torch:cpu", "-q")

    check_mistake(done, "results of another run", "sklearn there, torch:cpu here")
    assert table.read_bytes() == before


def test_the_converged_protocol_is_the_same_on_every_backend(store, tmp_path):
    """Scores to the last digit, each fit at its optimum; they are not the published protocol's."""
    scores = {}
    for backend in ("sklearn", "torch:cpu"):
        done = geneb(
            "probe", store, "--out", tmp_path / backend.replace(":", "-"), "--json", "-q",
            "--protocol", "geneb-lr-1-converged", "--backend", backend,
        )  # fmt: skip
        assert done.code == 0, done.err
        (model,) = done.json["models"]
        assert (model["protocol"], model["unconverged"]) == ("geneb-lr-1-converged", 0)
        scores[model["backend"]] = model["results"]

    assert scores["sklearn"] == scores["torch:cpu"]
    packed = geneb(
        "submission", "pack", tmp_path / "sklearn" / "small-model", "--out", tmp_path / "packed",
        "--display", "X", "--params", "1", "--partial",
    )  # fmt: skip
    check_mistake(packed, "published protocol", "geneb-lr-1-converged")


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        ("torch:tpu", ["no such device", "torch:cpu"]),
        ("sklearn:cuda", ["no such backend"]),
        ("", ["no such backend"]),
    ],
)
def test_a_backend_that_is_not_there_starts_nothing(store, tmp_path, backend, words):
    """Exit code 2, one message, nothing written."""
    out = tmp_path / "out"
    check_mistake(geneb("probe", store, "--out", out, "--backend", backend), *words)
    assert not out.exists()


def test_a_probe_that_a_backend_cannot_fit_is_refused(store, tmp_path, monkeypatch):
    """Before anything is written."""

    class Narrow(LogisticProbe):
        backends = ("sklearn",)

    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with pytest.raises(InputError, match="cannot fit this probe"):
        run_probe(
            [store],
            out=tmp_path / "out",
            tasks=[],
            protocol=replace(GENEB_LR_1, probe=Narrow({"C": 1.0})),
            backend=open_backend("torch:cpu"),
            progress=Silent(),
        )
    assert not (tmp_path / "out").exists()
