"""``--json`` of every command, on what a stranger may have named."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from typing import Any

import click
import pytest
from support.command import geneb
from support.fake_hub import serve_hub
from support.small_stores import random_task, write_store
from support.submissions import submission, write_submission

from geneb.cli import geneb as program

# A terminal's escape as one character, one that deletes, one that turns the direction of writing:
# json.dumps escapes none of them.
HOSTILE = "\x9b31m\x7f\u202ename"


def json_commands() -> set[str]:
    """The commands with ``--json``, by their names."""

    def walk(command: click.Command, name: str) -> set[str]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            return {
                found
                for inner in command.list_commands(context)
                for found in walk(command.get_command(context, inner), f"{name} {inner}".strip())
            }
        options = {text for option in command.params for text in option.opts}
        return {name} if "--json" in options else set()

    return walk(program, "")


def printable(text: str) -> bool:
    return not any(
        unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co") and char != "\n" for char in text
    )


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value, keys too."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, str):
        yield value


@pytest.fixture
def place(tmp_path):
    """A folder whose own name is hostile."""
    path = tmp_path / HOSTILE
    path.mkdir()
    return path


def doctor(place):
    (place / "torch.py").write_text(
        "from types import SimpleNamespace as Namespace\n"
        f"card = Namespace(name={HOSTILE!r}, total_memory=1)\n"
        "cuda = Namespace(device_count=lambda: 1, get_device_properties=lambda _: card)\n"
        "backends = Namespace(mps=Namespace(is_available=lambda: False))\n"
        "Tensor = type('Tensor', (), {})\n",
        encoding="utf-8",
    )
    return geneb("doctor", "--json", env={"PYTHONPATH": str(place)})


def embed(place):
    (place / "own.csv").write_text("text,label,split\nACGT,a,train\nACGA,b,test\n")
    args = ("--data", place, "--available", "--store", place / "s.zarr", "--json")
    return geneb("embed", "--model", "kmer4", *args)


def probe(place):
    broken = random_task()
    broken.train_labels[:] = 0
    store = write_store(place / "s.zarr", {"bad": broken})
    return geneb("probe", store, "--out", place / "out", "--json")


def submission_validate(place):
    document = submission("model")
    document["meta"]["display"] = HOSTILE
    return geneb("submission", "validate", write_submission(place, document), "--json")


def submission_reproduce(place):
    written = write_submission(place, submission("model"))
    store = write_store(place / "s.zarr", {"own": random_task()})
    args = ("--store", store, "--data", place, "--out", place / "out", "--json")
    return geneb("submission", "reproduce", written, *args)


def store_info(place):
    return geneb("store", "info", write_store(place / "s.zarr", {"own": random_task()}), "--json")


def store_verify(place):
    store = write_store(place / "s.zarr", {"own": random_task()})
    return geneb("store", "verify", store, "--json")


def store_reproduce(place):
    assert embed(place).code == 0
    args = ("--model", "kmer3", "--data", place, "--json")
    return geneb("store", "reproduce", place / "s.zarr", *args)


def model_list(place):
    return geneb("model", "list", "--json")


def model_show(place):
    return geneb("model", "show", "GROVER", "--json")


def model_fetch(place):
    commit = "0" * 40
    with serve_hub("some/model", commit, {"model.safetensors": b"weights"}) as hub:
        place_of = {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": str(place), "HF_HUB_OFFLINE": "0"}
        named = ("--weights", "some/model", "--revision", commit)
        return geneb("model", "fetch", "hf", *named, "--json", env=place_of)


def task_list(place):
    return geneb("task", "list", "--json")


def task_show(place):
    (place / "own.csv").write_text(
        f"text,label,split\nACGT,{HOSTILE},train\nACGT,b,test\n", encoding="utf-8"
    )
    return geneb("task", "show", "own", "--data", place, "--json")


def leaderboard_show(place):
    document = submission("model")
    document["meta"]["display"] = HOSTILE
    return geneb("leaderboard", "show", write_submission(place, document), "--json")


def analyze_protocols(place):
    broken = random_task()
    broken.train_labels[:] = 0
    store = write_store(place / "s.zarr", {"bad": broken})
    return geneb("analyze", "protocols", store, "--json")


def analyze_backends(place):
    store = write_store(place / "s.zarr", {"own": random_task()})
    args = ("--tasks", "own", "--backends", "sklearn,torch:cpu", "--json")
    return geneb("analyze", "backends", store, *args, "--out", place / "calibration.json")


CASES = {
    function.__name__.replace("_", " "): function
    for function in (
        doctor, embed, probe, submission_validate, submission_reproduce, store_info, store_verify,
        store_reproduce, task_list, task_show, leaderboard_show, model_list, model_show,
        model_fetch, analyze_protocols, analyze_backends,
    )
}  # fmt: skip


def test_every_command_has_a_case():
    """A new one with ``--json`` needs one, too."""
    assert set(CASES) == json_commands()


@pytest.mark.parametrize("name", sorted(CASES))
def test_nothing_that_steers_a_terminal_is_printed(name, place):
    """Neither on stdout nor on stderr; what is printed on stdout is JSON all the same."""
    outcome = CASES[name](place)

    assert outcome.code in (0, 1, 2)
    assert "Traceback" not in outcome.err
    assert printable(outcome.out)
    assert printable(outcome.err)
    if outcome.out:
        json.loads(outcome.out)


@pytest.mark.parametrize("name", ["doctor", "probe", "task show"])
def test_a_hostile_name_keeps_its_value(name, place):
    """It is escaped, not changed."""
    outcome = CASES[name](place)

    assert any(HOSTILE in text for text in strings(outcome.json))


def test_nobody_else_prints_json(root):
    """One function does, for all commands."""
    others = [path for path in (root / "geneb/cli").glob("*.py") if path.name != "console.py"]
    for path in others:
        text = path.read_text(encoding="utf-8")
        assert "pretty_json" not in text, path.name
        assert "json.dumps" not in text, path.name
