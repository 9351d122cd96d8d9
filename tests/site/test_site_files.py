"""The builder: its files, without a browser."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from geneb.benchmark.spec import load_model_meta, load_spec
from geneb.errors import InputError
from geneb.reporting.site import SCRIPTS, build_site, vendored

SITE = files("geneb.leaderboard").joinpath("site")
MAX_VENDORED_BYTES = 1_500_000


def _build(out: Path, documents: Any) -> list[Path]:
    return build_site(out, *documents, load_model_meta(), load_spec())


def _data(page: Path) -> Any:
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL
    )
    return json.loads(found.group(1))


def test_same_bytes_whatever_the_order_of_models(published: Any, tmp_path: Path) -> None:
    """Two builds are equal byte for byte, and the order of rows in the input plays no part."""
    turned = copy.deepcopy(published)
    for document in turned:
        for rows in document["data"].values():
            rows.reverse()

    first = _build(tmp_path / "a", published)
    second = _build(tmp_path / "b" / "deeper", turned)

    assert [path.name for path in first] == ["index.html", "licences.txt"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_other_files_stay(published: Any, tmp_path: Path) -> None:
    """What others keep in the folder is left alone, and nothing half-written remains."""
    (tmp_path / "CNAME").write_text("example.org")

    _build(tmp_path, published)

    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "CNAME",
        "index.html",
        "licences.txt",
    ]


def test_scores_are_the_documents_scores(published: Any, built: Path) -> None:
    """Every number of both documents stands in the page in full precision."""
    spec = load_spec()
    page = _data(built / "index.html")
    ids = [model["id"] for model in page["models"]]

    for regime in spec.regimes:
        rows = {row["model"]: row for row in published[0]["data"][regime]}
        tasks = {row["model"]: row for row in published[1]["data"][regime]}
        assert sorted(rows) == ids
        for metric in spec.metrics:
            for model, shown in zip(ids, page["scores"][regime][metric], strict=True):
                assert shown == {
                    "macro": rows[model][f"macro_{metric}"],
                    "micro": rows[model][f"micro_{metric}"],
                    "categories": [rows[model][f"cat_{metric}"][name] for name in spec.categories],
                    "tasks": [tasks[model][f"task_{metric}"][name] for name in spec.task_ids],
                }


def test_policy_names_exactly_what_the_page_holds(built: Path) -> None:
    """Each script and the style run by their digest; nothing is allowed beyond that."""
    page = (built / "index.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1)
    rules = dict(part.split(" ", 1) for part in policy.split("; "))
    digest = {
        kind: [
            "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
            for text in re.findall(rf"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
        ]
        for kind in ("script", "style")
    }

    assert rules["default-src"] == "'none'"
    assert rules["script-src"].split() == digest["script"]
    assert rules["style-src"].split() == digest["style"]
    assert len(digest["script"]) == len(SCRIPTS)
    assert "unsafe" not in policy


def test_vendored_files_are_those_of_the_manifest() -> None:
    """Each library is the file that was looked at, has its licence, and all stay small."""
    listed = [one for entry in vendored() for one in entry["files"]]
    vendor = SITE.joinpath("vendor")
    found = {f"{d.name}/{f.name}" for d in vendor.iterdir() if d.is_dir() for f in d.iterdir()}
    content = {one["file"]: vendor.joinpath(*one["file"].split("/")).read_bytes() for one in listed}

    assert set(content) == found
    for one in listed:
        assert hashlib.sha256(content[one["file"]]).hexdigest() == one["sha256"], one["file"]
    for entry in vendored():
        assert any(one["file"].endswith("/LICENSE") for one in entry["files"]), entry["package"]
    assert sum(map(len, content.values())) < MAX_VENDORED_BYTES


def test_licences_go_with_the_page(built: Path) -> None:
    """The licences that ask for it travel with the libraries' code."""
    text = (built / "licences.txt").read_text(encoding="utf-8")

    for entry in vendored():
        assert entry["package"] in text
    assert text.count("THE SOFTWARE IS PROVIDED") >= 4


def test_own_scripts_never_parse_markup() -> None:
    """None of our scripts has a way to turn data into markup or code."""
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|\.html\("
    for name in SCRIPTS:
        if not name.startswith("vendor/"):
            assert not re.search(ways, SITE.joinpath(name).read_text(encoding="utf-8")), name


def _score_above_one(leaderboard: Any, tasks: Any) -> None:
    leaderboard["data"]["full"][0]["macro_MCC"] = 1.5


def _score_as_text(leaderboard: Any, tasks: Any) -> None:
    tasks["data"]["1shot"][3]["task_F1"]["iDNA_ABF_5mC"] = "0.5"


def _not_a_number(leaderboard: Any, tasks: Any) -> None:
    leaderboard["data"]["full"][0]["cat_Acc"]["Promoters"] = float("nan")


def _no_name(leaderboard: Any, tasks: Any) -> None:
    del leaderboard["data"]["full"][0]["disp"]


def _truth_for_params(leaderboard: Any, tasks: Any) -> None:
    leaderboard["data"]["full"][0]["params"] = True


def _no_parameters(leaderboard: Any, tasks: Any) -> None:
    leaderboard["data"]["full"][0]["params"] = 0


def _more_parameters_than_there_are(leaderboard: Any, tasks: Any) -> None:
    leaderboard["data"]["full"][0]["params"] = 10**400


def _twice(leaderboard: Any, tasks: Any) -> None:
    tasks["data"]["10shot"].append(tasks["data"]["10shot"][0])


def _other_models(leaderboard: Any, tasks: Any) -> None:
    tasks["data"]["10shot"].pop()


def _no_regime(leaderboard: Any, tasks: Any) -> None:
    del leaderboard["data"]["1shot"]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_score_above_one, "macro_MCC"),
        (_score_as_text, "task_F1.iDNA_ABF_5mC"),
        (_not_a_number, "cat_Acc.Promoters"),
        (_no_name, "disp"),
        (_truth_for_params, "params"),
        (_no_parameters, "number of parameters"),
        (_more_parameters_than_there_are, "number of parameters"),
        (_twice, "a model stands twice"),
        (_other_models, "do not belong together"),
        (_no_regime, "leaderboard.data.1shot"),
    ],
)
def test_documents_of_another_shape_are_refused(
    spoil: Any, words: str, published: Any, tmp_path: Path
) -> None:
    """What is not in the published shape is named, and nothing is written."""
    spoilt = copy.deepcopy(published)
    spoil(*spoilt)

    with pytest.raises(InputError, match=re.escape(words)):
        _build(tmp_path / "out", spoilt)
    assert not (tmp_path / "out").exists()


def test_missing_scores_are_kept_missing(published: Any, tmp_path: Path) -> None:
    """A model that is absent from a regime, or lacks a task, has no number there."""
    gaps = copy.deepcopy(published)
    gone = gaps[0]["data"]["1shot"].pop()["model"]
    gaps[1]["data"]["1shot"] = [r for r in gaps[1]["data"]["1shot"] if r["model"] != gone]
    first = gaps[1]["data"]["full"][0]
    first["task_MCC"].pop("iDNA_ABF_5mC")
    _build(tmp_path, gaps)

    page = _data(tmp_path / "index.html")
    ids = [model["id"] for model in page["models"]]
    position = [task["id"] for task in page["tasks"]].index("iDNA_ABF_5mC")
    assert page["scores"]["1shot"]["MCC"][ids.index(gone)] is None
    assert page["scores"]["full"]["MCC"][ids.index(first["model"])]["tasks"][position] is None
