"""The page for somebody who sees it for the first time: words, ways on, searches, empty views."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from geneb.benchmark.sizes import load_test_sizes
from geneb.benchmark.spec import load_spec

LUCA, SPLICE = "LucaOne-default-step36M", "splicebert-1024nt"


@pytest.mark.parametrize("search", ["arabidopsis promoter", "PROMOTER  Arabidopsis", "plant max"])
def test_task_search_takes_words_in_any_order(visit: Any, search: str) -> None:
    """Each word is somewhere in label, id or category, as in the search for models."""
    visit.open(f"view=tasks&tq={search.replace(' ', '+')}")
    wanted = {
        task.id
        for task in load_spec().tasks
        if all(
            word in f"{task.label} {task.id} {task.category}".lower()
            for word in search.lower().split()
        )
    }

    assert 0 < len(wanted) < 10
    assert set(visit.column("Id")) == wanted


def test_category_page_narrows_to_the_tasks_of_a_search(visit: Any) -> None:
    """Its columns are those tasks; the page says that the category's score is still of all."""
    page = visit.open("view=category&category=Promoters&tq=arabidopsis&max=500")

    assert visit.headings()[4:] == ["iPro Arabidopsis NonTATA", "iPro Arabidopsis TATA"]
    assert "22 tasks. 2 of them match the search" in page.locator("#lead").inner_text()


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (".5", ".5"),
        ("1e3", "1e3"),
        ("20.", ""),
        ("7", "7"),
        ("-1", ""),
        ("x", ""),
        ("1e999", ""),
    ],
)
def test_parameters_are_read_as_number_fields_write_them(visit: Any, typed: str, kept: str) -> None:
    """What a number field lets through filters; what is no size at all is no filter."""
    page = visit.open(f"min={typed}")

    assert page.evaluate("state.parse(location.hash).min") == kept
    assert page.locator("#search").input_value() == ""
    assert len(visit.rows()) == (
        41 if not kept else sum(p >= float(kept) * 1e6 for p in _parameters(visit))
    )


def _parameters(visit: Any) -> list[int]:
    return visit.page.evaluate("board.models.map(model => model.params)")


@pytest.mark.parametrize("view", ["overall", "categories", "tasks", "task", "model", "chart"])
def test_nothing_found_offers_everything(visit: Any, view: str) -> None:
    """An empty table says why and has a button that shows all again; the focus is not lost."""
    page = visit.open(
        f"view={view}&q=nosuchmodel&tq=nosuchtask&task=iDNA_ABF_5mC&model={LUCA}&regime=1shot"
    )
    assert page.locator(".leaders").count() == 0
    page.locator(".nothing button").first.focus()
    page.keyboard.press("Enter")
    visit.settle()

    assert page.locator(".nothing").count() == 0
    assert "regime=1shot" in page.evaluate("location.hash")
    assert page.evaluate("document.activeElement.id") == "title"


@pytest.mark.parametrize(("what", "rows"), [("model", 41), ("task", 100), ("category", 41)])
def test_a_link_to_something_unknown_leads_on(visit: Any, what: str, rows: int) -> None:
    """The page says that there is no such thing, and links to all that there are."""
    page = visit.open(f"view={what}&{what}=nobody")
    assert page.locator("h1").inner_text() == f"No such {what}"

    page.locator("main a").click()
    page.wait_for_selector("tbody tr")

    assert len(visit.rows()) == rows


def test_abbreviations_are_spelled_out(visit: Any) -> None:
    """Categories, kinds of model and collections of tasks are not left to guessing."""
    page = visit.open(f"view=model&model={LUCA}")
    assert "T-enc (Transformer encoder)" in page.locator(".facts").inner_text()

    page = visit.open("view=category&category=Species+Clf.")
    assert page.locator("#lead").inner_text().startswith("Species classification: 3 tasks.")

    text = visit.open("view=help").locator("main").inner_text()
    prefixes = {task.label.split()[0] for task in load_spec().tasks}
    assert {"NT", "NT-rev", "GUE", "GB", "PGB", "iPro"} <= prefixes
    assert all(f"{one}," in text or f"{one} and" in text for one in ("NT", "GUE", "GB", "PGB"))


def test_task_page_says_how_many_sequences_are_tested(visit: Any) -> None:
    """The number tells how fine a score can be; where it is not known, that is said."""
    sizes = load_test_sizes()
    task = "leannmlindsey_GUE_mouse_3"
    unknown = [one for one in load_spec().task_ids if one not in sizes]

    for one in [task, *unknown[:1]]:
        facts = visit.open(f"view=task&task={one}").locator(".facts").inner_text()
        assert (f"{sizes[one]:,}" if one in sizes else "not known for certain") in facts


@pytest.mark.parametrize("hint", ["whole train split", "one sequence", "Matthews", "of the F1"])
def test_switches_explain_themselves(visit: Any, hint: str) -> None:
    """Regimes and metrics have a tip each."""
    page = visit.open()

    assert page.locator(f"#controls label[title*='{hint}']").count() == 1


@pytest.mark.parametrize("view", ["model", "compare"])
def test_downloads_name_no_filter_that_plays_no_part(visit: Any, view: str) -> None:
    """Pages of models show all of them and rank among all, whatever filters the address has."""
    filters = "max=500&q=omni&hide=official&among=shown"
    page = visit.open(f"view={view}&model={LUCA}&compare={LUCA}&compare={SPLICE}&{filters}")
    buttons = page.locator(".downloads button", has_text="JSON")
    for number in range(buttons.count()):
        with page.expect_download() as started:
            buttons.nth(number).click()
        document = json.loads(Path(started.value.path()).read_text(encoding="utf-8"))

        assert document["ranks"] == "among all models"
        assert document["protocol"] == load_spec().protocol.id
        assert not {"search", "parameters_in_millions", "provenance_left_out"} & set(document)
