"""A task as read from its CSV: splits, labels, classes, row ids."""

from __future__ import annotations

import csv
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb.base.canonical import row_ids
from geneb.errors import InputError
from geneb.tasks.read import class_report, read_task, scan_task, sequence_counts

splits_of_rows = st.lists(st.sampled_from(["train", "test", "dev"]), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory) -> Path:
    """A folder for files that every example of a test writes anew."""
    return tmp_path_factory.mktemp("scratch")


def write_task(path: Path, rows: list[tuple[str, str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text", "label", "split"])
        writer.writerows(rows)
    return path


@pytest.fixture
def task_file(tmp_path: Path):
    """Write (text, label, split) rows as a task's CSV and return the file."""

    def write(*rows: tuple[str, str, str], name: str = "some_task.csv") -> Path:
        return write_task(tmp_path / name, list(rows))

    return write


@pytest.fixture
def labelled_file(task_file):
    """Write a task of which only the labels matter: one train row each, and one test row."""

    def write(*labels: str) -> Path:
        return task_file(*(("A", label, "train") for label in labels), ("C", labels[0], "test"))

    return write


def mistake(path: Path, *splits: str) -> InputError:
    with pytest.raises(InputError) as caught:
        read_task(path, splits) if splits else read_task(path)
    return caught.value


class TestLabels:
    @pytest.mark.parametrize(
        ("labels", "classes", "codes"),
        [
            (["0", "1", "1"], ("0", "1"), [0, 1, 1]),
            ([" 1", "1.0", "1", "0 "], ("0", "1"), [1, 1, 1, 0]),
            (["10.0", "50", "20"], ("10", "20", "50"), [0, 2, 1]),
            (["2", "10", "1"], ("1", "2", "10"), [1, 2, 0]),
            (["1", "-1", "+1", "-0"], ("-1", "0", "1"), [2, 0, 2, 1]),
            (
                ["promoter", "10", "2", "Promoter"],
                ("10", "2", "Promoter", "promoter"),
                [3, 0, 1, 2],
            ),
            (["1.5", "1.0", "1"], ("1", "1.0", "1.5"), [2, 1, 0]),
            (["NA", "null"], ("NA", "null"), [0, 1]),
            (["é", "z", "\U0001d538", "\ufffd"], ("z", "é", "\ufffd", "\U0001d538"), [1, 0, 3, 2]),
            (["9" * 18, "-" + "9" * 18], ("-" + "9" * 18, "9" * 18), [1, 0]),
            (["9" * 5000, "1"], ("1", "9" * 5000), [1, 0]),
            (["\u0661", "0"], ("0", "\u0661"), [1, 0]),
            (["7"], ("7",), [0]),
        ],
    )
    def test_become_positions_among_the_classes(self, labels, classes, codes, labelled_file):
        """Whole numbers in numeric order, and else names by code point."""
        task = read_task(labelled_file(*labels))

        assert classes == task.classes
        assert codes == task.splits["train"].labels.tolist()
        assert np.int64 == task.splits["train"].labels.dtype

    @given(
        numbers=st.lists(st.integers(-(10**17), 10**17), min_size=1, max_size=20),
        forms=st.lists(st.sampled_from(["{}", "{}.0", " {}", "{}.", "{}\t"]), min_size=20),
    )
    def test_equal_numbers_are_one_class(self, scratch, numbers, forms):
        """However a whole number is written, it is that number, and the order is numeric."""
        labels = [form.format(number) for number, form in zip(numbers, forms, strict=False)]
        rows = [("A", label, "train") for label in labels] + [("A", labels[0], "test")]
        task = read_task(write_task(scratch / "numbers.csv", rows))

        assert tuple(map(str, sorted(set(numbers)))) == task.classes
        assert numbers == [int(task.classes[k]) for k in task.splits["train"].labels]

    @given(labels=st.lists(st.text("aB1é-. ", min_size=1), min_size=1, max_size=20))
    def test_names_come_back(self, scratch, labels):
        """A label that is a name is its class' text; the classes are in code point order."""
        labels = ["a name", *(label for label in labels if label.strip())]
        rows = [("A", label, "train") for label in labels] + [("A", labels[0], "test")]
        task = read_task(write_task(scratch / "names.csv", rows))

        assert [label.strip() for label in labels] == [
            task.classes[k] for k in task.splits["train"].labels
        ]
        assert sorted({label.strip() for label in labels}) == list(task.classes)

    def test_classes_are_those_of_the_whole_file(self, task_file):
        """The mapping does not depend on the splits that are asked for."""
        path = task_file(("A", "30", "train"), ("A", "20", "test"), ("A", "10", "dev"))

        for splits, label in (("train", 2), ("test", 1), ("dev", 0)):
            task = read_task(path, (splits,))
            assert task.classes == ("10", "20", "30")
            assert [label] == task.splits[splits].labels.tolist()

    def test_one_name_in_a_split_left_out_makes_all_labels_names(self, task_file):
        """All labels of the file decide what labels are."""
        path = task_file(("A", "2", "train"), ("A", "10", "test"), ("A", "x", "dev"))

        assert read_task(path).classes == ("10", "2", "x")

    def test_unlabelled_data(self, tmp_path):
        """Without the column there are no labels and no classes."""
        path = tmp_path / "own.csv"
        path.write_text("text,split\nACGT,train\nAC,test\n")

        task, rows = read_task(path), scan_task(path)

        assert () == task.classes == rows.classes
        assert task.splits["train"].labels is None
        assert rows.splits["test"].labels is None
        assert class_report(task) == ((), ())


class TestSplits:
    def test_train_and_test_by_default(self, task_file):
        """Other splits are left out and counted; sequences are kept exactly as they stand."""
        path = task_file(
            ("acgu N-", "1", "test"),
            (" A", "0", "train"),
            ("G\nG", "1", "validation"),
            ("", "1", "train"),
            ("G", "0", "dev"),
            ("G", "0", "dev"),
        )

        task = read_task(path)

        assert task.id == "some_task"
        assert path == task.path
        assert list(task.splits) == ["train", "test"]
        assert task.splits["train"].sequences == [" A", ""]
        assert task.splits["test"].sequences == ["acgu N-"]
        assert task.left_out == {"dev": 2, "validation": 1}

    def test_others_by_request(self, task_file):
        """Train and test come first, in whatever order they are named; the rest is counted."""
        path = task_file(("A", "0", "train"), ("C", "0", "test"), ("G", "0", "dev"))

        task = read_task(path, ("dev", "test"))

        assert list(task.splits) == ["test", "dev"]
        assert task.splits["dev"].sequences == ["G"]
        assert task.left_out == {"train": 1}

    @pytest.mark.parametrize("name", ["Train", "TEST", "train ", " test"])
    def test_another_spelling_of_train_or_test_is_a_mistake(self, name, task_file):
        """Leaving out such rows without a word would lose data."""
        path = task_file(("A", "0", "train"), ("A", "0", "test"), ("A", "0", name))

        error = mistake(path)

        assert f"{path}: row at line 4, field 'split'" == error.where
        assert repr(name) == error.found

    def test_another_spelling_of_a_split_asked_for_is_a_mistake(self, task_file):
        """What holds for train and test holds for whatever is asked for."""
        path = task_file(("A", "0", "dev"), ("A", "0", "Dev"))

        assert mistake(path, "dev").found == "'Dev'"
        assert mistake(path, "Dev").found == "'dev'"

    @pytest.mark.parametrize(
        ("there", "asked", "absent"),
        [
            ("train", ("train", "test"), "test"),
            ("test", ("train", "test"), "train"),
            ("test", ("train",), "train"),
            ("test", ("test", "dev"), "dev"),
        ],
    )
    def test_split_without_rows_is_a_mistake(self, there, asked, absent, task_file):
        """The message says which splits the file has."""
        error = mistake(task_file(("A", "0", there)), *asked)

        assert f"'{absent}'" in error.problem
        assert f"rows of '{there}'" == error.found

    def test_absent_split_that_was_not_asked_for(self, task_file):
        """A file of test rows alone is enough where only they are wanted."""
        path = task_file(("A", "0", "test"))

        assert list(read_task(path, ("test",)).splits) == ["test"]

    @pytest.mark.parametrize("splits", [(), ("train", "train"), ("../x",), ("dev", "Dev")])
    def test_splits_that_cannot_be_asked_for(self, splits, task_file):
        """Each once, at least one, and safe as the name of a group in a store."""
        with pytest.raises(InputError):
            read_task(task_file(("A", "0", "train")), splits)

    def test_file_name_must_be_a_task_id(self, task_file):
        """It becomes a path in stores."""
        path = task_file(("A", "0", "train"), name="my task.csv")

        assert str(path) == mistake(path).where


class TestScan:
    @given(splits=splits_of_rows, data=st.data())
    def test_scan_agrees_with_read(self, scratch, splits, data):
        """The pass that keeps no text finds the same rows, labels, classes, or the same mistake."""
        rows = [
            (data.draw(st.text("ACGTN", max_size=5)), data.draw(st.sampled_from("abc")), split)
            for split in splits
        ]
        path = write_task(scratch / "scan.csv", rows)

        try:
            task = read_task(path)
        except InputError as error:
            with pytest.raises(InputError) as caught:
                scan_task(path)
            assert str(error) == str(caught.value)
            return
        scanned = scan_task(path)

        assert (task.id, task.classes, task.left_out) == (
            scanned.id,
            scanned.classes,
            scanned.left_out,
        )
        assert list(task.splits) == list(scanned.splits)
        for name, split in task.splits.items():
            np.testing.assert_array_equal(row_ids(split.sequences), split.row_ids)
            np.testing.assert_array_equal(split.row_ids, scanned.splits[name].row_ids)
            np.testing.assert_array_equal(split.labels, scanned.splits[name].labels)

    def test_scan_keeps_no_text(self, tmp_path):
        """Its memory is bytes a row, however long the sequences are."""
        rows = [("ACGT" * 2500 + str(k), "1", "train") for k in range(500)]
        path = write_task(tmp_path / "long.csv", [*rows, ("A", "0", "test")])
        scan_task(path)  # whatever is loaded on first use

        tracemalloc.start()
        try:
            scan_task(path)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        # 5 MB of text; a line, the reader's buffers and 24 bytes a row are well below a fifth.
        assert peak < path.stat().st_size / 5


def test_sequence_counts():
    """Either case of ACGT is ordinary; U, N, IUPAC letters, spaces and the like are not."""
    sequences = ["ACGT", "acgt", "", "ACGU", "NNN", "AC GT", "R", "", "ACGT\n", "ACGÁ"]

    assert sequence_counts(sequences) == (6, 2)
    assert sequence_counts([]) == (0, 0)


def test_class_report(task_file):
    """Classes without train rows cannot be predicted; those without test rows are never asked."""
    path = task_file(
        ("A", "both", "train"),
        ("A", "only train", "train"),
        ("A", "both", "test"),
        ("A", "only test", "test"),
        ("A", "nowhere", "dev"),
    )

    report = class_report(read_task(path))

    assert report.only_in_train == ("only train",)
    assert report.only_in_test == ("only test",)
    assert report == class_report(scan_task(path))
    assert class_report(read_task(path, ("test",))) == ((), ())


def test_real_tasks(real_data):
    """Real files, read by a plain reading of their columns, give the same rows."""
    paths = sorted((real_data / "tasks").glob("*GUE_mouse*.csv")) + sorted(
        (real_data / "extra").glob("4mc*.csv")
    )
    assert len(paths) > 5
    for path in paths:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))

        task = read_task(path)

        assert task.left_out == {}
        for name, split in task.splits.items():
            expected = [row for row in rows if row["split"] == name]
            assert [row["text"] for row in expected] == split.sequences
            assert [row["label"] for row in expected] == [task.classes[k] for k in split.labels]


def test_demo_tasks(demo_data):
    """What is shipped is read without a complaint."""
    task = read_task(demo_data / "demo_splice_junctions.csv")

    assert task.classes == ("0", "1", "2")
    assert [len(split.sequences) for split in task.splits.values()] == [2000, 1186]
    assert class_report(task) == ((), ())
