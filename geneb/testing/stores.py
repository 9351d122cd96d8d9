"""What every reader of stores promises, as tests; pytest collects them from a subclass."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import numpy as np

from geneb.base.canonical import pairs_digest
from geneb.errors import CorruptionError, GenebError, NotFoundError
from geneb.stores.layout import block_count
from geneb.stores.reader import Store, ordered_splits
from geneb.testing.made_stores import MODEL, RUN, StoreContent, awkward_content, make_task

IMPOSSIBLE_NAMES = ("", ".", "..", "../tasks", "tasks/", "/tasks", "ta\0sks", "tasks\n", "\x1b[2J")


class StoreContract:
    """The tests that a reader of stores must pass, whatever the bytes lie in.

    Subclass it in a test file, name the subclass ``Test...`` and write `make` and `damage`::

        class TestMine(StoreContract):
            def make(self, tmp_path, content):
                return open_mine(convert(write_store(tmp_path / "s.zarr", content)))

            def damage(self, tmp_path, task, split):
                ...

    Attributes
    ----------
    wide
        A store of several blocks a split: the shape of its one split's embeddings.
    """

    wide: ClassVar[tuple[int, int]] = (37, 1 << 17)

    # What a subclass says about its reader.

    def make(self, tmp_path: Path, content: StoreContent) -> Store:
        """Make a sealed store of this content under ``tmp_path`` and return it opened."""
        raise NotImplementedError("write make(): it returns an opened store")

    def damage(self, tmp_path: Path, task: str, split: str) -> None:
        """Change one stored bit of a split's embeddings in the store that `make` made."""
        raise NotImplementedError("write damage(): it changes one bit of stored embeddings")

    # What a store says about itself.

    def test_it_says_what_it_is(self, tmp_path: Path) -> None:
        """Fingerprint, model, runs, canary, and all tasks, complete and sorted."""
        content = awkward_content()
        store = self.make(tmp_path, content)

        assert content.fingerprint == store.fingerprint
        assert content.fingerprint.id == store.fingerprint_id
        assert store.model_id == MODEL
        assert [record.run for record in store.runs()] == [RUN]
        _assert_same(content.canary, store.canary(), "the canary")
        assert sorted(content.tasks) == store.task_ids()
        assert store.incomplete() == []
        assert store.sealed

    def test_splits_and_classes_are_those_of_the_task(self, tmp_path: Path) -> None:
        """Train comes first, then test, then the others by name; classes are None or texts."""
        content = awkward_content()
        store = self.make(tmp_path, content)

        for name, task in content.tasks.items():
            stored = store.task(name)
            assert stored.id == name
            assert ordered_splits(task.splits) == stored.splits
            assert task.classes == stored.classes

    # What is in it.

    def test_arrays_come_back_bit_for_bit(self, tmp_path: Path) -> None:
        """Embeddings are float32, labels int64 or None, row ids uint8."""
        self._check_arrays(tmp_path, awkward_content())

    def test_half_precision_comes_back_as_float32(self, tmp_path: Path) -> None:
        """Vectors stored in float16 are returned in float32, rounded once."""
        self._check_arrays(tmp_path, awkward_content("float16"))

    def test_blocks_are_put_together_in_order(self, tmp_path: Path) -> None:
        """A split of several blocks is one array."""
        rows, dim = self.wide
        assert block_count(rows, dim) > 1

        self._check_arrays(
            tmp_path, StoreContent({"wide": make_task("w", dim, {"train": rows}, ["a", "b"])}, dim)
        )

    def test_digests_are_those_of_the_arrays(self, tmp_path: Path) -> None:
        """A manifest's digests are SHA-256 over the stored numbers and over the pairs."""
        content = awkward_content()
        store = self.make(tmp_path, content)

        for name, task in content.tasks.items():
            manifest = store.task(name).manifest
            for split, entry in task.splits.items():
                stated = manifest.splits[split]
                rows = entry.embeddings.astype("<f4").tobytes()
                assert len(entry.row_ids) == stated.rows
                assert hashlib.sha256(rows).hexdigest() == stated.embeddings_sha256
                assert pairs_digest(entry.row_ids, entry.labels) == stated.pairs_sha256

    def test_what_is_returned_is_the_caller_s(self, tmp_path: Path) -> None:
        """Writing into a returned array changes nothing but that array."""
        content = awkward_content()
        task = self.make(tmp_path, content).task("extremes")

        for read in (task.embeddings, task.row_ids):
            first = read("train")
            first += 1
            assert not np.array_equal(first, read("train")), "two reads share their memory"

    def test_threads_may_read_at_the_same_time(self, tmp_path: Path) -> None:
        """Each thread gets the arrays that it asked for."""
        content = awkward_content()
        store = self.make(tmp_path, content)
        wanted = [
            (name, split) for name, task in content.tasks.items() for split in task.splits
        ] * 4

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda key: store.task(key[0]).embeddings(key[1]), wanted))

        for (name, split), rows in zip(wanted, found, strict=True):
            expected = content.tasks[name].splits[split].embeddings
            _assert_same(expected, rows, f"task {name}, {split}")

    # What is not in it.

    def test_what_is_not_there_is_not_found(self, tmp_path: Path) -> None:
        """Another task or split is a `NotFoundError`; impossible names are refused."""
        store = self.make(tmp_path, awkward_content())

        _raises(NotFoundError, lambda: store.task("extreme"))
        _raises(NotFoundError, lambda: store.task("extremes").embeddings("dev"))
        _raises(NotFoundError, lambda: store.task("extremes").labels("embeddings"))
        _raises(NotFoundError, lambda: store.task("extremes").row_ids(""))
        for name in IMPOSSIBLE_NAMES:
            error = _raises(GenebError, lambda name=name: store.task(name))
            assert "\x1b" not in str(error), "an error passes control characters on"

    def test_damage_is_named(self, tmp_path: Path) -> None:
        """One changed bit is a `CorruptionError` naming task and split; the rest can be read."""
        content = awkward_content()
        store = self.make(tmp_path, content)
        self.damage(tmp_path, "extremes", "test")

        error = _raises(CorruptionError, lambda: store.task("extremes").embeddings("test"))

        assert "extremes" in str(error), str(error)
        assert "test" in str(error), str(error)
        rows = store.task("extremes").embeddings("train")
        _assert_same(content.tasks["extremes"].splits["train"].embeddings, rows, "the other split")

    # Helpers.

    def _check_arrays(self, tmp_path: Path, content: StoreContent) -> None:
        store = self.make(tmp_path, content)
        for name, task in content.tasks.items():
            stored = store.task(name)
            for split, entry in task.splits.items():
                where = f"task {name}, {split}"
                expected = entry.embeddings.astype(content.store_dtype).astype(np.float32)
                _assert_same(expected, stored.embeddings(split), f"{where}: embeddings")
                _assert_same(entry.row_ids, stored.row_ids(split), f"{where}: row ids")
                labels = stored.labels(split)
                if entry.labels is None:
                    assert labels is None, f"{where}: unlabelled data has labels"
                else:
                    _assert_same(entry.labels, labels, f"{where}: labels")


def _assert_same(expected: np.ndarray, found: np.ndarray | None, what: str) -> None:
    assert isinstance(found, np.ndarray), f"{what}: {type(found).__name__} instead of an array"
    assert expected.dtype == found.dtype, f"{what}: {found.dtype} instead of {expected.dtype}"
    assert expected.shape == found.shape, f"{what}: {found.shape} instead of {expected.shape}"
    assert expected.tobytes() == found.tobytes(), f"{what}: other numbers than were written"


def _raises(kind: type[GenebError], action: Callable[[], object]) -> GenebError:
    try:
        action()
    except kind as error:
        return error
    raise AssertionError(f"nothing was raised where a {kind.__name__} was due")
