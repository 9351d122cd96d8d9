"""``embed``: from a folder of task CSVs to a store, top to bottom."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from geneb.base.locations import shareable
from geneb.base.progress import Progress, Silent
from geneb.benchmark.spec import load_spec
from geneb.embedding.agreement import check_replacements
from geneb.embedding.batches import DEFAULT_TOKEN_BUDGET, check_token_budget, choose_token_budget
from geneb.embedding.descriptions import Beginning, begin_stores
from geneb.embedding.engine import Engine
from geneb.embedding.layers import ALL_LAYERS, check_place, store_paths
from geneb.embedding.naming import load_model, recipe_name
from geneb.embedding.record import EmbedSummary, RunClock, new_run_id
from geneb.embedding.session import Session, TaskInput
from geneb.embedding.targets import Target
from geneb.errors import GenebError, WorkError
from geneb.extractors.base import LAST
from geneb.extractors.devices import AUTO, CPU, free_memory
from geneb.extractors.options import ModelOptions
from geneb.extractors.registry import Loaded, named
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
    model_id: str | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
    **told: Any,
) -> EmbedSummary:
    """Write a model's frozen embeddings of tasks into a store, resuming where it stopped.

    Parameters
    ----------
    model
        A model id, or ``path/to/file.py:ClassName`` for an extractor of one's own.
    data
        Folder of task CSVs.
    store
        The store; created where it does not exist. With ``layer="all"`` a folder that gets a
        store for each layer, ``layer_00.zarr`` and so on, all of them filled in one pass.
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
        By default as `geneb.embedding.batches.choose_token_budget` says, from the memory that is
        free on an accelerator; 16,384 for models without weights on a CPU.
    store_dtype
        What vectors are stored as.
    model_id
        The name under which the store of an extractor of one's own is known; by default the
        class's name. What is run otherwise than by default gets a name of its own, see
        `geneb.embedding.naming`.
    progress, stop
        Told how far the run is; asked before each block whether it shall stop.
    told
        How the model is run: fields of `geneb.extractors.options.ModelOptions`, with ``auto`` as
        the default of ``device``, and ``all`` as a further ``layer``.

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
    if batch_tokens is not None:
        check_token_budget(batch_tokens)
    folder, told = Path(store), {"device": AUTO, **told}
    every = told.get("layer") == ALL_LAYERS
    check_place(folder, every=every)
    wanted = ordered_splits({*DEFAULT_SPLITS, *splits})
    files = find_task_files(Path(data), list(tasks), load_spec(), available=available)
    loaded = load_model(model, told, every_layer=True)
    paths = store_paths(loaded.extractor, folder, every=every)
    names = {layer: recipe_name(loaded, model_id, told, layer) for layer in paths}
    inputs = [TaskInput(path, scan_task(path, wanted)) for path in files]
    check_replacements(replace_tasks, [task.rows for task in inputs])
    engine = Engine(loaded.extractor, batch_tokens or _token_budget(loaded))
    run = new_run_id()
    known = named(loaded, model_id)
    beginnings = begin_stores(engine, names, model=known, run=run, store_dtype=store_dtype)
    summary = _summary(
        loaded, beginnings, paths, store=str(folder), model=names.get(LAST, known), run=run
    )
    options = {
        "model": shareable(Path(model)),
        "data": shareable(Path(data)),
        "store": shareable(folder),
        "tasks": list(tasks),
        "splits": wanted,
        "available": available,
        "replace_tasks": list(replace_tasks),
        "batch_tokens": batch_tokens,
        "store_dtype": store_dtype,
        "model_id": model_id,
        **_shareable(told),
    }
    with _resumable(folder), contextlib.ExitStack() as held:
        targets = [
            Target(layer, held.enter_context(Writer(path)), beginnings[layer])
            for layer, path in paths.items()
        ]
        session = Session(
            targets,
            engine,
            summary,
            clock=clock,
            options=options,
            progress=progress or Silent(),
            stop=stop,
        )
        session.open(batch_tokens)
        session.embed_tasks(inputs, frozenset(replace_tasks))
        session.finish()
    return summary


def _token_budget(loaded: Loaded) -> int:
    """Return the token budget of a store that is created by a model that is loaded."""
    if loaded.device != CPU:
        return choose_token_budget(free_memory(loaded.device))
    return choose_token_budget(None) if loaded.extractor.needs_weights else DEFAULT_TOKEN_BUDGET


def _summary(
    loaded: Loaded, beginnings: Mapping[str, Beginning], paths: Mapping[str, Path], **said: str
) -> EmbedSummary:
    """Return the summary of a run that has done nothing yet."""
    fingerprints = {layer: beginning.root.fingerprint for layer, beginning in beginnings.items()}
    layers: dict[str, str] = {}
    own = fingerprints.get(LAST)
    if own is None:
        layers = {path.name: fingerprints[layer].id for layer, path in paths.items()}
        own = fingerprints[str(loaded.extractor.describe().parameters["layer"])]
    return EmbedSummary(
        **said, device=loaded.device, fingerprint=own.id, dim=own.dim, layers=layers
    )


def _shareable(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the model is run, all options named, for the run's record."""
    options = {**asdict(ModelOptions()), **told}
    return {**options, "weights": options["weights"] and shareable(options["weights"])}


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
