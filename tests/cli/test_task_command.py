"""``geneb task`` as a user runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import check_mistake, geneb

from geneb.benchmark.spec import load_spec

# Whoever runs the tests may have set the default of --data.
NO_DATA = {"GENEB_DATA": ""}


def test_list_names_every_task_in_order():
    """Label, id and category of all 100."""
    outcome = geneb("task", "list", fresh=True)

    assert outcome.code == 0, outcome.err
    header, *lines = outcome.out.splitlines()
    assert header.split() == ["label", "id", "category"]
    assert [line.split() for line in lines] == [
        f"{task.label} {task.id} {task.category}".split() for task in load_spec().tasks
    ]


def test_list_of_a_category_as_json():
    """The category may be written in any case."""
    outcome = geneb("task", "list", "--category", "tf binding", "--json")

    assert outcome.code == 0, outcome.err
    assert outcome.json == [
        {
            "id": f"leannmlindsey_GUE_human_tf_{k}",
            "label": f"GUE human tf {k}",
            "category": "TF Binding",
        }
        for k in range(5)
    ]


def test_list_of_an_unknown_category():
    """The message lists the categories and the nearest one."""
    check_mistake(
        geneb("task", "list", "--category", "TF Bindin"), "'TF Bindin'", "lncRNA", "did you mean"
    )


@pytest.mark.parametrize("name", ["leannmlindsey_GUE_mouse_3", "gue mouse 3"])
def test_show_by_id_or_label(name):
    """Without data it says what the spec says."""
    outcome = geneb("task", "show", name, "--json", env=NO_DATA)

    assert outcome.code == 0, outcome.err
    assert outcome.json == {
        "id": "leannmlindsey_GUE_mouse_3",
        "label": "GUE mouse 3",
        "category": "Mouse Enh.",
    }
    assert "Mouse Enh." in geneb("task", "show", name, env=NO_DATA).out


def test_show_an_unknown_task():
    """Near matches, no traceback, exit code 2."""
    check_mistake(
        geneb("task", "show", "GUE mouse 33", env=NO_DATA),
        "'GUE mouse 33'",
        "did you mean",
        "'GUE mouse 3'",
    )


def test_show_with_data(demo_data):
    """What a CSV outside the benchmark holds, as JSON and for people."""
    shown = geneb("task", "show", "demo_splice_junctions", "--data", demo_data, "--json")
    table = geneb("task", "show", "demo_splice_junctions", "--data", demo_data)

    assert shown.code == table.code == 0, shown.err + table.err
    facts = shown.json
    assert facts["category"] is None
    assert facts["classes"] == ["0", "1", "2"]
    assert facts["classes_in_one_split"] == {"only_in_train": [], "only_in_test": []}
    train = facts["splits"]["train"]
    assert (train["rows"], train["min_length"], train["max_length"]) == (2000, 60, 60)
    assert sum(train["rows_of_class"].values()) == 2000
    assert train["sorted_sha256"] in table.out
    assert "2,000" in table.out


def test_show_tells_what_is_odd_about_a_file(tmp_path):
    """Rows left out, classes of one split, other letters; a stranger's text is harmless."""
    (tmp_path / "own.csv").write_text(
        "text,label,split\nACGN,x\x1b[31m,train\n,z,test\nA,z,dev\nA,z,dev\n", encoding="utf-8"
    )

    outcome = geneb("task", "show", "own", "--data", tmp_path)

    assert outcome.code == 0, outcome.err
    assert "\x1b" not in outcome.out
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    for line in (
        "rows left out, by split dev (2)",
        r"classes only in train x\x1b[31m",
        "classes only in test z",
        "sequences with other letters than ACGT 1 0",
        "empty sequences 0 1",
        "rows of class z 0 1",
    ):
        assert line in lines


def test_show_a_broken_file(tmp_path):
    """The file, the row and the field."""
    (tmp_path / "own.csv").write_text("text,label,split\nACGT,,train\n", encoding="utf-8")

    check_mistake(
        geneb("task", "show", "own", "--data", tmp_path), "own.csv: row at line 2", "'label'"
    )


def test_show_a_task_that_is_not_in_the_folder(tmp_path: Path):
    """An official task whose file is missing, and a name that is nowhere."""
    check_mistake(
        geneb("task", "show", "GUE mouse 3", "--data", tmp_path), "leannmlindsey_GUE_mouse_3.csv"
    )
    check_mistake(geneb("task", "show", "own", "--data", tmp_path), "'own'", str(tmp_path))


def test_show_a_real_task(real_data):
    """The published test set of 239 rows, found by its label."""
    outcome = geneb("task", "show", "GUE mouse 3", "--data", real_data / "tasks", "--json")

    assert outcome.code == 0, outcome.err
    test = outcome.json["splits"]["test"]
    assert (test["rows"], test["rows_of_class"]) == (239, {"0": 120, "1": 119})
