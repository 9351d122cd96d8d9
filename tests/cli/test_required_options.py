"""An option that must be given is asked for, by every command that has one."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from geneb.cli import COMMANDS, geneb
from geneb.errors import GenebError


def commands_of(group: click.Group, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from commands_of(command, (*words, name))
        elif any(parameter.required for parameter in command.params):
            yield (*words, name)


@pytest.mark.parametrize("words", list(commands_of(geneb, ())), ids=" ".join)
def test_what_is_missing_is_said(words):
    """One line about it and exit code 2, before anything is done."""
    outcome = CliRunner().invoke(geneb, list(words), env={"GENEB_DATA": None, "GENEB_STORE": None})

    assert outcome.exit_code == 2, outcome.output
    assert "Error: Missing " in outcome.output


def test_there_are_such_commands():
    """Else the test above would hold without looking."""
    assert ("embed",) in list(commands_of(geneb, ()))
    assert len(COMMANDS) > 1


def commands_with(option: str, group: click.Group, words: tuple[str, ...] = ()) -> Iterator:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from commands_with(option, command, (*words, name))
        elif any(option in parameter.opts for parameter in command.params):
            yield (*words, name)


@pytest.mark.parametrize("words", list(commands_with("--out", geneb)), ids=" ".join)
@pytest.mark.parametrize("below", ["", "results/more"])
def test_nothing_is_written_among_a_store_s_files(words, below, tmp_path):
    """Whatever has --out: a store vouches for all that lies in it."""
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / "zarr.json").write_text("{}")

    outcome = CliRunner().invoke(geneb, [*words, "--out", str(tmp_path / "a.zarr" / below)])

    assert isinstance(outcome.exception, GenebError), outcome.output
    assert "embedding store" in str(outcome.exception)
    assert [entry.name for entry in (tmp_path / "a.zarr").iterdir()] == ["zarr.json"]
