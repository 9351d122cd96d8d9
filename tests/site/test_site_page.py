"""The page in a browser: what it shows is what the data say."""

from __future__ import annotations

import copy
import csv
import io
import json
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest

from geneb.benchmark.spec import load_model_meta, load_spec
from geneb.reporting.site import build_site

MISSING = "\N{EN DASH}"
LUCA, SPLICE = "LucaOne-default-step36M", "splicebert-1024nt"


def shown(value: float) -> str:
    """Three decimals as the page writes them: exact, halves away from zero, no minus zero."""
    text = str(Decimal(value).quantize(Decimal("0.001"), ROUND_HALF_UP))
    return "0.000" if text == "-0.000" else text


def rank(values: list[float], value: float) -> int:
    """One more than the number of larger values."""
    return 1 + sum(other > value for other in values)


def rows_of(published: Any, regime: str, document: int = 0) -> dict[str, Any]:
    """Display name -> row; display names are distinct in the published data."""
    return {row["disp"]: row for row in published[document]["data"][regime]}


def sorted_names(rows: dict[str, Any], key: Any, *, falling: bool = True) -> list[str]:
    """Names in the page's order: equals stay in the order of model ids."""
    by_id = sorted(rows.values(), key=lambda row: row["model"])
    return [row["disp"] for row in sorted(by_id, key=key, reverse=falling)]


@pytest.mark.parametrize(
    ("regime", "metric"), [("full", "MCC"), ("10shot", "Acc"), ("1shot", "F1")]
)
def test_overall_shows_every_score_and_rank(
    visit: Any, published: Any, regime: str, metric: str
) -> None:
    """All rows: macro, micro, overall rank, range of category ranks, each category's rank."""
    spec = load_spec()
    rows = rows_of(published, regime)
    visit.open(f"regime={regime}&metric={metric}")

    macros = [row[f"macro_{metric}"] for row in rows.values()]
    found = visit.rows()
    assert [row[0] for row in found] == sorted_names(rows, lambda row: row[f"macro_{metric}"])
    for cells in found:
        row = rows[cells[0]]
        ranks = [
            rank(
                [other[f"cat_{metric}"][name] for other in rows.values()],
                row[f"cat_{metric}"][name],
            )
            for name in spec.categories
        ]
        assert cells[1:4] == [
            str(rank(macros, row[f"macro_{metric}"])),
            shown(row[f"macro_{metric}"]),
            shown(row[f"micro_{metric}"]),
        ]
        assert cells[5:] == [row["submitted"], str(min(ranks)), str(max(ranks)), *map(str, ranks)]


@pytest.mark.parametrize(("regime", "metric"), [("full", "F1"), ("1shot", "MCC")])
def test_categories_show_every_score(visit: Any, published: Any, regime: str, metric: str) -> None:
    """The heatmap's numbers are the data's, for all models and categories."""
    spec = load_spec()
    rows = rows_of(published, regime)
    visit.open(f"view=categories&regime={regime}&metric={metric}")

    assert visit.headings() == ["Model", "Macro", *spec.categories]
    found = visit.rows()
    assert len(found) == len(rows)
    for name, macro, *cells in found:
        assert macro == shown(rows[name][f"macro_{metric}"])
        assert cells == [shown(rows[name][f"cat_{metric}"][one]) for one in spec.categories]


def test_heat_grows_with_the_score(visit: Any) -> None:
    """In a column, the best cell has the full colour and the worst none."""
    page = visit.open("view=categories&sort=category%3APromoters")
    places = page.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => Number(row.cells[3].style.getPropertyValue('--place')))"
    )

    assert places[0] == 1
    assert places[-1] == 0
    assert places == sorted(places, reverse=True)


def test_category_page_shows_its_tasks(visit: Any, published: Any) -> None:
    """A category's page has one column for each of its tasks."""
    spec = load_spec()
    tasks = [task for task in spec.tasks if task.category == "Splice Sites"]
    overall, by_task = rows_of(published, "full"), rows_of(published, "full", 1)
    visit.open("view=category&category=Splice+Sites")

    assert visit.headings()[4:] == [task.label for task in tasks]
    for name, _, mean, _, *cells in visit.rows():
        assert mean == shown(overall[name]["cat_MCC"]["Splice Sites"])
        assert cells == [shown(by_task[name]["task_MCC"][task.id]) for task in tasks]


