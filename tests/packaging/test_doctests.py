"""The examples in docstrings, run by import name: rooms have another name than their folder."""

from __future__ import annotations

import doctest
import importlib

import pytest
from support.source import module_files


@pytest.fixture(scope="module")
def with_examples(root) -> list[str]:
    """The modules with an example in them."""
    return [
        name
        for name, path in module_files(root).items()
        if ">>> " in path.read_text(encoding="utf-8")
    ]


def test_examples_give_what_they_promise(with_examples):
    """Each ``>>>`` line is followed by what it really returns."""
    failed = {
        name: failures
        for name in with_examples
        if (failures := doctest.testmod(importlib.import_module(name)).failed)
    }

    assert failed == {}
