"""Strangers' text on the page: shown letter by letter, never markup, never a link elsewhere."""

from __future__ import annotations

import copy
import csv
import io
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from geneb.benchmark.spec import ModelFacts, load_model_meta, load_spec
from geneb.reporting.site import build_site

NAMES = (
    "</script><script>alert(1)</script>",
    '<img src=x onerror="alert(2)">',
    '"><svg onload=alert(3)>',
    '=HYPERLINK("http://evil.example")',
    "<!--<script>",
    "{{data}} ${alert(4)} \u2028 `",
    "abc\u202egnp.exe",
)
GROVER, DNABERT, LUCA = "GROVER", "DNABERT-S", "LucaOne-default-step36M"
TAKEN = "LucaOne"
LEVEL = "constructor<b>"
URLS = (
    "javascript:alert(5)",
    "data:text/html,<script>alert(6)</script>",
    "file:///etc/passwd",
    "http://",
    "java\nscript:alert(7)",
    ' https://ok.example/"><script>alert(8)</script>',
    "https://ok.example/?a=<b>&c='d'",
)


def _facts(model: str, url: str) -> ModelFacts:
    """Facts that validation would refuse, as if it had not been there."""
    return ModelFacts.model_construct(
        id=model,
        display="-",
        params=1,
        architecture="<i>T-enc</i>",
        tokenization="SN",
        pretraining_data="human",
        hub_id="javascript:alert(9)//<b>",
        weights_note="<script>alert(10)</script>",
        url=url,
        licence="<u>MIT</u>",
        code_licence=None,
        licence_note=None,
        provenance="official",
    )