def test_model_page_shows_all_its_scores(visit: Any, published: Any) -> None:
    """100 tasks, three regimes, three metrics; and what is published about the model."""
    spec = load_spec()
    page = visit.open(f"view=model&model={LUCA}")
    scores = {
        regime: next(r for r in published[1]["data"][regime] if r["model"] == LUCA)
        for regime in spec.regimes
    }
    labels = {task.label: task.id for task in spec.tasks}

    found = visit.rows(2)
    assert len(found) == 100
    for label, _, _, *cells in found:
        assert cells == [
            shown(scores[regime][f"task_{metric}"][labels[label]])
            for regime in spec.regimes
            for metric in spec.metrics
        ]
    assert [row[1] for row in visit.rows(0)] == [
        shown(scores[regime]["macro_MCC"]) for regime in spec.regimes
    ]
    facts = page.locator(".facts").inner_text()
    assert "LucaGroup/LucaOne-default-step36M" in facts
    assert "MIT" in facts


def test_task_page_ranks_all_models(visit: Any, published: Any) -> None:
    """A task's page names it, and ranks every model in it."""
    task = "leannmlindsey_GUE_mouse_3"
    rows = rows_of(published, "10shot", 1)
    page = visit.open(f"view=task&task={task}&regime=10shot")
    values = [row["task_MCC"][task] for row in rows.values()]

    found = visit.rows()
    assert page.locator("h1").inner_text() == "GUE mouse 3"
    assert [term in page.locator(".facts").inner_text() for term in ("Mouse Enh.", task)] == [
        True
    ] * 2
    assert [row[0] for row in found] == sorted_names(rows, lambda row: row["task_MCC"][task])
    for cells in found:
        value = rows[cells[0]]["task_MCC"][task]
        assert cells[1] == str(rank(values, value))
        assert cells[3] == shown(value)


def test_tasks_view_lists_and_searches_tasks(visit: Any) -> None:
    """All 100 tasks with their best model; the search narrows them."""
    page = visit.open("view=tasks")
    assert len(visit.rows()) == 100

    page.locator("#task-search").fill("mouse")
    visit.until("document.querySelectorAll('tbody tr').length < 100")

    wanted = {
        task.id
        for task in load_spec().tasks
        if "mouse" in f"{task.label} {task.id} {task.category}".lower()
    }
    assert set(visit.column("Id")) == wanted


@pytest.mark.parametrize(
    ("state", "passes"),
    [
        ("min=100&max=500", lambda row: 1e8 <= row["params"] <= 5e8),
        ("hide=official", lambda row: row["submitted"] != "official"),
        ("q=omni", lambda row: "omni" in (row["disp"] + row["model"]).lower()),
        ("q=nosuchmodel", lambda row: False),
        ("min=7000", lambda row: row["params"] >= 7e9),
    ],
)
def test_filters_keep_the_right_rows(visit: Any, published: Any, state: str, passes: Any) -> None:
    """Parameters, provenance and search, in the overall and the category view."""
    rows = rows_of(published, "full")
    wanted = {name for name, row in rows.items() if passes(row)}
    for view in ("overall", "categories"):
        page = visit.open(f"view={view}&{state}")

        assert {row[0] for row in visit.rows()} == wanted
        assert page.locator(".count").inner_text() == f"{len(wanted)} of 41 models"


def test_ranks_count_all_models_unless_asked(visit: Any, published: Any) -> None:
    """Filters leave ranks alone; with "among shown only" they begin at one again."""
    rows = rows_of(published, "full")
    small = [row["macro_MCC"] for row in rows.values() if row["params"] <= 1e8]
    every = [row["macro_MCC"] for row in rows.values()]
    page = visit.open("max=100")

    for among in (every, small):
        assert [int(text) for text in visit.column("Rank")] == [
            rank(among, rows[name]["macro_MCC"]) for name in visit.column("Model")
        ]
        page.locator("#among").check()


def test_controls_write_the_address_and_it_restores_the_view(visit: Any) -> None:
    """What was set by hand is in the address; opened anew, it shows the same."""
    page = visit.open()
    page.get_by_label("10 per class").check()
    page.get_by_label("Accuracy").check()
    page.locator("#search").fill("multi")
    page.locator("#max").fill("600")
    page.get_by_label("self-reported").uncheck()
    page.get_by_role("button", name="Micro").click()
    visit.until("location.hash.includes('max=600') && location.hash.includes('sort=micro')")
    before, state = visit.rows(), page.evaluate("location.hash.slice(1)")

    again = visit.load(state)

    assert 0 < len(before) < 41
    assert visit.rows() == before
    assert again.locator("#search").input_value() == "multi"
    assert again.locator("#max").input_value() == "600"
    assert not again.get_by_label("self-reported").is_checked()
    assert again.locator("#regime input:checked").input_value() == "10shot"
    assert again.evaluate("location.hash.slice(1)") == state


