"""Building the leaderboard: the published figures, the published shape, the same bytes."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import sys

import pytest
from support.submissions import submission, write_submission

from geneb.benchmark.spec import load_model_meta, load_spec
from geneb.errors import MissingExtraError
from geneb.reporting.build import (
    TOP,
    build_page,
    build_tables,
    write_files,
    write_parquet,
)
from geneb.reporting.differences import file_differences
from geneb.reporting.entries import read_leaderboard
from geneb.reporting.shipped import shipped_folder

SPEC = load_spec()
META = load_model_meta()


@pytest.fixture(scope="module")
def entries():
    """The leaderboard that is shipped."""
    return read_leaderboard(shipped_folder("submissions"), shipped_folder("verifications")).entries


@pytest.fixture(scope="module")
def tables(entries):
    """Its tables."""
    return build_tables(entries, SPEC)


@pytest.fixture(scope="module")
def overall(tables):
    """What leaderboard.json holds."""
    return json.loads(tables["leaderboard.json"])


@pytest.fixture(scope="module")
def by_task(tables):
    """What leaderboard_tasks.json holds."""
    return json.loads(tables["leaderboard_tasks.json"])


def rows_of(document, regime="full"):
    return {row["model"]: row for row in document["data"][regime]}


def csv_rows(tables, name):
    return list(csv.DictReader(io.StringIO(tables[name].decode("utf-8"))))


@pytest.mark.parametrize(
    ("model", "macro", "micro"),
    [
        ("GENERator-eukaryote-3b-base", 0.605, 0.598),
        ("LucaOne-default-step36M", 0.589, 0.579),
        ("GENERator-eukaryote-1.2b-base", 0.581, 0.581),
        ("GenomeOcean-4B", 0.573, 0.563),
        ("nucleotide-transformer-2.5b-multi-species", 0.573, 0.561),
        ("Omni-DNA-1B", 0.568, 0.560),
    ],
)
def test_published_overall_scores(overall, model, macro, micro):
    """MCC with all train rows, published with three decimals."""
    row = rows_of(overall)[model]
    assert (round(row["macro_MCC"], 3), round(row["micro_MCC"], 3)) == (macro, micro)


@pytest.mark.parametrize(
    ("model", "category", "value"),
    [
        ("GENERator-eukaryote-3b-base", "Promoters", 0.774),
        ("GenomeOcean-4B", "Histone Mod.", 0.545),
        ("nucleotide-transformer-2.5b-multi-species", "Splice Sites", 0.652),
        ("LucaOne-default-step36M", "lncRNA", 0.508),
    ],
)
def test_published_category_scores(overall, model, category, value):
    """The same for categories."""
    assert round(rows_of(overall)[model]["cat_MCC"][category], 3) == value


@pytest.mark.parametrize(("regime", "expected"), [("full", 0.488), ("1shot", 0.106)])
def test_published_mean_over_the_official_models(overall, regime, expected):
    """Forty of them."""
    official = [row["macro_MCC"] for row in overall["data"][regime] if row["official"]]
    assert len(official) == 40
    assert round(math.fsum(official) / 40, 3) == expected


def test_models_alike_in_three_decimals_are_told_apart(tables):
    """Two of the published models are both at 0.573; ranks look at all digits."""
    places = {
        row["model"]: (row["rank"], float(row["macro"]))
        for row in csv_rows(tables, "overall.csv")
        if (row["regime"], row["metric"]) == ("full", "MCC")
    }
    ocean = places["GenomeOcean-4B"]
    transformer = places["nucleotide-transformer-2.5b-multi-species"]
    assert round(ocean[1], 3) == round(transformer[1], 3)
    assert ocean[1] > transformer[1]
    assert (ocean[0], transformer[0]) == ("4", "5")


def test_shape_of_the_leaderboard(overall):
    """Regimes, keys and their order, all categories; by model id, case aside."""
    assert list(overall) == ["data"]
    assert list(overall["data"]) == list(SPEC.regimes)
    for rows in overall["data"].values():
        ids = [row["model"] for row in rows]
        assert ids == sorted(ids, key=str.lower)
        assert len(ids) == 41
        for row in rows:
            assert list(row) == [
                *("model", "disp", "params", "official", "zero_shot", "submitted"),
                *("micro_MCC", "macro_MCC", "cat_MCC"),
                *("micro_Acc", "macro_Acc", "cat_Acc"),
                *("micro_F1", "macro_F1", "cat_F1"),
            ]
            assert list(row["cat_F1"]) == list(SPEC.categories)
            assert row["official"] is (row["submitted"] == "official")
            assert row["zero_shot"] is False


def test_shape_of_the_tasks(by_task, overall):
    """Tasks in the benchmark's order; the same models and overall values."""
    assert list(by_task) == ["tasks", "data"]
    assert by_task["tasks"] == [
        {"id": task.id, "label": task.label, "cat": task.category} for task in SPEC.tasks
    ]
    for regime, rows in by_task["data"].items():
        other = rows_of(overall, regime)
        for row in rows:
            assert list(row) == [
                *("model", "disp", "params"),
                *("micro_MCC", "macro_MCC", "task_MCC"),
                *("micro_Acc", "macro_Acc", "task_Acc"),
                *("micro_F1", "macro_F1", "task_F1"),
            ]
            assert list(row["task_MCC"]) == list(SPEC.task_ids)
            assert row["macro_MCC"] == other[row["model"]]["macro_MCC"]


