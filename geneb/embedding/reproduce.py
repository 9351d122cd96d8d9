"""Whether a store was made by a model: rows drawn at random are embedded again and compared.

A store vouches only for itself: its digests hold whatever its vectors are. Who does not know
which rows will be drawn cannot prepare for it, so that a few dozen rows say whether the model
that is named made the store. Rows are found by their ids in the task CSVs, never by their order.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from geneb.base.files import check_name
from geneb.benchmark.spec import load_spec
from geneb.embedding.batches import whole_batches
from geneb.embedding.blocks import name_rows
from geneb.embedding.canary import canary_digest, make_canary, relative_difference, tolerance
from geneb.embedding.descriptions import describe_extractor
from geneb.embedding.engine import Engine, NonFiniteError, RowError
from geneb.embedding.naming import load_model
from geneb.embedding.record import installed_versions
from geneb.errors import InputError, NotFoundError
from geneb.extractors.base import LAST
from geneb.stores.arrays import BlockArray
from geneb.stores.model import Fingerprint, Sha256, fingerprint_difference
from geneb.stores.reader import Store, StoredTask, open_store
from geneb.tasks.read import read_task
from geneb.tasks.select import find_task_files

FORMAT = "geneb-rows"
VERSION = "1.0"
DEFAULT_SAMPLE = 64
_SEEDS = 1 << 32
_FAULTS_SHOWN = 20

Text = Annotated[str, Field(max_length=2000)]
Name = Annotated[str, AfterValidator(lambda name: check_name(name, "task, split or model"))]
Count = Annotated[int, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class FieldDifference(_Strict):
    """A field of the fingerprint in which store and model differ."""

    field: str
    store: Any
    model: Any


class RowFault(_Strict):
    """A row that the model does not make.

    Attributes
    ----------
    difference
        The largest difference over the stored vector's root mean square; None where that is not
        a finite number, or there is nothing to compare with.
    reason
        In words.
    """

    task: Name
    split: Name
    row: Count
    difference: float | None
    reason: Text


class RowReproduction(_Strict):
    """What embedding rows of a store again has shown; a record that can be kept beside it.

    Attributes
    ----------
    reproduced
        Whether every row that was drawn, and the canary, is what the model makes.
    store_model, fingerprint_id
        What the store says of itself.
    manifests
        The digest of each task's manifest, which covers its embeddings.
    left_out
        Tasks of the store that there is no CSV of: none of their rows were drawn.
    model, weights
        What rows were embedded with, and the SHA-256 of its weights.
    differences
        Between the store's fingerprint and the model's. The verdict is of the vectors alone:
        weights in another file format have another digest and make the same vectors.
    rows, sample, seed
        How many rows there were to draw from, how many were drawn, and from which seed.
    tolerance
        The largest difference allowed, relative to the stored vector's root mean square.
    largest_relative, largest_absolute, smallest_cosine
        Over the rows that could be compared; None where there were none.
    canary_difference
        The largest relative one; None where the canaries cannot be compared.
    failing
        How many of the rows drawn are not what the model makes.
    faults
        The first of them.
    """

    format: Literal["geneb-rows"] = FORMAT
    version: Literal["1.0"] = VERSION
    reproduced: bool
    store_model: Name
    fingerprint_id: Sha256
    manifests: dict[Name, Sha256]
    left_out: list[Name]
    model: Name
    weights: Sha256 | None
    device: Text
    versions: dict[str, str]
    differences: list[FieldDifference]
    rows: Count
    sample: Count
    seed: Count
    tolerance: float
    largest_relative: float | None
    largest_absolute: float | None
    smallest_cosine: float | None
    canary_difference: float | None
    failing: Count
    faults: list[RowFault]


@dataclass(frozen=True)
class _Rows:
    """Rows of one split that were drawn."""

    task: StoredTask
    split: str
    rows: np.ndarray
    sequences: Mapping[bytes, str]


def reproduce_rows(
    store: Path | str,
    model: str,
    *,
    data: Path | str,
    sample: int = DEFAULT_SAMPLE,
    seed: int | None = None,
    **told: Any,
) -> RowReproduction:
    """Embed rows of a store again and compare.

    Parameters
    ----------
    store
        The store; its tasks must be complete.
    model
        A model id, or ``path/to/file.py:ClassName``.
    data
        Folder of the task CSVs that it was made from.
    sample
        How many rows to draw, over all tasks whose CSVs are there; all where there are fewer.
    seed
        Of the draw; a random one by default, so that nobody can know the rows beforehand.
    told
        How the model is run: fields of `geneb.extractors.options.ModelOptions`.

    Raises
    ------
    InputError
        If a number is out of range.
    NotFoundError
        If there is no store, no model, or no CSV of any of the store's tasks.
    CorruptionError
        If a block of the store is damaged.
    WorkError
        If the model cannot embed a row.
    """
    if sample < 1:
        raise InputError("a row must be drawn at least", where="sample", found=str(sample))
    seed = secrets.randbelow(_SEEDS) if seed is None else seed
    opened = open_store(store)
    files = _task_files(opened, Path(data))
    loaded = load_model(model, told)
    engine = Engine(loaded.extractor, opened.root.token_budget)
    total, drawn = _draw(opened, files, sample, seed)
    comparison = _Comparison(opened.fingerprint, engine)
    for rows in drawn:
        comparison.compare(rows)
    canary = comparison.compare_canary(opened)
    allowed, (relative, absolute, cosine) = comparison.tolerance, comparison.extremes()
    return RowReproduction(
        reproduced=not comparison.failing and (canary is None or canary <= allowed),
        **_about_store(opened, files),
        model=loaded.model_id,
        weights=comparison.own.weights,
        device=loaded.device,
        versions=installed_versions(),
        differences=comparison.differences(),
        rows=total,
        sample=min(sample, total),
        seed=seed,
        tolerance=allowed,
        largest_relative=relative,
        largest_absolute=absolute,
        smallest_cosine=cosine,
        canary_difference=_finite(canary),
        failing=comparison.failing,
        faults=comparison.faults[:_FAULTS_SHOWN],
    )


def _about_store(store: Store, files: Mapping[str, Path]) -> dict[str, Any]:
    """Return the record's fields about a store, of whose tasks some have a CSV."""
    return {
        "store_model": store.model_id,
        "fingerprint_id": store.fingerprint_id,
        "manifests": {name: store.task(name).manifest.digest for name in files},
        "left_out": [name for name in store.task_ids() if name not in files],
    }