def test_back_returns_to_the_view_before(visit: Any) -> None:
    """Going to a model is a step; the way back restores sorting and filters."""
    page = visit.open("regime=1shot&sort=micro")
    before = visit.rows()
    page.locator("tbody a").first.click()
    page.wait_for_selector(".facts")

    page.go_back()
    page.wait_for_selector("tbody input")

    assert visit.rows() == before


def test_nonsense_in_the_address_falls_back(visit: Any) -> None:
    """Unknown views, regimes and numbers are the defaults; unknown models are said to be so."""
    visit.open("view=__proto__&regime=constructor&metric=7&min=x&sort=toString&dir=up&axis=none")
    assert len(visit.rows()) == 41

    page = visit.open("view=model&model=nobody")
    assert page.locator("h1").inner_text() == "No such model"


def test_sorting_by_keyboard(visit: Any, published: Any) -> None:
    """Headings are buttons: Enter sorts, Space turns round, the focus stays, aria-sort tells."""
    rows = rows_of(published, "full")
    page = visit.open()
    button = page.get_by_role("button", name="Micro")
    heading = page.locator("th", has=button)
    button.focus()
    for key, order in (("Enter", "descending"), ("Space", "ascending")):
        page.keyboard.press(key)
        visit.until(f"document.querySelector('[aria-sort={order}]')?.innerText.includes('Micro')")

        assert heading.get_attribute("aria-sort") == order
        assert page.locator("[aria-sort=ascending], [aria-sort=descending]").count() == 1
        assert page.evaluate("document.activeElement.dataset.key") == "sort:micro"
        assert visit.column("Model") == sorted_names(
            rows, lambda row: row["micro_MCC"], falling=order == "descending"
        )


def test_sorting_by_name_and_by_rank_in_a_category(visit: Any, published: Any) -> None:
    """Names begin at A, ranks at one."""
    page = visit.open()
    page.get_by_role("button", name="Model").click()
    visit.until("location.hash.includes('sort=model')")
    names = visit.column("Model")
    assert names == sorted(names, key=str.lower)

    page.get_by_role("button", name="Splice Sites").click()
    visit.until("location.hash.includes('Splice')")
    ranks = [int(text) for text in visit.column("Splice Sites")]
    assert ranks == sorted(ranks)


def test_compare_takes_at_most_five(visit: Any, published: Any) -> None:
    """The sixth box cannot be ticked, and an address with more is cut to five."""
    page = visit.open()
    for number in range(5):
        page.locator("tbody input").nth(number).check()
        visit.until(f"document.querySelector('#chosen-count').textContent === '{number + 1} of 5'")
    assert page.locator("tbody input:enabled").count() == 5
    chosen = visit.column("Model")[:5]

    page.locator("#compare").click()
    page.wait_for_selector(".legend")
    assert visit.headings() == ["Score", "Tasks", *chosen]

    more = "&".join(f"compare={row['model']}" for row in published[0]["data"]["full"][:7])
    visit.open(f"view=compare&{more}")
    assert len(visit.headings()) == 7


def test_compare_shows_scores_and_ranks(visit: Any, published: Any) -> None:
    """Two models side by side over all categories, the better one in bold, and a chart."""
    spec = load_spec()
    rows = {row["model"]: row for row in published[0]["data"]["full"]}
    page = visit.open(f"view=compare&compare={LUCA}&compare={SPLICE}")

    for (label, _, *cells), name in zip(visit.rows()[2:], spec.categories, strict=True):
        values = [row["cat_MCC"][name] for row in rows.values()]
        assert label == name
        assert cells == [
            f"{shown(rows[model]['cat_MCC'][name])} #{rank(values, rows[model]['cat_MCC'][name])}"
            for model in (LUCA, SPLICE)
        ]
    bold = page.locator("tbody tr").nth(0).locator("strong").all_inner_texts()
    assert bold == [f"{shown(rows[LUCA]['macro_MCC'])} #2"]
    assert page.locator("svg.plot[role=img] g.dot").count() == 2


def test_scatter_marks_the_pareto_front(visit: Any, published: Any) -> None:
    """The table beside the chart says who is on the front; the chart has as many diamonds."""
    rows = published[0]["data"]["full"]
    front = {
        row["disp"]
        for row in rows
        if not any(
            other["params"] <= row["params"]
            and other["macro_MCC"] >= row["macro_MCC"]
            and (other["params"], other["macro_MCC"]) != (row["params"], row["macro_MCC"])
            for other in rows
        )
    }
    page = visit.open("view=chart")
    page.wait_for_selector("svg.plot")

    assert {row[0] for row in visit.rows() if row[4] == "yes"} == front
    assert page.locator("svg g.text text").count() == len(front)
    assert page.locator("svg g.dot").first.locator("circle").count() == len(rows)
    assert all(name in page.locator("figcaption").inner_text() for name in front)