def test_the_json_is_compact_and_ends_in_a_newline(tables):
    """As the published files are, without escapes for letters."""
    for name in ("leaderboard.json", "leaderboard_tasks.json"):
        text = tables[name].decode("utf-8")
        assert text.endswith("}\n")
        assert "\n" not in text[:-1]
        assert '", "' not in text
        assert '": ' not in text


def test_nothing_is_rounded(by_task, tables):
    """Every value is the submitted one, in JSON and in CSV."""
    row = rows_of(by_task, "10shot")["GROVER"]
    path = shipped_folder("submissions") / "GROVER.json"
    submitted = json.loads(path.read_text(encoding="utf-8"))["results"]["10shot"]
    assert row["task_F1"] == {task: submitted[task]["F1"] for task in SPEC.task_ids}
    from_csv = {
        line["task"]: float(line["value"])
        for line in csv_rows(tables, "scores.csv")
        if (line["model"], line["regime"], line["metric"]) == ("GROVER", "10shot", "F1")
    }
    assert from_csv == row["task_F1"]


def test_csv_files_hold_the_same_numbers(tables, overall):
    """One row a value; all of them."""
    assert len(csv_rows(tables, "scores.csv")) == 41 * 3 * 100 * 3
    categories = csv_rows(tables, "categories.csv")
    assert len(categories) == 41 * 3 * 13 * 3
    for line in categories[::41]:
        row = rows_of(overall, line["regime"])[line["model"]]
        assert float(line["value"]) == row[f"cat_{line['metric']}"][line["category"]]
    for line in csv_rows(tables, "overall.csv"):
        row = rows_of(overall, line["regime"])[line["model"]]
        assert float(line["macro"]) == row[f"macro_{line['metric']}"]
        assert (line["display"], line["provenance"]) == (row["disp"], row["submitted"])


def test_markdown_and_latex_hold_all_models(tables):
    """With rank, macro, micro and the categories, in three decimals."""
    lines = tables["markdown/overall_full_MCC.md"].decode("utf-8").splitlines()
    assert len(lines) == 43
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[:4] == ["1", r"GENERator\-Eukaryote\-3B", "0.605", "0.598"]
    assert len(cells) == 4 + 13
    latex = tables["latex/overall_full_MCC.tex"].decode("utf-8")
    assert latex.count(r" \\") == 42
    assert r"1 & GENERator-Eukaryote-3B & 0.605 & 0.598 & " in latex
    assert latex.count("{") == latex.count("}")


def test_the_best_of_each_category(tables):
    """Thirteen times five, the published best of a category first."""
    lines = tables["markdown/top_full_MCC.md"].decode("utf-8").splitlines()[2:]
    assert len(lines) == len(SPEC.categories) * TOP
    assert lines[0] == r"| Histone Mod. | 1 | GenomeOcean\-4B | 0.545 |"
    latex = tables["latex/top_full_MCC.tex"].decode("utf-8")
    assert latex.count(r"\midrule") == len(SPEC.categories)


def test_two_builds_are_the_same_bytes(tables, tmp_path):
    """Whatever order the files were written in, and whatever they are called as text."""
    names = sorted(path.name for path in shipped_folder("submissions").glob("*.json"))
    random.Random(3).shuffle(names)
    for name in names:
        document = json.loads((shipped_folder("submissions") / name).read_text(encoding="utf-8"))
        results = {
            regime: dict(reversed(tasks.items())) for regime, tasks in document["results"].items()
        }
        document["results"] = dict(reversed(results.items()))
        (tmp_path / name).write_text(json.dumps(document), encoding="utf-8")
    assert build_tables(read_leaderboard(tmp_path).entries, SPEC) == tables


