"""The page for everybody: phones, keyboards, screen readers, both themes, file and server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

LUCA, SPLICE = "LucaOne-default-step36M", "splicebert-1024nt"


def test_whole_page_is_reached_by_tab(visit: Any) -> None:
    """The first stops of the tab key: skip link, theme, views, controls."""
    page = visit.load("view=help")
    stops = []
    for _ in range(8):
        page.keyboard.press("Tab")
        stops.append(page.evaluate("document.activeElement.textContent"))

    assert stops[0] == "Skip to the scores"
    assert stops[1].startswith("Theme")
    assert stops[2:] == [
        "Overall",
        "Categories",
        "Tasks",
        "Score and size",
        "Compare",
        "How to read this",
    ]


def test_works_from_a_server_too(visiting: Any, served: str) -> None:
    """The same page over http asks for nothing but itself and says nothing."""
    visit = visiting(served)
    page = visit.open("view=chart")
    page.wait_for_selector("svg.plot")

    assert len(visit.rows()) == 41
    assert visit.said == []
    assert {url.partition("#")[0] for url in visit.asked} == {served}


@pytest.fixture(scope="module")
def phone(visiting: Any, built: Path) -> Any:
    """The page in a window as small as a phone's."""
    return visiting((built / "index.html").as_uri(), viewport={"width": 390, "height": 844})


@pytest.mark.parametrize(
    "view",
    ["overall", "categories", "tasks", "chart", "compare", "help", "task", "model", "category"],
)
def test_phone_scrolls_tables_and_not_the_page(phone: Any, view: str) -> None:
    """At 390 pixels nothing is wider than the window; wide tables scroll in their frame."""
    details = f"task=leannmlindsey_GUE_mouse_3&model={LUCA}&category=Histone+Mod."
    page = phone.open(f"view={view}&{details}&compare={LUCA}&compare={SPLICE}")
    if view in ("chart", "compare", "model"):
        page.wait_for_selector("svg.plot")

    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    phone.check_quiet()


@pytest.mark.parametrize("view", ["overall", "categories", "tasks", "compare", "task", "model"])
def test_phone_targets_fit_a_finger(phone: Any, view: str) -> None:
    """Whatever is pressed is at least 24 pixels in both directions, but for links in prose."""
    details = f"task=leannmlindsey_GUE_mouse_3&model={LUCA}"
    page = phone.open(f"view={view}&{details}&compare={LUCA}&compare={SPLICE}")

    small = page.locator(
        "button, select, summary, input, .scroll a, .leaders a, nav a"
    ).evaluate_all(
        """all => all.map(one => one.closest("label") ?? one)
            .filter(one => one.checkVisibility())
            .map(one => [one.outerHTML.slice(0, 80), one.getBoundingClientRect()])
            .filter(([, box]) => box.width < 24 || box.height < 24)
            .map(([text, box]) => [text, box.width, box.height])"""
    )
    assert small == []


@pytest.mark.parametrize("view", ["overall", "help", "compare"])
def test_phone_shows_all_views(phone: Any, view: str) -> None:
    """No view is out of sight beyond the edge of the navigation."""
    page = phone.open(f"view={view}")
    edges = page.locator("nav a").evaluate_all(
        "all => all.map(a => a.getBoundingClientRect().right)"
    )

    assert len(edges) == 6
    assert max(edges) <= 390


@pytest.mark.parametrize(
    ("state", "summary"),
    [
        ("", "Filters"),
        ("q=omni&max=500", "Filters (2 set)"),
        ("hide=official&hide=x", "Filters (1 set)"),
    ],
)
def test_phone_says_that_filters_are_set(phone: Any, state: str, summary: str) -> None:
    """Whoever opens a link sees that models are left out, though the filters are folded."""
    page = phone.open(state)
    phone.settle()

    assert page.locator("#filters summary").inner_text() == summary


def test_focus_stays_when_its_element_goes(visit: Any) -> None:
    """A model that is taken out leaves the focus at the next one, or at the title."""
    page = visit.open(f"compare={LUCA}&compare={SPLICE}")
    for count, focused in ((1, "BUTTON"), (0, "H1")):
        page.locator("#chosen button").first.focus()
        page.keyboard.press("Enter")
        visit.until(f"document.querySelectorAll('#chosen button').length === {count}")

        assert page.evaluate("document.activeElement.tagName") == focused

    page = visit.open(f"view=compare&compare={LUCA}&compare={SPLICE}")
    page.locator(".legend button").first.focus()
    page.keyboard.press("Enter")
    visit.until("document.querySelectorAll('.legend li').length === 1")
    assert page.evaluate("document.activeElement.id") == "title"


