"""Tables as CSV, Markdown and LaTeX: the same bytes on every machine.

Numbers stand in full precision in CSV and with three decimals where people read them. Text may
come from a stranger, so each format escapes it in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain

from geneb.base.text import csv_cell, latex, markdown, plain
from geneb.reporting.tables import Cell, Table

ABSENT = "-"
_DECIMALS = 3


def score_text(value: float) -> str:
    """Return a score as people read it: three decimals, and no sign before a zero."""
    text = f"{value:.{_DECIMALS}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def cell_text(cell: Cell) -> str:
    """Return a cell as people read it; text is not escaped."""
    if cell is None:
        return ABSENT
    return score_text(cell) if isinstance(cell, float) else str(cell)


def numeric_columns(table: Table) -> list[str]:
    """Return the columns that hold numbers only."""
    return [
        column
        for place, column in enumerate(table.columns)
        if not any(isinstance(row[place], str) for row in table.rows)
    ]


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return a table as CSV: LF, floats that read back to the same bits, nothing for None."""
    lines = [",".join([_csv_field(cell) for cell in row]) for row in chain([columns], rows)]
    # A line with nothing on it would be no row.
    return "".join(f"{line}\n" if line else '""\n' for line in lines)


def _csv_field(cell: Cell) -> str:
    if isinstance(cell, str):
        return _csv_string(cell)
    return "" if cell is None else str(cell)


@lru_cache(maxsize=1024)  # a long table says the same names over and over
def _csv_string(text: str) -> str:
    # `csv.writer` gives the same, in twice the time: it looks at every character of every number.
    # No line breaks are left that would need quotes.
    safe = csv_cell(plain(text))
    return '"' + safe.replace('"', '""') + '"' if "," in safe or '"' in safe else safe


def to_markdown(table: Table) -> str:
    """Return a table as Markdown, numbers to the right."""
    numeric = set(numeric_columns(table))
    lines = [
        [markdown(column) for column in table.columns],
        ["---:" if column in numeric else "---" for column in table.columns],
        *([_shown(cell, markdown) for cell in row] for row in table.rows),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _shown(cell: Cell, escape: Callable[[str], str]) -> str:
    return escape(cell) if isinstance(cell, str) else cell_text(cell)


def to_latex(table: Table, caption: str, label: str) -> str:
    """Return a table as LaTeX; it needs the package booktabs.

    A line is drawn wherever the text of a first column of text changes.
    """
    numeric = set(numeric_columns(table))
    body: list[str] = []
    before: Cell = None
    for row in table.rows:
        first = row[0]
        if isinstance(first, str) and before not in (None, first):
            body.append(r"\midrule")
        before = first
        body.append(_latex_row([_shown(cell, latex) for cell in row]))
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex(caption)}}}",
        rf"\label{{{label}}}",
        rf"\begin{{tabular}}{{{''.join('r' if one in numeric else 'l' for one in table.columns)}}}",
        r"\toprule",
        _latex_row([latex(column) for column in table.columns]),
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