def test_two_pages_are_the_same_bytes(entries):
    """The site as well."""
    page = build_page(entries, SPEC)
    assert page == build_page(entries, SPEC)
    assert "index.html" in page


def test_the_committed_tables_are_those_that_are_built(tables):
    """Run `geneb leaderboard build` where they are not."""
    faults = file_differences(shipped_folder("tables"), tables)
    assert not faults, "\n".join(map(str, faults))


def test_differences_are_named(tables, tmp_path):
    """One byte in one file, one file less, one too many."""
    write_files(tmp_path, tables)
    assert file_differences(tmp_path, tables) == []

    path = tmp_path / "leaderboard.json"
    content = bytearray(path.read_bytes())
    place = len(content) // 2
    content[place] ^= 1
    path.write_bytes(content)
    (tmp_path / "latex" / "top_full_MCC.tex").unlink()
    (tmp_path / "latex" / "top_full_F1.tex").unlink()
    (tmp_path / "latex" / "top_full_F1.tex").mkdir()
    (tmp_path / "stale.csv").write_text("", encoding="utf-8")
    (tmp_path / "overall.csv").write_bytes(tables["overall.csv"][:-3])

    faults = {fault.where: fault for fault in file_differences(tmp_path, tables)}
    assert len(faults) == 5
    assert "cannot be read" in faults[str(tmp_path / "latex" / "top_full_F1.tex")].problem
    assert f"{path}, line 1, byte {place}" in faults
    assert "missing" in faults[str(tmp_path / "latex" / "top_full_MCC.tex")].problem
    assert "no build writes" in faults[str(tmp_path / "stale.csv")].problem
    cut = next(fault for where, fault in faults.items() if "overall.csv" in where)
    assert "the file ends" in cut.found


def test_names_from_strangers_are_escaped(tmp_path):
    """In each format in its own way; a formula, a table cell, a LaTeX command."""
    folder = tmp_path / "submissions"
    folder.mkdir()
    document = submission("evil")
    document["meta"]["display"] = r'=HYPERLINK("x") | <b> \input{a} & [2cm]'
    write_submission(folder, document)
    found = build_tables(read_leaderboard(folder).entries, SPEC)
    assert "'=HYPERLINK" in found["overall.csv"].decode()
    line = found["markdown/overall_full_MCC.md"].decode().splitlines()[2]
    assert line.replace(r"\|", "").count("|") == 4 + 13 + 1
    assert r"\<b\>" in line
    latex = found["latex/overall_full_MCC.tex"].decode()
    assert r"\textbackslash{}input\{a\} \& {[}2cm{]}" in latex


def test_ties_share_a_rank(tmp_path):
    """And the next is left out; a billionth is a difference."""
    folder = tmp_path / "submissions"
    folder.mkdir()
    for name, start in (("a", 0.3), ("B", 0.3), ("c", 0.4), ("d", 0.3 - 1e-9)):
        write_submission(folder, submission(name, start=start))
    found = read_leaderboard(folder).entries
    assert [entry.model_id for entry in found] == ["a", "B", "c", "d"]
    rows = csv_rows(build_tables(found, SPEC), "overall.csv")[:4]
    assert [(row["rank"], row["model"]) for row in rows] == [
        ("1", "c"),
        ("2", "B"),
        ("2", "a"),
        ("4", "d"),
    ]
    top = build_tables(found, SPEC)["markdown/top_full_Acc.md"].decode().splitlines()[2:]
    assert len(top) == 13 * 4
    assert all("| 1 |" in line for line in top)


def test_parquet_is_an_extra(entries, tmp_path, monkeypatch):
    """Without pyarrow the message has the line that installs it."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"geneb\[parquet\]"):
        write_parquet(tmp_path / "scores.parquet", entries, SPEC)
    assert not list(tmp_path.iterdir())


def test_parquet_holds_the_scores(entries, tmp_path):
    """Where pyarrow is there."""
    pytest.importorskip("pyarrow")
    import pandas as pd

    write_parquet(tmp_path / "scores.parquet", entries, SPEC)
    frame = pd.read_parquet(tmp_path / "scores.parquet")
    assert len(frame) == 41 * 3 * 100 * 3
    assert list(frame.columns) == ["model", "regime", "task", "category", "metric", "value"]
