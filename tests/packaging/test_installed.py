"""The wheel installed without torch, away from the checkout."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping

import pytest
from support.source import imports, module_files

# What the core installation does not bring.
ABSENT = {"pytest", "torch", "transformers"}

# Where alone it may be needed to import a module: encoders, and suites for other people's tests.
MAY_NEED_IT = ("geneb.extractors.", "geneb.testing")

# Imports each module named on the command line; prints those that did not go, and why.
IMPORT_ALL = """
import importlib, json, sys
failed = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        failed[name] = str(error)
print(json.dumps(failed))
"""


@pytest.fixture(scope="module")
def at_start(root) -> dict[str, set[str]]:
    """Each module, and what importing it imports: its packages and what stands at its start."""
    files = module_files(root)
    return {
        name: {
            name.rpartition(".")[0],
            *(
                used.target if used.target in files else used.target.partition(".")[0]
                for used in imports(path.read_text(encoding="utf-8"), files)
                if used.at_start
            ),
        }
        for name, path in files.items()
    }


def reached(module: str, at_start: Mapping[str, set[str]]) -> set[str]:
    """All that importing a module imports, directly or not."""
    seen: set[str] = set()
    ahead = [module]
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            ahead += at_start.get(name, ())
    return seen


def test_the_environment_has_neither_torch_nor_the_checkout(installed, root):
    """What the other tests in this file rely on."""
    where = installed.run("python", "-c", "import geneb; print(geneb.__file__)")
    torch = installed.run("python", "-c", "import torch")

    assert where.out.startswith(str(installed.folder)), where.err
    assert str(root) not in where.out
    assert "No module named 'torch'" in torch.err


def test_every_module_that_needs_no_encoder_imports(installed, at_start):
    """Only modules that run an encoder need torch to be imported; no other module does."""
    plain = [name for name in at_start if not reached(name, at_start) & ABSENT]
    wrong = [name for name in set(at_start) - set(plain) if not name.startswith(MAY_NEED_IT)]

    outcome = installed.run("python", "-W", "error", "-c", IMPORT_ALL, *plain)

    assert wrong == []
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out) == {}


def test_the_demo_runs(installed, demo_data):
    """End to end on the tasks in the wheel, from a folder that is not the checkout."""
    outcome = installed.run("geneb", "demo")

    assert outcome.code == 0, outcome.err
    assert "Traceback" not in outcome.err
    tasks = [path.stem for path in demo_data.glob("*.csv")]
    assert tasks
    assert [task for task in tasks if task not in outcome.out] == []


def test_a_bare_source_folder_says_that_it_is_no_installation(root, tmp_path):
    """Without the rooms there is one clear ImportError, not a failure somewhere later."""
    shutil.copytree(root / "geneb", tmp_path / "geneb")

    # -I and -S: neither variables nor an installed geneb can help.
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import geneb"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )

    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("ImportError: geneb's rooms benchmark, extractors, leaderboard, stores")
    assert "python -m pip install" in last
    assert "During handling" not in done.stderr
