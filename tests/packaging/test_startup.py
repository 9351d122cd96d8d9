"""What the command line loads before it has work to do."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from geneb.cli import COMMANDS

# Each costs between a tenth of a second and several seconds, more on a cluster's file system.
HEAVY = ("h5py", "numpy", "pandas", "pydantic", "rich", "scipy", "sklearn", "torch", "zarr")

# Runs the command line, then tells on stderr's last line which of the heavy packages it loaded.
WATCHED = """
import atexit, json, sys
heavy = json.loads(sys.argv.pop(1))
atexit.register(lambda: print(json.dumps([n for n in heavy if n in sys.modules]), file=sys.stderr))
from geneb.cli import main
main(sys.argv[1:])
"""

# Asks a command, and everything below it, for help; on stderr's last line: whether each answered,
# and which of the heavy packages were loaded then.
WALK = """
import contextlib, io, json, sys
import click
from geneb.cli import geneb, main
heavy = json.loads(sys.argv.pop(1))
found = {}
def walk(command, words):
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            main([*words, "--help"])
    except SystemExit as stop:
        answered = stop.code == 0 and bool(out.getvalue())
    found[" ".join(words)] = [answered, *(name for name in heavy if name in sys.modules)]
    context = click.Context(command)
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        walk(command.get_command(context, name), [*words, name])
walk(geneb.get_command(click.Context(geneb), sys.argv[1]), sys.argv[1:])
print(json.dumps(found), file=sys.stderr)
"""


def python(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def loaded_by(*args: str) -> list[str]:
    """The heavy packages that a command line loads."""
    done = python(WATCHED, json.dumps(HEAVY), *args)
    assert done.stdout.strip(), "the command printed nothing"
    return json.loads(done.stderr.splitlines()[-1])


def test_the_watch_sees_a_heavy_package():
    """The same watch reports numpy where it is loaded."""
    done = python("import numpy\n" + WATCHED, json.dumps(HEAVY), "--version")

    assert json.loads(done.stderr.splitlines()[-1]) == ["numpy"]


@pytest.mark.parametrize("option", ["--help", "-h", "--version", "-V"])
def test_the_bare_command_line_loads_nothing_heavy(option):
    """`geneb --help` and `geneb --version` answer at once."""
    assert loaded_by(option) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_loads_nothing_heavy(command):
    """`geneb COMMAND --help`, and the help of each command below it, answer at once."""
    done = python(WALK, json.dumps(HEAVY), command)

    asked = json.loads(done.stderr.splitlines()[-1])
    assert command in asked
    assert {words: told for words, told in asked.items() if told != [True]} == {}
