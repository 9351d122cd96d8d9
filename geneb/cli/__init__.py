"""The command line: thin modules, one per command; what they call lives elsewhere.

Exit codes: 0 done; 1 some work failed or a check did not hold; 2 nothing was started;
130 and 143 interrupted by SIGINT and SIGTERM, resumable.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import NoReturn

import click

from geneb import __version__
from geneb.errors import GenebError

# Name of each command -> its module; a module is imported only when its command (or the list of
# commands) is asked for, and none imports numpy or scikit-learn before it runs.
COMMANDS = {
    "demo": "geneb.cli.demo",
    "run": "geneb.cli.run",
    "embed": "geneb.cli.embed",
    "probe": "geneb.cli.probe",
    "submission": "geneb.cli.submission",
    "store": "geneb.cli.store",
    "task": "geneb.cli.task",
    "model": "geneb.cli.model",
    "leaderboard": "geneb.cli.leaderboard",
    "analyze": "geneb.cli.analyze",
    "doctor": "geneb.cli.doctor",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which a newcomer needs them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(COMMANDS[cmd_name]).command


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `geneb demo`. Data goes to stdout, status to stderr.",
)
@click.version_option(__version__, "-V", "--version", prog_name="geneb")
def geneb() -> None:
    """Compare DNA foundation models: embed once, probe as often as you like."""


class Interrupted(Exception):  # noqa: N818 - not an error
    """Raised when a run stopped at a signal and can be resumed."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.exit_code = 128 + signum


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    try:
        code = geneb.main(args=args, prog_name="geneb", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        _complain("interrupted; what was finished is kept: run the same command again")
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except Interrupted as stop:
        code = stop.exit_code
    except GenebError as error:
        _complain(str(error))
        code = error.exit_code
    except BrokenPipeError:
        # Whoever read our output has gone; stdout must not be flushed again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except OSError as error:
        _complain(_describe_os_error(error))
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> None:
    from geneb.cli.console import complain

    complain(message)


def _describe_os_error(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"