def _task_files(store: Store, data: Path) -> dict[str, Path]:
    """Return the CSVs of the store's complete tasks, of those that are there."""
    complete = store.task_ids()
    files = {path.stem: path for path in find_task_files(data, [], load_spec(), available=True)}
    found = {name: files[name] for name in complete if name in files}
    if not found:
        raise NotFoundError(
            "there is no CSV of any complete task of this store",
            where=str(data),
            expected=f"one of {', '.join(complete[:10])}" if complete else "a complete task",
            fix="name the folder of task CSVs that the store was made from with --data",
        )
    return found


def _draw(
    store: Store, files: Mapping[str, Path], sample: int, seed: int
) -> tuple[int, Iterator[_Rows]]:
    """Return how many rows there are, and those drawn, a split at a time."""
    splits = [(store.task(name), split) for name in files for split in store.task(name).splits]
    counts = np.array([task.arrays(split).rows for task, split in splits])
    starts = np.concatenate([[0], np.cumsum(counts)])
    total = int(starts[-1])
    generator = np.random.Generator(np.random.PCG64(seed))
    chosen = np.sort(generator.choice(total, size=min(sample, total), replace=False))
    ends = np.searchsorted(chosen, starts)
    return total, _drawn_rows(
        [
            (task, split, chosen[first:last] - start)
            for (task, split), start, first, last in zip(
                splits, starts[:-1], ends[:-1], ends[1:], strict=True
            )
            if first < last
        ],
        files,
    )


def _drawn_rows(
    drawn: Sequence[tuple[StoredTask, str, np.ndarray]], files: Mapping[str, Path]
) -> Iterator[_Rows]:
    """Add the sequences; of one task's CSV at a time."""
    sequences: dict[bytes, str] = {}
    read = None
    for task, split, rows in drawn:
        if task.id != read:
            content = read_task(files[task.id], task.splits)
            sequences = {
                row_id.tobytes(): text
                for entry in content.splits.values()
                for row_id, text in zip(entry.row_ids, entry.sequences, strict=True)
            }
            read = task.id
        yield _Rows(task, split, rows, sequences)


