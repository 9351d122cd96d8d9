"""Opening a results folder for a probe, and what is refused before anything is changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.results_folders import run_info, write_results

from geneb.errors import InputError
from geneb.probing.folder import open_for_writing
from geneb.results import ResultsFolder

INFO = run_info()
TASKS = ("first", "second", "third")
CHANGES = [
    ("versions", {"scikit-learn": "9.9.9", "scipy": "1.17.1", "numpy": "2.4.6"}),
    ("blas", [{"user_api": "blas", "internal_api": "openblas", "num_threads": 2}]),
    ("blas", []),
]


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder; the lock may come."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_a_folder_is_made_and_opened_again(tmp_path):
    """The regimes of both runs are recorded, in the benchmark's order."""
    open_for_writing(tmp_path, INFO.model_copy(update={"regimes": ["1shot"]}))
    folder, note = open_for_writing(tmp_path, INFO.model_copy(update={"regimes": ["full"]}))
    assert note is None
    assert folder.info.regimes == ["full", "1shot"]
    assert ResultsFolder.open(tmp_path / "some-model").info == folder.info
    assert folder.info.key == INFO.key


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("store_fingerprint", "ef" * 32),
        ("protocol", "geneb-lr-1+seeds-1"),
        ("seeds", [1]),
        ("backend", "torch"),
    ],
)
def test_results_of_another_run_are_refused(tmp_path, field, value):
    """With what differs; nothing there is touched."""
    open_for_writing(tmp_path, INFO)
    before = (tmp_path / "some-model" / "run.json").read_bytes()
    with pytest.raises(InputError, match=field) as caught:
        open_for_writing(tmp_path, INFO.model_copy(update={field: value}))
    assert str(value) in str(caught.value)
    assert str(getattr(INFO, field)) in str(caught.value)
    assert (tmp_path / "some-model" / "run.json").read_bytes() == before


@pytest.mark.parametrize(("field", "value"), CHANGES)
class TestUnderOtherVersions:
    def test_all_tasks_may_be_probed_again(self, tmp_path, field, value):
        """It is said what changed; the key is another one."""
        write_results(tmp_path, INFO, TASKS)
        other = INFO.model_copy(update={field: value})
        folder, note = open_for_writing(tmp_path, other, [*TASKS, "fourth"])
        assert "probed again" in note
        assert " there, " in note
        assert folder.info.key == other.key != INFO.key

    @pytest.mark.parametrize(
        ("tasks", "regimes", "lost"),
        [
            (TASKS[:1], INFO.regimes, "second, third"),
            ((), INFO.regimes, "first, second, third"),
            (["fourth"], INFO.regimes, "first, second, third"),
            (TASKS, ["10shot"], r"first \(full\), first \(1shot\), second \(full\)"),
        ],
    )
    def test_no_results_drop_out(self, tmp_path, field, value, tasks, regimes, lost):
        """What this run would not make again is named, with the change; nothing is touched."""
        path = write_results(tmp_path, INFO, TASKS)
        before = content(tmp_path)
        other = INFO.model_copy(update={field: value, "regimes": list(regimes)})
        with pytest.raises(InputError, match=f"not make these again: {lost}") as caught:
            open_for_writing(tmp_path, other, tasks)
        assert caught.value.exit_code == 2
        assert caught.value.where == str(path)
        assert " there, " in caught.value.found
        assert "probe all tasks" in caught.value.fix
        assert content(tmp_path) == before

    def test_a_change_that_was_interrupted_is_finished_first(self, tmp_path, field, value):
        """Also once ``run.json`` has the new key, stale results are not left behind."""
        write_results(tmp_path, INFO, TASKS)
        other = INFO.model_copy(update={field: value})
        open_for_writing(tmp_path, other, TASKS)
        with pytest.raises(InputError, match="second, third"):
            open_for_writing(tmp_path, other, TASKS[:1])
        open_for_writing(tmp_path, other, TASKS)
        # And back again, which makes none of them stale.
        folder, _ = open_for_writing(tmp_path, INFO, TASKS[:1])
        assert [task.origin.task for task in folder.current()] == sorted(TASKS)

    def test_damaged_results_are_nothing_to_lose(self, tmp_path, field, value):
        """They cannot be read under any key."""
        path = write_results(tmp_path, INFO, TASKS)
        (path / "tasks/second.csv").write_text("nonsense")
        other = INFO.model_copy(update={field: value})
        open_for_writing(tmp_path, other, ["first", "third"])


def test_some_tasks_are_added_under_the_same_key(tmp_path):
    """Nothing becomes stale, so nothing is refused."""
    write_results(tmp_path, INFO, TASKS)
    folder, note = open_for_writing(tmp_path, INFO, ["fourth"])
    assert note is None
    assert len(folder.current()) == 3


class TestAnUnusableOut:
    def refused(self, out: Path) -> InputError:
        with pytest.raises(InputError, match="results cannot be written here") as caught:
            open_for_writing(out, INFO)
        assert caught.value.exit_code == 2
        assert caught.value.found
        assert "--out" in caught.value.fix
        return caught.value

    @pytest.mark.parametrize("name", ["out", "out/some-model", "out/some-model/tasks"])
    def test_a_file_in_its_place(self, tmp_path, name):
        """At any level; the file stays."""
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
        assert str(path) in self.refused(tmp_path / "out").found
        assert path.read_text() == "mine"

    def test_below_a_file_or_a_broken_link(self, tmp_path):
        """Neither can become a folder."""
        (tmp_path / "file").write_text("mine")
        self.refused(tmp_path / "file/out")
        (tmp_path / "link").symlink_to(tmp_path / "nowhere")
        self.refused(tmp_path / "link")

    @pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="there is no /proc")
    def test_a_folder_that_the_system_does_not_let_anybody_make(self):
        """Not even root can make one below /proc."""
        self.refused(Path("/proc/geneb-results"))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    @pytest.mark.parametrize("name", ["", "some-model", "some-model/tasks"])
    def test_a_folder_without_the_right_to_write(self, tmp_path, name):
        """Nothing is made there."""
        path = tmp_path / "out" / name
        path.mkdir(parents=True)
        path.chmod(0o555)
        self.refused(tmp_path / "out")
        assert not list(path.iterdir())
