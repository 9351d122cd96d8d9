"""Workflows run strangers' proposals: what must hold for them."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

WORKFLOWS = ("validate.yml", "build-and-sync.yml")


@pytest.fixture(params=WORKFLOWS)
def workflow(request, root):
    """A workflow's text."""
    return (root / ".github" / "workflows" / request.param).read_text(encoding="utf-8")


def test_every_workflow_is_looked_at(root):
    """A new one is added to this test."""
    names = {path.name for path in (root / ".github" / "workflows").iterdir()}
    assert names == set(WORKFLOWS)


def test_the_token_can_only_read(workflow):
    """One permission, at the top, and none elsewhere."""
    assert re.findall(r"^( *)permissions:\n +(.+)\n", workflow, re.MULTILINE) == [
        ("", "contents: read")
    ]
    assert workflow.count("permissions:") == 1
    assert "write" not in re.sub(r"#.*", "", workflow)


def test_other_people_s_actions_are_pinned(workflow):
    """By the commit's full id, if there are any."""
    for line in re.findall(r"uses: *(\S+)", workflow):
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", line), line


def test_a_proposal_gets_no_secret(root):
    """Its code runs, so there is nothing to steal."""
    text = (root / ".github" / "workflows" / "validate.yml").read_text(encoding="utf-8")
    assert "secrets." not in text
    assert "pull_request_target" not in text
    assert re.search(r"^on:\n  pull_request:\n", text, re.MULTILINE)


def test_nothing_is_pasted_into_a_script(workflow):
    """Expressions stand in environment variables and keys, never in a shell's lines."""
    scripts = re.findall(r"run: \|\n((?: {10,}.*\n)+)|run: (?!\|)(.+)\n", workflow)
    assert scripts
    assert not [text for pair in scripts for text in pair if "${{" in text]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_scripts_are_bash(workflow):
    """Each parses."""
    for block, line in re.findall(r"run: \|\n((?: {10,}.*\n)+)|run: (?!\|)(.+)\n", workflow):
        subprocess.run(["bash", "-n"], input=block or line, text=True, check=True)


@pytest.mark.parametrize(
    "folder",
    ["/benchmark/", "/leaderboard/submissions/", "/leaderboard/verifications/", "/.github/"],
)
def test_what_decides_has_owners(root, folder):
    """Whoever changes it needs a maintainer."""
    lines = (root / ".github" / "CODEOWNERS").read_text(encoding="utf-8").splitlines()
    assert [line.split()[1:] for line in lines if line.startswith(folder)] == [
        ["@geneb/maintainers"]
    ]
