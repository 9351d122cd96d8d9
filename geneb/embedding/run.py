"""``embed``: from a folder of task CSVs to a store, top to bottom."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import ValidationError

from geneb.base.locations import shareable
from geneb.base.progress import Progress, Silent
from geneb.base.text import plain
from geneb.benchmark.spec import load_model_meta, load_spec
from geneb.embedding.agreement import check_replacements
from geneb.embedding.batches import DEFAULT_TOKEN_BUDGET
from geneb.embedding.canary import canary_digest, make_canary
from geneb.embedding.engine import Engine
from geneb.embedding.record import EmbedSummary, RunClock, new_run_id
from geneb.embedding.session import Session, TaskInput
from geneb.errors import GenebError, InputError, WorkError
from geneb.extractors.base import Extractor
from geneb.extractors.registry import load, models, named
from geneb.stores.arrays import vectors_digest
from geneb.stores.model import FORMAT, VERSION, CanaryRef, Fingerprint, ModelRef, Root, StoreDtype
from geneb.stores.reader import ordered_splits
from geneb.stores.zarr_store import Writer
from geneb.tasks.read import DEFAULT_SPLITS, scan_task
from geneb.tasks.select import find_task_files


def embed(
    model: str,
    *,
    data: Path | str,
    store: Path | str,
    tasks: Sequence[str] = (),
    splits: Sequence[str] = (),
    available: bool = False,
    replace_tasks: Sequence[str] = (),
    batch_tokens: int | None = None,
    store_dtype: Literal["float32", "float16"] = "float32",
    device: str = "cpu",
    weights: str | None = None,
    model_id: str | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> EmbedSummary:
    """Write a model's frozen embeddings of tasks into a store, resuming where it stopped.

    Parameters
    ----------
    model
        A model id, or ``path/to/file.py:ClassName`` for an extractor of one's own.
    data
        Folder of task CSVs.
    store
        The store; created where it does not exist.
    tasks
        Ids, labels, categories or globs; all 100 tasks of the benchmark where none are given.
    splits
        Splits of the CSVs to embed besides train and test.
    available
        Take the tasks whose CSVs are there instead of asking for all 100.
    replace_tasks
        Ids of tasks to drop from the store and embed anew. One that was begun with the CSV as it
        is is resumed instead; of several processes that are given the same one at a time, one
        replaces it. A later run with the same argument replaces it again.
    batch_tokens
        Padded tokens a batch; of an existing store, it must be what the store was created with.
    store_dtype
        What vectors are stored as.
    device, weights
        Passed to the extractor.
    model_id
        The name under which the store of an extractor of one's own is known; by default the
        class's name.
    progress, stop
        Told how far the run is; asked before each block whether it shall stop.

    Returns
    -------
    EmbedSummary

    Raises
    ------
    InputError, NotFoundError
        Before anything is written, if a CSV, a name or an option is wrong.
    FingerprintError, DriftError
        If the store was made in another way, or by a model that has changed since.
    WorkError
        If the model breaks its contract; what was complete before stays complete.
    """
    clock = RunClock()
    progress = progress or Silent()
    if batch_tokens is not None and batch_tokens < 1:
        raise InputError("a batch must hold a token", where="batch_tokens", found=str(batch_tokens))
    writer = Writer(Path(store))
    wanted = ordered_splits({*DEFAULT_SPLITS, *splits})
    files = find_task_files(Path(data), list(tasks), load_spec(), available=available)
    loaded = load(model, device=device, weights=weights)
    name = named(loaded, model_id)
    inputs = [TaskInput(path, scan_task(path, wanted)) for path in files]
    check_replacements(replace_tasks, [task.rows for task in inputs])
    engine = Engine(loaded.extractor, batch_tokens or DEFAULT_TOKEN_BUDGET)
    described = _fingerprint(loaded.extractor, store_dtype)
    canary = make_canary(engine, store_dtype)
    fingerprint = described.model_copy(update={"dim": canary.shape[1]})
    summary = EmbedSummary(
        store=str(writer.path),
        model=name,
        fingerprint=fingerprint.id,
        run=new_run_id(),
        dim=fingerprint.dim,
    )
    options = {
        "model": shareable(Path(model)),
        "data": shareable(Path(data)),
        "store": shareable(Path(store)),
        "tasks": list(tasks),
        "splits": wanted,
        "available": available,
        "replace_tasks": list(replace_tasks),
        "batch_tokens": batch_tokens,
        "store_dtype": store_dtype,
        "device": device,
        "weights": weights and shareable(weights),
        "model_id": model_id,
    }
    session = Session(
        writer, engine, summary, clock=clock, options=options, progress=progress, stop=stop
    )
    with _resumable(writer.path), writer:
        session.open(_root(engine, fingerprint, canary, summary), canary, batch_tokens)
        session.embed_tasks(inputs, frozenset(replace_tasks))
        session.finish()
    return summary


@contextlib.contextmanager
def _resumable(store: Path) -> Iterator[None]:
    """Say of a full disk, or a folder that must not be written to, that nothing is lost."""
    try:
        yield
    except GenebError:
        raise
    except OSError as error:
        raise WorkError(
            "the store could not be written",
            where=str(error.filename or store),
            found=error.strerror or str(error),
            fix="make room, or make the folder writable, and run the same command again: "
            "it resumes where it stopped",
        ) from error


def _fingerprint(extractor: Extractor, store_dtype: StoreDtype) -> Fingerprint:
    """Return the fingerprint of an extractor that has not embedded anything yet.

    Its ``dim`` is a placeholder until then.

    Raises
    ------
    InputError
        If the extractor describes itself in fields of another kind.
    """
    description = extractor.describe()
    try:
        return Fingerprint(
            extractor=extractor.name,
            numerics_version=extractor.numerics_version,
            parameters=dict(description.parameters),
            weights=description.weights,
            tokenizer=description.tokenizer,
            file=description.file,
            compute_dtype=description.compute_dtype,
            matmul_precision=description.matmul_precision,
            store_dtype=store_dtype,
            dim=1,
        )
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise InputError(
            f"extractor {extractor.name} describes itself in fields of another kind",
            where="describe()",
            expected="what geneb.extractors.base.Description says of each",
            found=plain("; ".join(faults), limit=1000),
        ) from error


def _root(
    engine: Engine, fingerprint: Fingerprint, canary: np.ndarray, summary: EmbedSummary
) -> Root:
    """Return what the root of a store says that this run creates."""
    data = load_spec().data
    return Root(
        format=FORMAT,
        version=VERSION,
        fingerprint_id=fingerprint.id,
        fingerprint=fingerprint,
        model=_model_ref(summary.model),
        canary=CanaryRef(sequences_sha256=canary_digest(), vectors_sha256=vectors_digest(canary)),
        token_budget=engine.token_budget,
        benchmark_data={"repository": data.repo, "revision": data.revision, "compared": False},
        created_by=summary.run,
        seal=None,
    )


def _model_ref(name: str) -> ModelRef:
    """Return what the registry and the benchmark know of a model of this name."""
    built_in, facts = models().get(name), load_model_meta().find(name)
    known = built_in or facts
    return ModelRef(
        id=name,
        display=known.display if known else name,
        params=facts.params if facts else None,
        licence=facts.licence if facts else None,
        source=facts.hub_id or facts.url if facts else None,
    )
