"""Reading a task's CSV row by row: every form that is accepted, every mistake that is named."""

from __future__ import annotations

import csv
import io
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb.errors import InputError, NotFoundError
from geneb.tasks.rows import Row, open_rows

BOM = b"\xef\xbb\xbf"

# What UTF-8 can hold, but for NUL, which is refused.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
names = texts.filter(str.strip)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory) -> Path:
    """A folder for files that every example of a test writes anew."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture
def csv_file(tmp_path: Path):
    """Write bytes or text as a task's CSV and return the file."""

    def write(content: bytes | str, name: str = "some_task.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def rows_of(path: Path) -> list[Row]:
    with open_rows(path) as rows:
        return list(rows)


def mistake(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        rows_of(path)
    return caught.value


@given(
    rows=st.lists(st.tuples(texts, names, names, texts), min_size=1, max_size=8),
    columns=st.permutations(["text", "label", "split", "note"]),
    bom=st.booleans(),
    ending=st.sampled_from(["\n", "\r\n", "\r"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    blank=st.integers(0, 3),
)
def test_what_csv_writes_is_read_back(scratch, rows, columns, bom, ending, quoting, blank):
    """In every dialect, text and split come back as they stand and labels without spaces."""
    if any("\r" in field or "\n" in field for row in rows for field in row):
        quoting = csv.QUOTE_ALL  # the writer quotes only the line ending that it writes itself
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=ending, quoting=quoting)
    writer.writerow(columns)
    for row in rows:
        by_name = dict(zip(("text", "label", "split", "note"), row, strict=True))
        writer.writerow([by_name[name] for name in columns])
    path = scratch / "dialect.csv"
    path.write_bytes((BOM if bom else b"") + (text.getvalue() + ending * blank).encode())

    found = rows_of(path)

    assert [(row[0], row[1].strip(), row[2]) for row in rows] == [
        (row.text, row.label, row.split) for row in found
    ]


@given(content=st.binary(max_size=200))
def test_any_bytes_are_rows_or_one_clear_error(scratch, content):
    """No content of a file makes anything else than rows or an error that names the file."""
    path = scratch / "bytes.csv"
    path.write_bytes(content)

    try:
        rows_of(path)
    except InputError as error:
        assert str(path) in error.where


@pytest.mark.parametrize("word", ["NA", "N/A", "null", "nan", "NaN", "None", "", "-", "#N/A"])
def test_no_text_is_taken_for_missing(word, csv_file):
    """A sequence that looks like a missing value, or is empty, is a sequence."""
    assert [Row(2, word, "1", "train")] == rows_of(csv_file(f"text,label,split\n{word},1,train\n"))


@pytest.mark.parametrize("word", ["NA", "null", "nan", "None", "False"])
def test_no_label_is_taken_for_missing(word, csv_file):
    """A label that looks like a missing value is a label."""
    assert [Row(2, "ACGT", word, "train")] == rows_of(
        csv_file(f"text,label,split\nACGT,{word},train\n")
    )


def test_label_column_may_be_absent(csv_file):
    """Own unlabelled data have no labels."""
    assert [Row(2, "ACGT", None, "train")] == rows_of(csv_file("split,text\ntrain,ACGT\n"))


def test_field_far_over_the_limit_of_the_csv_module(csv_file):
    """10 MB of sequence in one field, and the limit is as it was afterwards."""
    before = csv.field_size_limit()
    sequence = "ACGTN" * 2_000_000

    (row,) = rows_of(csv_file(f'text,label,split\n"{sequence}",1,test\n'))

    assert sequence == row.text
    assert before == csv.field_size_limit()


def test_limit_of_the_csv_module_comes_back_after_an_error(csv_file):
    """Also where reading stops half way."""
    before = csv.field_size_limit()

    mistake(csv_file("text,label,split\nA,1\n"))

    assert before == csv.field_size_limit()


def test_one_reader_does_not_take_the_limit_from_another(csv_file):
    """The limit is one for the whole process: the last reader to end puts it back."""
    before = csv.field_size_limit()
    long = "A" * 200_000
    path = csv_file(f"text,label,split\n{long},1,train\n{long},1,test\n")

    with open_rows(path) as rows:
        first = next(rows)
        other = threading.Thread(target=rows_of, args=(path,))
        other.start()
        other.join()
        second = next(rows)

    assert long == first.text == second.text
    assert before == csv.field_size_limit()


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (b"text,label,split\nACGT,1,train\nAC\xffGT,1,train\n", 3, "byte 0xff at character 3"),
        (b"text,label,split\nACGT,1,train\nACGT,\xc3,train\n", 3, "not valid UTF-8"),
        (b"text,label,split\nAC\xed\xa0\x80GT,1,train\n", 2, "not valid UTF-8"),
        ("text,label,split\nA,1,train\n".encode("utf-16"), 1, "not valid UTF-8"),
        (b"text,label,split\nACGT,1,train\nA\0,1,train\n", 3, "NUL"),
        (b'text,label,split\nACGT,1,train\n"ACGT,1,train\nA,1,train\n', 3, "not CSV"),
        (b'text,label,split\n"AC"GT,1,train\n', 2, "not CSV"),
        (b'text,label,split\n"A\nC",1,train\nA,1\n', 4, "too few fields"),
        (b"text,label,split\nACGT,1\n", 2, "too few fields"),
        (b"text,label,split\nACGT,1,train,x\n", 2, "too many fields"),
        (b"text,label,split\n   \nACGT,1,train\n", 2, "too few fields"),
        (b"text,label,split\n\nACGT,1,train\n", 2, "this line is empty"),
        (b"\ntext,label,split\nACGT,1,train\n", 1, "this line is empty"),
        (b"text,label,split\nACGT,,train\n", 2, "'label': the label is empty"),
        (b"text,label,split\nACGT,  ,train\n", 2, "the label is empty"),
        (b"text,label,split\nACGT,1,\n", 2, "'split': the split is empty"),
        (b"text,label,split\nACGT,1, \n", 2, "the split is empty"),
        (b"Text,label,split\nACGT,1,train\n", 1, "no column 'text'"),
        (b"sequence,label\nACGT,1\n", 1, "no column 'text' and no column 'split'"),
        (b"text,label,split,text\nACGT,1,train,A\n", 1, "same name"),
        (b"text;label;split\nACGT;1;train\n", 1, "'text;label;split'"),
        (BOM + BOM + b"text,label,split\nACGT,1,train\n", 1, "no column 'text'"),
    ],
)
def test_mistake_in_a_row(content, line, said, csv_file):
    """One error with the file, the line on which the row begins, and what is wrong with it."""
    path = csv_file(content)

    error = mistake(path)

    assert error.where.startswith(f"{path}: row at line {line}")
    assert said in str(error)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (BOM, "empty"),
        (b"\n\n", "empty"),
        (b"text,label,split", "no rows"),
        (b"text,label,split\r\n\r\n", "no rows"),
    ],
)
def test_file_without_rows(content, said, csv_file):
    """An empty file and a lonely header are not tasks."""
    path = csv_file(content)

    error = mistake(path)

    assert str(path) == error.where
    assert said in error.problem


