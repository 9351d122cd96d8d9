"""Model cards."""

from __future__ import annotations

import pytest
from support.results_folders import run_info, write_results
from support.small_stores import random_task, write_store

import geneb
from geneb.errors import InputError, NotFoundError
from geneb.reporting.card import FILL_IN, make_card

EVIL = "x|<script>[a](javascript:b)\n# `c`\x1b[31m\u202e"


@pytest.fixture
def made(tmp_path):
    """A store and its results."""
    store = write_store(tmp_path / "s.zarr", {"own": random_task()})
    geneb.probe(store, out=tmp_path / "out")
    return store, tmp_path / "out" / "small-model"


def test_a_store_fills_in_how_the_model_was_run(made):
    """Fingerprint, parameters, rows and counts; what nobody knows is marked."""
    card = make_card(made[:1])

    assert card.startswith("# small\\-model\n")
    assert "| parameter model | small\\-model |" in card
    assert "| own | 80 | 0 | 0 | 0 |" in card
    assert "## Probe" not in card
    for question in ("Training data", "Overlap with the benchmark", "Contact"):
        assert f"## {question}\n" in card
    assert card.count(FILL_IN) >= 9


def test_results_fill_in_the_probe(made):
    """Protocol, versions, convergence; the store's fingerprint is named."""
    card = make_card(made[1:])

    assert "| protocol | geneb\\-lr\\-1 |" in card
    assert "| fits | 11 |" in card
    assert "Store fingerprint: `" in card


def test_both_together(made):
    """In one card, the same whenever it is made."""
    card = make_card(made)

    assert "## Embeddings" in card
    assert "## Probe" in card
    assert card == make_card(made)


def test_scores_of_a_complete_model(tmp_path):
    """Macro averages, and none where a task is missing."""
    whole = make_card([write_results(tmp_path / "a", run_info())])
    part = make_card([write_results(tmp_path / "b", run_info(), ["leannmlindsey_GUE_mouse_0"])])

    assert "| full | 100/100 | 0." in whole
    assert "| full | 1/100 | - | - | - |" in part


def test_published_facts_are_not_asked_for(tmp_path):
    """They come from the model metadata."""
    card = make_card([write_results(tmp_path, run_info("GROVER"), ["leannmlindsey_GUE_mouse_0"])])

    assert "| parameters | 87,101,793 |" in card
    assert f"architecture: {FILL_IN}" not in card


def test_a_stranger_s_text_stays_text(tmp_path):
    """Whatever a run says of itself: no markup, no line of its own, no control character."""
    info = run_info(versions={"numpy": EVIL, EVIL: "1"})
    card = make_card([write_results(tmp_path, info, ["leannmlindsey_GUE_mouse_0"])])

    assert "<script>" not in card.replace("\\<script\\>", "")
    assert "\n# `c`" not in card
    assert card.replace("\n", "").isprintable()
    assert all(line.count(" | ") <= 4 for line in card.splitlines())


def test_two_models_have_two_cards(tmp_path, made):
    """Nor one model embedded in two ways."""
    other = write_results(tmp_path / "other", run_info())
    with pytest.raises(InputError, match="one model"):
        make_card([made[0], other])


def test_neither_store_nor_results(tmp_path):
    """Says so."""
    with pytest.raises(NotFoundError):
        make_card([tmp_path])
