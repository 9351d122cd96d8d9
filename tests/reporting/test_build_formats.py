"""Tables as text."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb.base.text import csv_cell, latex, plain
from geneb.reporting.formats import cell_text, score_text, to_csv, to_latex, to_markdown
from geneb.reporting.tables import Table

TABLE = Table(
    ["model", "rank", "score"], [["a", 1, 0.5], ["a", None, -0.0001], ["b_2", 2, float("0.12345")]]
)


@pytest.mark.parametrize(
    ("value", "text"), [(2 / 3, "0.667"), (-0.0001, "0.000"), (-0.5, "-0.500"), (1.0, "1.000")]
)
def test_scores_have_three_decimals_and_zero_has_no_sign(value, text):
    """A value that rounds to zero is zero."""
    assert score_text(value) == text


def test_cells_for_people():
    """Absent ones are a dash."""
    assert [cell_text(cell) for cell in (None, 3, "x", 0.25)] == ["-", "3", "x", "0.250"]


def test_markdown():
    """Numbers stand to the right."""
    assert to_markdown(TABLE) == (
        "| model | rank | score |\n"
        "| --- | ---: | ---: |\n"
        "| a | 1 | 0.500 |\n"
        "| a | - | 0.000 |\n"
        "| b\\_2 | 2 | 0.123 |\n"
    )


def test_latex_table():
    """A line between groups of the first column; booktabs."""
    assert to_latex(TABLE, "100 % of it", "tab:x").splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\caption{100 \% of it}",
        r"\label{tab:x}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"model & rank & score \\",
        r"\midrule",
        r"a & 1 & 0.500 \\",
        r"a & - & 0.000 \\",
        r"\midrule",
        r"b\_2 & 2 & 0.123 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.none() | st.integers()))
def test_csv_reads_back_to_the_same_bits(values):
    """Full doubles; nothing for None."""
    text = to_csv(["value"], [[value] for value in values])
    rows = list(csv.reader(io.StringIO(text)))[1:]
    # A row of one empty cell is written in quotes, so that it is not an empty line.
    assert [row[0] for row in rows] == ["" if v is None else repr(v) for v in values]
    assert "\r" not in text


@settings(deadline=None)
@given(st.text())
def test_csv_cells_are_no_formulas(text):
    """And one line each, whatever came in."""
    (header, row) = csv.reader(io.StringIO(to_csv(["x"], [[text + "."]])))
    assert header == ["x"]
    assert row[0][:1] not in ("=", "+", "-", "@", "\t", "\r")
    assert len(row[0].splitlines()) == 1


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(max_size=30), st.none() | st.floats(), st.text(max_size=30))))
def test_csv_is_what_the_standard_library_writes(rows):
    """Byte for byte, quotes and commas in names included."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["a", "b", "c"])
    writer.writerows(
        [csv_cell(plain(one)) if isinstance(one, str) else one for one in row] for row in rows
    )
    assert to_csv(["a", "b", "c"], rows) == text.getvalue()


@settings(deadline=None)
@given(st.text(max_size=100))
def test_latex_has_no_command_but_those_for_letters(text):
    """All special characters are gone once the known replacements are taken out."""
    shown = latex(text)
    for known in (
        *("textbackslash", "textasciitilde", "textasciicircum"),
        *("textless", "textgreater", "textbar"),
    ):
        shown = shown.replace(f"\\{known}{{}}", "")
    for char in "{}$&#_%":
        shown = shown.replace(f"\\{char}", "")
    for group in ("{[}", "{]}", "{*}"):
        shown = shown.replace(group, "")
    assert not set(shown) & set("\\{}$&#_%~^<>|[]*")
