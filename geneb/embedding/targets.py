"""The stores that a run writes to: one, or one for each layer of the model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from geneb.embedding.agreement import check_begun, check_complete, is_begun, is_complete
from geneb.embedding.blocks import BlockOutput
from geneb.embedding.canary import check_drift, check_sequences, tolerance
from geneb.embedding.descriptions import Beginning
from geneb.errors import InputError
from geneb.stores.model import RunRecord
from geneb.stores.reader import Store
from geneb.stores.zarr_store import Writer, create_store
from geneb.tasks.read import Task, TaskRows


class Target:
    """One store of a run.

    Parameters
    ----------
    layer
        Which of the model's layers goes into it, as the extractor calls it.
    writer
        The store, entered for the length of the run.
    beginning
        What the store is created with, or compared with.

    Attributes
    ----------
    recorded
        Whether the store has a record of this run.
    """

    def __init__(self, layer: str, writer: Writer, beginning: Beginning) -> None:
        self.layer = layer
        self.writer = writer
        self.recorded = False
        self._root = beginning.root
        self._canary = beginning.canary
        self._to_replace: dict[str, tuple[int, int] | None] = {}

    @property
    def path(self) -> Path:
        """The store's folder."""
        return self.writer.path

    @property
    def store(self) -> Store:
        """The store as it stands now, opened for reading."""
        return self.writer.store

    def open(self, record: RunRecord, token_budget: int, asked: int | None) -> int:
        """Create the store, or compare the one that is there with what would be created.

        Parameters
        ----------
        record
            Of the run, for a store that it creates.
        token_budget
            Of a store that is created.
        asked
            The token budget that a user, or a store of another layer, demands.

        Returns
        -------
        int
            The store's token budget.

        Raises
        ------
        FingerprintError
            If it holds another kind of embedding.
        InputError
            If it has another name or token budget.
        DriftError
            If the model's vectors are no longer those of the canary.
        """
        root = self._root.model_copy(update={"token_budget": token_budget})
        self.recorded = create_store(self.path, root, self._canary, record)
        store = self.writer.open(root.fingerprint)
        if not self.recorded:
            self._check_opened(store, asked)
        return store.root.token_budget

    def _check_opened(self, store: Store, asked: int | None) -> None:
        root = self._root
        if store.model_id != root.model.id:
            raise InputError(
                "this store belongs to a model of another name",
                where=str(store.path),
                expected=store.model_id,
                found=root.model.id,
                fix="name another --store, or the same model",
            )
        budget = store.root.token_budget
        if asked not in (None, budget):
            raise InputError(
                "the token budget is fixed when a store is created",
                where=str(store.path),
                expected=f"--batch-tokens {budget}, or none",
                found=f"--batch-tokens {asked}",
                fix="leave --batch-tokens out, or name another --store",
            )
        check_sequences(store)
        allowed = tolerance(root.fingerprint.compute_dtype, root.fingerprint.store_dtype)
        check_drift(self._canary, store.canary(), allowed, str(store.path))

    def stamp(self, replace: Collection[str]) -> None:
        """Note what tasks that are to be replaced are now, so that they are replaced once."""
        self._to_replace = {name: self.writer.stamp(name) for name in replace}

    def check_agreement(self, scanned: Sequence[TaskRows], replace: Collection[str]) -> set[str]:
        """Compare the tasks that are there with their CSVs.

        Returns
        -------
        set of str
            Ids of the complete tasks, but those that are to be replaced.

        Raises
        ------
        StoreError
        """
        store = self.store
        complete = set(store.task_ids()) - set(replace)
        begun = set(store.incomplete()) - set(replace)
        for rows in scanned:
            if rows.id in complete:
                check_complete(store, rows)
            elif rows.id in begun:
                check_begun(store, rows)
        return complete

    def drop_unless_replaced(self, rows: TaskRows) -> None:
        """Drop a task if it is to be replaced; called by the holder of its claim."""
        if rows.id not in self._to_replace:
            return
        unchanged = self.writer.stamp(rows.id) == self._to_replace[rows.id]
        replaced = not unchanged and is_complete(self.store, rows.id)
        if not replaced and not is_begun(self.store, rows):
            self.writer.drop_task(rows.id)

    def holds(self, rows: TaskRows) -> bool:
        """Return whether a task is complete, after comparing it with its CSV."""
        store = self.store
        if store.manifest(rows.id) is None:
            return False
        check_complete(store, rows)
        return True

    def begin(self, rows: TaskRows) -> None:
        """Create a task unless it was begun; called by the holder of its claim."""
        self.writer.create_task(
            rows.id, {name: (entry.row_ids, entry.labels) for name, entry in rows.splits.items()}
        )
        check_begun(self.store, rows)

    def output(self, task: Task) -> BlockOutput:
        """Return where this layer's blocks of a task go."""
        return BlockOutput(self.layer, self.writer, task)
