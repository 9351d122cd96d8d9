"""A site built from the published scores, and a browser to read it with."""

from __future__ import annotations

import csv
import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from geneb.benchmark.spec import load_model_meta, load_spec
from geneb.reporting.serve import make_server
from geneb.reporting.site import build_site

CHROMIUM = Path("/usr/bin/chromium")
WAIT_SECONDS = 20.0
# Listeners run in the order in which they were added: the page has rendered when ours is called.
GO = """state => new Promise(done => {
    if (location.hash.replace("#", "") === state) return done();
    addEventListener("hashchange", () => done(), { once: true });
    location.hash = state;
})"""
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _published_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="session")
def published(real_data: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both leaderboard documents, made of the published scores in a plain way."""
    spec = load_spec()
    folder = real_data.parent / "reference"
    if not (folder / "published_scores.csv").is_file():
        pytest.skip(f"the published scores are not in {folder}")
    models = {row["model_id"]: row for row in _published_rows(folder / "published_models.csv")}
    scores: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for row in _published_rows(folder / "published_scores.csv"):
        of_model = scores.setdefault((row["regime"], row["model_id"]), {})
        for metric in spec.metrics:
            of_model.setdefault(metric, {})[row["task_id"]] = float(row[metric])
    overall: dict[str, list[Any]] = {regime: [] for regime in spec.regimes}
    tasks: dict[str, list[Any]] = {regime: [] for regime in spec.regimes}
    for (regime, model), by_metric in scores.items():
        facts = models[model]
        named = {"model": model, "disp": facts["display"], "params": int(facts["params"])}
        labels = {"official": True, "zero_shot": False, "submitted": facts["provenance"]}
        means: dict[str, float] = {}
        by_category: dict[str, Any] = {}
        for metric, values in by_metric.items():
            category_means = {
                name: _mean([values[task.id] for task in spec.tasks if task.category == name])
                for name in spec.categories
            }
            means[f"micro_{metric}"] = _mean(list(values.values()))
            means[f"macro_{metric}"] = _mean(list(category_means.values()))
            by_category[f"cat_{metric}"] = category_means
        overall[regime].append({**named, **labels, **means, **by_category})
        by_task = {f"task_{metric}": values for metric, values in by_metric.items()}
        tasks[regime].append({**named, **means, **by_task})
    listed = [{"id": task.id, "label": task.label, "cat": task.category} for task in spec.tasks]
    return {"data": overall}, {"tasks": listed, "data": tasks}


@pytest.fixture(scope="session")
def built(published: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site of the published scores."""
    out = tmp_path_factory.mktemp("site")
    build_site(out, *published, load_model_meta(), load_spec())
    return out


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield chromium
        chromium.close()


class Visit:
    """A page, and everything it said or asked for on its own."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.context = browser.new_context(
            **{"viewport": {"width": 1440, "height": 900}, "accept_downloads": True, **options}
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(WAIT_SECONDS * 1000)
        self.url = url
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.context.on("request", lambda request: self.asked.append(request.url))

    def _dismiss(self, dialog: Any) -> None:
        self.said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def load(self, state: str = "") -> Any:
        """Load the page anew in a state."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}#{state}")
        return self.page

    def open(self, state: str = "") -> Any:
        """Bring the page into a state, by its address alone where it is loaded."""
        if self.page.url.partition("#")[0] != self.url:
            return self.load(state)
        self.page.evaluate(GO, state)
        return self.page

    def until(self, condition: str) -> None:
        """Wait for a condition; the page's policy forbids the driver's own way of waiting."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not self.page.evaluate(condition):
            assert time.monotonic() < deadline, f"never true: {condition}"
            self.page.wait_for_timeout(20)

    def settle(self) -> None:
        """Wait until the page shows what its address asks for: it draws a moment later."""
        self.until("document.body.dataset.drawn === location.hash")

    def check_quiet(self) -> None:
        """Nothing was said, and nothing but the page itself was asked for."""
        own = {url for url in self.asked if url.partition("#")[0] in (self.url, "about:blank")}
        downloads = {url for url in self.asked if url.startswith("blob:")}
        assert self.said == []
        assert set(self.asked) == own | downloads

    def rows(self, sheet: int = 0) -> list[list[str]]:
        """The text of a sheet's body, as it is shown."""
        self.settle()
        return (
            self.page.locator(".sheet")
            .nth(sheet)
            .locator("tbody tr")
            .evaluate_all("rows => rows.map(row => [...row.cells].map(cell => cell.textContent))")
        )

    def headings(self, sheet: int = 0) -> list[str]:
        """The headings of a sheet."""
        self.settle()
        return (
            self.page.locator(".sheet")
            .nth(sheet)
            .locator("thead th")
            .evaluate_all("cells => cells.map(cell => cell.querySelector('.label').textContent)")
        )

    def column(self, heading: str, sheet: int = 0) -> list[str]:
        """The texts of one column."""
        place = self.headings(sheet).index(heading)
        return [row[place] for row in self.rows(sheet)]


@pytest.fixture(scope="session")
def _loaded(browser: Any, built: Path) -> Iterator[Visit]:
    one = Visit(browser, (built / "index.html").as_uri())
    yield one
    one.context.close()


@pytest.fixture
def visit(_loaded: Visit) -> Iterator[Visit]:
    """The site of the published scores, opened as a file; it must keep quiet to the end.

    Loading takes longer than most tests, so that they share one page; its whole state is its
    address.
    """
    yield _loaded
    _loaded.check_quiet()


@pytest.fixture(scope="session")
def visiting(browser: Any) -> Iterator[Any]:
    """Open any other page; what it says is left to the test."""
    opened: list[Visit] = []

    def open_page(url: str, **options: Any) -> Visit:
        opened.append(Visit(browser, url, **options))
        return opened[-1]

    yield open_page
    for one in opened:
        one.context.close()


@pytest.fixture
def served(built: Path) -> Iterator[str]:
    """The address of the site on a server of this machine."""
    server = make_server(built)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"{server.address}index.html"
    server.shutdown()
    thread.join()
    server.server_close()