@pytest.fixture(scope="module")
def hostile(published: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site whose first models were named by an attacker."""
    documents = copy.deepcopy(published)
    meta = load_model_meta()
    facts = [_facts(name, url) for name, url in zip(NAMES, URLS, strict=True)]
    for document in documents:
        for rows in document["data"].values():
            for name, row in zip(NAMES, rows, strict=False):
                row["model"] = row["disp"] = name
                row["submitted"] = LEVEL
    out = tmp_path_factory.mktemp("hostile")
    build_site(
        out, *documents, meta.model_copy(update={"models": (*meta.models, *facts)}), load_spec()
    )
    return out / "index.html"


@pytest.fixture(scope="module")
def visit(visiting: Any, hostile: Path) -> Any:
    """That site in a browser."""
    return visiting(hostile.as_uri())


def _as_shown(name: str) -> str:
    """Marks that change direction or break lines are shown as escapes."""
    return name.replace("\u2028", "\\u2028").replace("\u202e", "\\u202e")


def _is_harmless(visit: Any) -> None:
    assert visit.said == []
    assert not [url for url in visit.asked if not url.startswith(("file:", "about:", "blob:"))]
    assert visit.page.locator("script").count() == visit.page.evaluate(
        "document.querySelectorAll('head script, body > script').length"
    )
    # Only our own charts draw; none of the names became an element.
    assert (
        visit.page.locator("img, iframe, object, embed, b b, i, u, svg:not(.plot, .mark)").count()
        == 0
    )


def test_data_cannot_end_their_element(hostile: Path) -> None:
    """Nothing between the data's tags is markup or a line separator."""
    text = hostile.read_text(encoding="utf-8")
    data = text.split('id="data">', 1)[1].split("</script>", 1)[0]

    assert data.endswith("}}")
    assert not set(data) & set("<>&\u2028\u2029\u202e")


@pytest.mark.parametrize("view", ["overall", "categories", "tasks", "chart", "category", "task"])
def test_names_stay_text(visit: Any, view: str) -> None:
    """In every table each name is a text like others."""
    page = visit.open(f"view={view}&category=Promoters&task=iDNA_ABF_5mC")
    page.wait_for_selector("tbody tr")
    if view != "tasks":
        assert {_as_shown(name) for name in NAMES} <= {row[0] for row in visit.rows()}

    _is_harmless(visit)


@pytest.mark.parametrize("number", range(len(NAMES)))
def test_model_page_shows_text_and_checked_links(visit: Any, hostile: Path, number: int) -> None:
    """Facts are text; links out of the page are http or https, whatever was submitted."""
    shown = _as_shown(NAMES[number])
    page = visit.open(urlencode({"view": "model", "model": shown, "compare": shown}))
    page.wait_for_selector("svg.plot")

    assert page.locator("h1").text_content() == shown
    facts = page.locator(".facts").inner_text()
    assert "<i>T-enc</i>" in facts
    assert "<script>alert(10)</script>" in facts
    assert LEVEL in facts
    targets = page.locator("a").evaluate_all("all => all.map(one => one.href)")
    outside = [url for url in targets if not url.startswith(page.url.partition("#")[0])]
    assert all(url.startswith(("https://", hostile.parent.as_uri())) for url in outside), outside
    assert ("https://ok.example/?a=%3Cb%3E&c='d'".replace("'", "%27") in outside) == (
        URLS[number].startswith("https://ok")
    )
    _is_harmless(visit)


def test_compare_and_chart_labels_stay_text(visit: Any) -> None:
    """Legend, headings, chart and the tray of chosen models."""
    chosen = [_as_shown(name) for name in NAMES[:5]]
    page = visit.open(urlencode([("view", "compare"), *(("compare", name) for name in chosen)]))
    page.wait_for_selector("svg.plot")

    assert visit.headings()[2:] == chosen
    assert page.locator(".legend a").all_text_contents() == chosen
    _is_harmless(visit)


def test_address_is_a_stranger_too(visit: Any) -> None:
    """What a crafted link puts into search, sorting and names is text or nothing."""
    bad = '"><img src=x onerror=alert(1)>'
    page = visit.open(
        urlencode(dict.fromkeys(("q", "tq", "sort", "model", "task", "hide", "compare"), bad))
    )

    assert page.locator("#search").input_value() == bad
    assert page.locator(".nothing").count() == 1
    _is_harmless(visit)


def test_injected_script_would_not_run(visiting: Any, hostile: Path) -> None:
    """Even markup that got in would be stopped by the policy."""
    visit = visiting(hostile.as_uri())
    page = visit.open()
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            document.body.append(script);
            const holder = document.createElement("div");
            holder.setAttribute("onclick", "window.ran = true");
            document.body.append(holder);
            holder.click();
        }"""
    )

    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in line for line in visit.said)


def test_csv_cells_are_no_formulas(visit: Any) -> None:
    """A name that a spreadsheet would run is kept from it; numbers stay numbers."""
    page = visit.open("view=categories&regime=1shot")
    with page.expect_download() as started:
        page.locator(".downloads button", has_text="CSV").click()
    table = list(csv.reader(io.StringIO(Path(started.value.path()).read_text(encoding="utf-8"))))

    names = {line[1] for line in table[1:]}
    assert "'" + NAMES[3] in names
    assert _as_shown(NAMES[1]) in names
    assert any(cell.startswith("-0") for line in table[1:] for cell in line[2:])


@pytest.fixture(scope="module")
def lookalikes(published: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site where one model took another's name, and one has the longest that there may be."""
    documents = copy.deepcopy(published)
    names = {LUCA: TAKEN, GROVER: TAKEN.upper(), DNABERT: "W" * 100}
    for document in documents:
        for rows in document["data"].values():
            for row in rows:
                row["disp"] = names.get(row["model"], row["disp"])
                row["submitted"] = "P" * 100 if row["model"] == DNABERT else row.get("submitted")
    for row in documents[0]["data"]["full"]:
        if row["model"] == DNABERT:
            row["macro_MCC"] = 1.0
            row["cat_MCC"] = dict.fromkeys(row["cat_MCC"], 1.0)
    out = tmp_path_factory.mktemp("lookalikes")
    build_site(out, *documents, load_model_meta(), load_spec())
    return out / "index.html"


def test_equal_names_are_told_apart(visiting: Any, lookalikes: Path) -> None:
    """Names that differ by case at most are shown with the ids of their models."""
    names = visiting(lookalikes.as_uri())
    names.open()

    shown = set(names.column("Model"))
    assert {f"{TAKEN.upper()} [{GROVER}]", f"{TAKEN} [{LUCA}]"} <= shown
    assert len(shown) == 41
    assert sum("[" in name for name in shown) == 2


@pytest.mark.parametrize("width", [390, 1440])
def test_long_names_do_not_widen_the_page(visiting: Any, lookalikes: Path, width: int) -> None:
    """A hundred letters without a space break, or are cut, wherever they stand."""
    long = visiting(lookalikes.as_uri(), viewport={"width": width, "height": 844})
    for view in ("overall", "chart", "compare", "model", "tasks", "categories"):
        page = long.open(f"view={view}&model={DNABERT}&compare={DNABERT}&compare={LUCA}")
        if view in ("chart", "compare", "model"):
            page.wait_for_selector("svg.plot")

        assert page.evaluate("document.documentElement.scrollWidth") <= width, view
    long.check_quiet()