class _Comparison:
    """Rows of a store beside what a model makes of their sequences.

    Attributes
    ----------
    own
        The model's fingerprint; its ``dim`` is a placeholder.
    tolerance
        By what the model computes in here; what the store claims of itself does not widen it.
    """

    def __init__(self, stated: Fingerprint, engine: Engine) -> None:
        self.own = describe_extractor(engine.extractor, stated.store_dtype)
        self.tolerance = tolerance(self.own.compute_dtype, stated.store_dtype)
        self.failing = 0
        self.faults: list[RowFault] = []
        self._stated = stated
        self._engine = engine
        self._dim: int | None = None
        self._measured: list[np.ndarray] = []

    def compare(self, drawn: _Rows) -> None:
        """Embed rows again and compare them."""
        arrays = drawn.task.arrays(drawn.split)
        ids = arrays.row_id.read()
        made = self._embed(drawn, ids)
        stored = _read_rows(arrays.embeddings, drawn.rows)
        for row, vector, own in zip(drawn.rows.tolist(), stored, made, strict=True):
            difference, reason = self._judge(vector, own)
            if reason is not None:
                self.failing += 1
                self.faults.append(
                    RowFault(
                        task=drawn.task.id,
                        split=drawn.split,
                        row=row,
                        difference=_finite(difference),
                        reason=reason,
                    )
                )

    def _judge(
        self, stored: np.ndarray, made: np.ndarray | None
    ) -> tuple[float | None, str | None]:
        """Return how far a vector is from what it must be, and why that is too far."""
        if made is None:
            return None, "no sequence with this row's id is in the CSV"
        if made.shape != stored.shape:
            return None, f"{made.shape[0]:,} numbers from the model, {stored.shape[0]:,} stored"
        if np.isnan(made).any():
            return None, "the model gives NaN or infinity"
        if not np.isfinite(made).all():
            return None, f"the model gives a number that is too large for {made.dtype}"
        figures = _figures(stored, made)
        self._measured.append(figures)
        difference = float(figures[0])
        # Not a comparison the other way round: NaN must fail.
        return difference, None if difference <= self.tolerance else "another vector"

    def compare_canary(self, store: Store) -> float | None:
        """Return the largest relative difference; None where other sequences are its canary."""
        if store.root.canary.sequences_sha256 != canary_digest():
            return None
        stored = store.canary()
        try:
            made = _rounded(make_canary(self._engine)[LAST], self._stated.store_dtype)
        except NonFiniteError:
            return float("inf")
        if made.shape != stored.shape:
            return float("inf")
        return float(relative_difference(made, stored).max())

    def differences(self) -> list[FieldDifference]:
        """Return the fields in which the store's fingerprint and the model's differ."""
        own = self.own.model_copy(update={"dim": self._dim or self._stated.dim})
        return [
            FieldDifference(field=name, store=theirs, model=ours)
            for name, theirs, ours in fingerprint_difference(self._stated, own)
        ]

    def extremes(self) -> tuple[float | None, float | None, float | None]:
        """Return the largest relative and absolute difference and the smallest cosine."""
        if not self._measured:
            return None, None, None
        figures = np.array(self._measured)
        relative, absolute = figures[:, :2].max(axis=0)
        return _finite(relative), _finite(absolute), _finite(figures[:, 2].min())

    def _embed(self, drawn: _Rows, ids: np.ndarray) -> list[np.ndarray | None]:
        """Return what the model makes of each row drawn; None where its sequence is not known."""
        if self._engine.extractor.batching == "file-order":
            return [self._embed_in_its_batch(row, ids, drawn) for row in drawn.rows.tolist()]
        texts = [drawn.sequences.get(ids[row].tobytes()) for row in drawn.rows]
        known = np.array([text is not None for text in texts])
        made: dict[int, np.ndarray] = {}
        if known.any():
            wanted = [text for text in texts if text is not None]
            vectors = self._vectors(wanted, drawn, drawn.rows[known])
            made = dict(zip(np.flatnonzero(known).tolist(), vectors, strict=True))
        return [made.get(number) for number in range(len(texts))]

    def _embed_in_its_batch(self, row: int, ids: np.ndarray, drawn: _Rows) -> np.ndarray | None:
        batch_size = self._engine.extractor.batch_size
        first, last = whole_batches(row, row + 1, len(ids), batch_size)
        texts = [drawn.sequences.get(row_id.tobytes()) for row_id in ids[first:last]]
        known = [text for text in texts if text is not None]
        if len(known) < len(texts):
            return None
        return self._vectors(known, drawn, np.arange(first, last))[row - first]

    def _vectors(self, sequences: Sequence[str], drawn: _Rows, rows: np.ndarray) -> np.ndarray:
        """Return what the model makes of rows of a split.

        Infinity where that cannot be stored, NaN for rows that the model makes no numbers of.
        """
        items = self._engine.prepare(sequences)
        left, made = np.arange(len(items)), None
        while made is None and len(left):
            try:
                made = self._engine.embed([items[row] for row in left])
            except NonFiniteError as error:
                # In file order a row's vector is that of its whole batch.
                in_file_order = self._engine.extractor.batching == "file-order"
                left = left[:0] if in_file_order else np.delete(left, error.rows)
            except RowError as error:
                error.where = name_rows(drawn.task.id, drawn.split, rows[left[error.rows]])
                raise
        self._dim = self._dim if made is None else made.shape[1]
        vectors = np.full((len(items), self._dim or self._stated.dim), np.nan, dtype=np.float32)
        if made is not None:
            vectors[left] = made
        return _rounded(vectors, self._stated.store_dtype)


def _rounded(vectors: np.ndarray, dtype: str) -> np.ndarray:
    """Return vectors in what a store holds; infinity for a number that is too large for it."""
    with np.errstate(over="ignore"):
        return vectors.astype(dtype)


def _figures(stored: np.ndarray, made: np.ndarray) -> np.ndarray:
    """Return relative and absolute difference and cosine of two vectors."""
    left, right = made.astype(np.float64), stored.astype(np.float64)
    size = np.linalg.norm(left) * np.linalg.norm(right)
    # Two vectors of zeros point the same way; one of them does not.
    cosine = left @ right / size if size else float(np.array_equal(left, right))
    return np.array(
        [
            relative_difference(made[np.newaxis], stored[np.newaxis])[0],
            np.abs(left - right).max(),
            cosine,
        ]
    )


def _read_rows(array: BlockArray, rows: np.ndarray) -> np.ndarray:
    """Return some rows, ascending, of which each block is read once."""
    height = array.form.chunks[0]
    blocks = rows // height
    return np.concatenate(
        [
            array.read_block(int(index))[rows[blocks == index] - index * height]
            for index in np.unique(blocks)
        ]
    )


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