@pytest.mark.parametrize(
    "state",
    ["max=200&sort=micro", "view=categories&cells=rank&regime=1shot", "view=tasks&tq=mouse"],
)
def test_downloads_hold_what_is_shown(visit: Any, state: str) -> None:
    """CSV and JSON: the rows in the order shown, numbers in full precision."""
    page = visit.open(state)
    headings, rows = visit.headings(), visit.rows()
    texts = {}
    for kind in ("CSV", "JSON"):
        with page.expect_download() as started:
            page.locator(".downloads button", has_text=kind).click()
        texts[kind] = Path(started.value.path()).read_text(encoding="utf-8")
    table = list(csv.reader(io.StringIO(texts["CSV"])))
    document = json.loads(texts["JSON"])
    lines = [list(line) for line in table[1:]]

    skipped = 1 if table[0][0] == "model_id" else 0
    assert len(table[0]) == len(headings) + skipped
    if "Parameters" in headings:
        place = headings.index("Parameters")
        for line, offset in [*((row, 0) for row in rows), *((one, skipped) for one in table[1:])]:
            line[place + offset] = _digits(line[place + offset])
    assert [_as_shown(line[skipped:], rows[0]) for line in table[1:]] == rows
    assert document["columns"] == table[0]
    assert len(document["rows"]) == len(lines)
    for line, row in zip(lines, document["rows"], strict=True):
        assert all(map(_same, line, row)), (line, row)
    assert document["regime"] in ("full", "1shot")


def _same(cell: str, value: Any) -> bool:
    """Whether a cell of the CSV is a value of the JSON, to the last digit."""
    if isinstance(value, int | float):
        return float(cell) == value
    return cell == ("" if value is None else value)


def _as_shown(line: list[str], pattern: list[str]) -> list[str]:
    """A line of a download, rounded where the page shows three decimals."""
    return [
        shown(float(cell)) if "." in like and like.replace(".", "").lstrip("-").isdigit() else cell
        for cell, like in zip(line, pattern, strict=True)
    ]


def _digits(cell: str) -> str:
    """A number of parameters with the three digits that the page shows."""
    sizes = {"B": 10**9, "M": 10**6, "k": 10**3}
    number = Decimal(cell) if cell.isdecimal() else Decimal(cell[:-1]) * sizes[cell[-1]]
    return f"{float(number):.3g}"


def test_help_says_how_macro_weighs(visit: Any) -> None:
    """The counts in "How to read this" are the spec's."""
    text = visit.open("view=help").locator("main").inner_text()

    assert "the mean of the 13 categories, all with the same weight" in text
    assert "Coding/NC, Chromatin Acc." in text
    assert "Histone Mod. with its 30" in text
    assert all(level in text for level in ("official", "verified", "self-reported"))


@pytest.fixture(scope="module")
def odd(published: Any, visiting: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A leaderboard with two equal models, one a hair below them, one without few-shot scores."""
    documents = copy.deepcopy(published)
    for document in documents:
        rows = sorted(document["data"]["full"], key=lambda row: -row["macro_MCC"])
        first, second, third = (row for row in rows[:3])
        for other, less in ((second, 0.0), (third, 1e-9)):
            other["macro_MCC"] = first["macro_MCC"] - less
        document["data"]["1shot"] = [
            row for row in document["data"]["1shot"] if row["model"] != first["model"]
        ]
    out = tmp_path_factory.mktemp("odd")
    build_site(out, *documents, load_model_meta(), load_spec())
    return visiting((out / "index.html").as_uri())


def test_equal_scores_share_a_rank(odd: Any) -> None:
    """1, 1, 3: a tie takes up two places, and equality is that of full precision."""
    odd.open()

    assert odd.column("Rank")[:4] == ["1", "1", "3", "4"]
    assert len(set(odd.column("Macro")[:3])) == 1
    odd.check_quiet()


def test_missing_scores_stand_last_without_a_rank(odd: Any) -> None:
    """A dash is neither the best nor the worst, whichever way the table is sorted."""
    odd.open()
    best = odd.column("Model")[:2]
    for direction in ("ascending", "descending"):
        odd.open(f"regime=1shot&sort=macro&dir={direction}")
        last = odd.rows()[-1]

        assert last[0] in best
        assert [last[1], last[2], *last[6:]] == [MISSING] * 17
        assert MISSING not in [row[1] for row in odd.rows()[:-1]]
    odd.check_quiet()