def test_model_page_takes_it_in_and_out_again(visit: Any) -> None:
    """One button, which keeps the focus and says what it will do."""
    page = visit.open(f"view=model&model={LUCA}")
    button = page.locator("[data-key=choose]")
    button.focus()
    for text in ("Remove from the comparison", "Compare with others"):
        page.keyboard.press("Enter")
        visit.until(f"document.activeElement.textContent === '{text}'")

        assert button.is_enabled()


def test_links_of_the_same_text_have_names_of_their_own(visit: Any) -> None:
    """Read out without the table around them, links in headings say where they lead."""
    for state in ("view=categories", "view=category&category=Promoters"):
        page = visit.open(state)
        names = page.locator("thead a").evaluate_all("all => all.map(a => a.ariaLabel)")
        shown = page.locator("thead a").all_text_contents()

        assert len(set(names)) == len(names) > 10
        assert all(name.startswith(text) for name, text in zip(names, shown, strict=True))


def test_first_column_and_header_stay_in_sight(visit: Any) -> None:
    """Scrolled to its far corner, a table still shows whose row and which column it is."""
    page = visit.open("view=category&category=Histone+Mod.")
    corner, frame = page.evaluate(
        """() => {
            const scroll = document.querySelector(".scroll");
            scroll.scrollTo(1e6, 1e6);
            const box = (one) => { const b = one.getBoundingClientRect(); return [b.left, b.top]; };
            return [box(scroll.querySelector("thead th")), box(scroll)];
        }"""
    )

    # One pixel is the frame's border.
    assert corner == pytest.approx(frame, abs=1.5)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme_follows_the_system_until_chosen(visiting: Any, built: Path, scheme: str) -> None:
    """The system's scheme is the default, and the button overrides it."""
    visit = visiting((built / "index.html").as_uri(), color_scheme=scheme)
    page = visit.open()
    ground = "getComputedStyle(document.body).backgroundColor"
    system = page.evaluate(ground)
    page.locator("#theme").click()
    light = page.evaluate(ground)
    page.locator("#theme").click()
    dark = page.evaluate(ground)

    assert light == "rgb(255, 255, 255)"
    assert dark != light
    assert system == {"light": light, "dark": dark}[scheme]


def test_tables_are_tables_to_a_screen_reader(visit: Any) -> None:
    """Captions, header cells with scope, one row heading a row; changes are announced."""
    page = visit.open("q=omni")

    assert page.locator("table caption").inner_text().startswith("Overall: MCC, full data")
    assert page.locator("thead th:not([scope=col])").count() == 0
    assert page.locator("tbody tr").count() == page.locator("tbody th[scope=row]").count()
    assert page.locator(".scroll[role=region][tabindex='0'][aria-label]").count() == 1
    assert page.locator("[role=status]").inner_text() == page.locator(".count").inner_text()
    unnamed = page.locator("button, a, input, select").evaluate_all(
        """all => all.filter(
            one => !(one.textContent.trim() || one.ariaLabel || one.labels?.length)
        ).length"""
    )
    assert unnamed == 0


def test_skip_link_keeps_the_view(visit: Any) -> None:
    """It moves the focus; the address, which is the view, stays as it is."""
    page = visit.open("view=categories&regime=1shot")
    page.locator("#skip").focus()
    page.keyboard.press("Enter")

    assert page.evaluate("document.activeElement.id") == "title"
    assert page.evaluate("location.hash") == "#view=categories&regime=1shot"


@pytest.mark.parametrize("view", ["overall", "categories", "model", "help"])
def test_links_among_words_are_underlined(visit: Any, view: str) -> None:
    """Colour alone does not tell a link from the sentence around it."""
    page = visit.open(f"view={view}")
    styles = page.locator("p a").evaluate_all(
        "all => all.map(one => getComputedStyle(one).textDecorationLine)"
    )

    assert set(styles) == {"underline"}
