"""Which tasks are meant by patterns, and which files of a folder a run is about."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb.benchmark.spec import load_spec
from geneb.errors import InputError, NotFoundError
from geneb.tasks.select import find_task_files, select, suggest

SPEC = load_spec()
MOUSE = [f"leannmlindsey_GUE_mouse_{k}" for k in range(5)]
TF = [f"leannmlindsey_GUE_human_tf_{k}" for k in range(5)]


@pytest.fixture
def folder(tmp_path: Path):
    """Put empty CSVs of these names into a folder and return it."""

    def fill(*stems: str) -> Path:
        for stem in stems:
            (tmp_path / f"{stem}.csv").touch()
        return tmp_path

    return fill


def stems(paths: list[Path]) -> list[str]:
    return [path.stem for path in paths]


class TestSelect:
    @pytest.mark.parametrize(
        ("patterns", "expected"),
        [
            (["leannmlindsey_GUE_mouse_3"], MOUSE[3:4]),
            (["GUE mouse 3"], MOUSE[3:4]),
            (["gue MOUSE 3"], MOUSE[3:4]),
            (["TF Binding"], TF),
            (["tf binding", "Mouse Enh."], MOUSE + TF),
            (["*_mouse_[12]"], MOUSE[1:3]),
            (["*mouse_?"], MOUSE),
            (["GUE mouse 2", "*_mouse_2", "leannmlindsey_GUE_mouse_2"], MOUSE[2:3]),
            (["own", "GUE mouse 0"], [MOUSE[0], "own"]),
            (["o*"], ["other", "own"]),
        ],
    )
    def test_ids_labels_categories_and_globs(self, patterns, expected):
        """In spec order, then own tasks by name, each once."""
        assert select(patterns, ["own", "other", *reversed(SPEC.task_ids)], SPEC) == expected

    def test_no_patterns_mean_everything_available(self):
        """In spec order, then own tasks by name."""
        assert select([], ["b", "a", TF[1], MOUSE[0]], SPEC) == [MOUSE[0], TF[1], "a", "b"]

    def test_only_what_is_available(self):
        """A category means those of its tasks that are there."""
        assert select(["TF Binding"], [TF[3], TF[1], MOUSE[1]], SPEC) == [TF[1], TF[3]]

    @given(st.lists(st.sampled_from([*SPEC.task_ids, "own"]), unique=True))
    def test_order_does_not_depend_on_the_order_of_names(self, names):
        """However tasks are named or listed, the result has one order."""
        order = [*SPEC.task_ids, "own"]

        assert select(names, order, SPEC) == (sorted(names, key=order.index) or order)

    @pytest.mark.parametrize(
        ("pattern", "near"),
        [
            ("GUE mouse 33", "'GUE mouse 3'"),
            ("TF Bindings", "'TF Binding'"),
            ("LEANNMLINDSEY_GUE_MOUSE_3", f"'{MOUSE[3]}'"),
            ("mouse", f"'{MOUSE[0]}'"),
        ],
    )
    def test_pattern_that_means_nothing(self, pattern, near):
        """One error that names what looks like it, even where another pattern means something."""
        with pytest.raises(InputError) as caught:
            select(["GUE mouse 1", pattern], MOUSE + TF, SPEC)

        assert repr(pattern) in caught.value.problem
        assert near in caught.value.fix

    def test_pattern_like_nothing_at_all(self):
        """Where nothing looks like it, the message says where the names are."""
        assert "geneb task list" in suggest("§" * 5000, SPEC.task_ids)


class TestFindTaskFiles:
    def test_all_tasks_of_the_spec(self, folder):
        """Without patterns exactly they, in order, whatever else is there."""
        path = folder(*SPEC.task_ids, "own")

        assert stems(find_task_files(path, [], SPEC)) == list(SPEC.task_ids)

    def test_missing_tasks_are_one_error(self, folder):
        """It counts them, names the first ten, and says how to do without them."""
        with pytest.raises(NotFoundError) as caught:
            find_task_files(folder(*MOUSE), [], SPEC)

        error = caught.value
        assert error.problem.startswith("95 of the 100 ")
        assert error.found.count(".csv") == 10
        assert "and 85 more" in error.found
        assert "--available" in error.fix

    def test_available(self, folder):
        """Whatever is there: tasks of the spec in order, then own ones by name."""
        path = folder("zebra", TF[1], "ant", MOUSE[2])

        assert stems(find_task_files(path, [], SPEC, available=True)) == [
            MOUSE[2],
            TF[1],
            "ant",
            "zebra",
        ]

    def test_named_tasks(self, folder):
        """Only they need to be there; own ones are named by their file."""
        path = folder("own", "other", MOUSE[2], *TF)

        assert stems(find_task_files(path, ["TF Binding", "own"], SPEC)) == [*TF, "own"]

    def test_named_task_that_is_missing(self, folder):
        """A category means all its tasks, unless only the available ones are wanted."""
        path = folder(TF[0], TF[3], MOUSE[0])

        with pytest.raises(NotFoundError, match="3 of the 5 ") as caught:
            find_task_files(path, ["TF Binding"], SPEC)

        assert caught.value.found == f"no {TF[1]}.csv, {TF[2]}.csv, {TF[4]}.csv"
        assert stems(find_task_files(path, ["TF Binding"], SPEC, available=True)) == [TF[0], TF[3]]

    @pytest.mark.parametrize("patterns", [[], ["TF Binding"]])
    def test_nothing_available(self, patterns, folder):
        """An empty run is a mistake, not a success."""
        with pytest.raises(NotFoundError, match="no such task CSVs"):
            find_task_files(folder(), patterns, SPEC, available=True)

    def test_what_is_ignored(self, folder):
        """Hidden files, folders and other endings are not tasks; a link to a file is one."""
        path = folder("own", ".hidden")
        (path / "folder.csv").mkdir()
        (path / "notes.txt").touch()
        (path / "upper.CSV").touch()
        (path / "broken.csv").symlink_to(path / "nowhere")
        (path / "link.csv").symlink_to(path / "own.csv")

        assert stems(find_task_files(path, [], SPEC, available=True)) == ["link", "own"]

    def test_names_that_differ_only_in_case(self, folder):
        """A store on another file system could not hold both."""
        with pytest.raises(InputError) as caught:
            find_task_files(folder("own", "Own"), ["own"], SPEC)

        assert caught.value.found == "Own.csv and own.csv"

    def test_name_that_cannot_be_a_task(self, folder):
        """It is refused where it is chosen, and does not disturb where it is not."""
        path = folder("my task", "own")

        with pytest.raises(InputError) as caught:
            find_task_files(path, [], SPEC, available=True)

        assert caught.value.where.endswith("my task.csv")
        assert stems(find_task_files(path, ["own"], SPEC)) == ["own"]

    @pytest.mark.parametrize("name", ["nowhere", "own.csv"])
    def test_no_such_folder(self, name, folder):
        """A path that leads nowhere, or to a file."""
        with pytest.raises(NotFoundError, match="no such folder"):
            find_task_files(folder("own") / name, [], SPEC)