def test_missing_column_error_says_what_was_found(csv_file):
    """Not even a hostile header makes a wall of text of it."""
    header = ",".join(f"{k}" * 300 for k in range(2000))

    error = mistake(csv_file(f"{header}\n"))

    assert "'" + "1" * 100 + "…'" in error.found
    assert error.found.endswith("and 1990 more")


def test_link_to_a_file_is_followed(csv_file, tmp_path):
    """A folder of links to data elsewhere is a common way to choose tasks."""
    path = csv_file("text,label,split\nACGT,1,train\n")
    link = tmp_path / "link.csv"
    link.symlink_to(path)

    assert rows_of(path) == rows_of(link)


def test_missing_file(tmp_path):
    """A file that is not there, or a link to nowhere."""
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "nowhere.csv")

    for path in (tmp_path / "nowhere.csv", link):
        with pytest.raises(NotFoundError, match=path.name), open_rows(path):
            pass


def test_what_is_no_regular_file(tmp_path):
    """A folder or a pipe is refused at once; a pipe without a writer would block for ever."""
    folder, pipe = tmp_path / "folder.csv", tmp_path / "pipe.csv"
    folder.mkdir()
    os.mkfifo(pipe)

    for path in (folder, pipe):
        assert "not a regular file" in mistake(path).problem
