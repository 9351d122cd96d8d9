"""Whether a model still gives the vectors that it should: loaded twice, alone and in company.

A library can load weights so that every number is finite and all are wrong, or leave a layer at
random. Neither is seen in one run; both are seen when the canary is embedded by two fresh loads,
and compared with what is known of the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from geneb.base.canonical import digest
from geneb.embedding.batches import DEFAULT_TOKEN_BUDGET
from geneb.embedding.canary import (
    canary_digest,
    canary_sequences,
    relative_difference,
    tolerance,
)
from geneb.embedding.descriptions import describe_extractor
from geneb.embedding.engine import Engine, NonFiniteError, as_stored
from geneb.embedding.naming import load_model
from geneb.errors import WorkError
from geneb.extractors.base import LAST
from geneb.extractors.registry import models
from geneb.stores.model import Fingerprint, fingerprint_difference
from geneb.stores.reader import Store, open_store

# Vectors are rounded to a thousandth of their size for the digest that people compare by eye.
_DECIMALS = 3


@dataclass(frozen=True)
class Finding:
    """One thing that must hold of a model.

    Attributes
    ----------
    what
        The thing, as a statement.
    holds
        Whether it does.
    found
        What was measured.
    """

    what: str
    holds: bool
    found: str


@dataclass
class Checkup:
    """What was found of a model.

    Attributes
    ----------
    dim
        Numbers a vector; None where the canary could not be embedded.
    tokens_per_second
        Of the canary in batches: sixteen short sequences, so a bound from below.
    canary_sha256
        Of the vectors, each divided by its root mean square, to three decimals. Two machines may
        differ in it by rounding; what is compared is `tolerance`.
    tolerance
        The largest difference allowed, relative to a vector's root mean square.
    parameters
        How the model was run, as it enters a fingerprint.
    """

    model: str
    device: str
    compute_dtype: str
    tolerance: float
    parameters: dict[str, Any]
    weights: str | None
    tokenizer: str | None
    dim: int | None = None
    tokens_per_second: float | None = None
    canary_sha256: str | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether everything holds."""
        return all(finding.holds for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {"sound": self.sound, **asdict(self)}


def check_model(model: str, *, store: Path | str | None = None, **told: Any) -> Checkup:
    """Load a model twice, embed the canary, and compare.

    Parameters
    ----------
    model
        A model id, or ``path/to/file.py:ClassName``.
    store
        A store whose fingerprint and canary the model must have.
    told
        How the model is run: fields of `geneb.extractors.options.ModelOptions`.

    Raises
    ------
    GenebError
        If there is no such model or store, or the model cannot be loaded.
    """
    opened = None if store is None else open_store(store)
    loaded = load_model(model, told)
    described = describe_extractor(loaded.extractor, "float32")
    checkup = Checkup(
        model=loaded.model_id,
        device=loaded.device,
        compute_dtype=described.compute_dtype,
        tolerance=tolerance(described.compute_dtype, "float32"),
        parameters=described.parameters,
        weights=described.weights,
        tokenizer=described.tokenizer,
    )
    engine = Engine(loaded.extractor, DEFAULT_TOKEN_BUDGET)
    vectors = _embed(checkup, engine)
    if vectors is None:
        return checkup
    checkup.dim = vectors.shape[1]
    checkup.canary_sha256 = _rounded_digest(vectors)
    del loaded, engine  # two large models need not fit side by side
    engine = Engine(load_model(model, told).extractor, DEFAULT_TOKEN_BUDGET)
    again = _canary(engine)
    checkup.findings += _compare_loads(checkup, vectors, again)
    checkup.findings += _compare_company(checkup, again, engine)
    checkup.findings += _compare_known(checkup, vectors, default=_is_default(told))
    if opened is not None:
        checkup.findings += _compare_store(checkup, vectors, described, opened)
    return checkup


def _is_default(told: dict[str, Any]) -> bool:
    """Return whether a model is run as the registry means it, on whatever weights."""
    recipe = ("dtype", "layer", "pooling", "preset", "long_input")
    return not any(told.get(name) for name in recipe)


def _embed(checkup: Checkup, engine: Engine) -> np.ndarray | None:
    """Embed the canary as stores do; None, and a finding, where the numbers are not finite."""
    what = "the canary's vectors are finite"
    try:
        vectors = _canary(engine)
    except NonFiniteError as error:
        rows = ", ".join(map(str, error.rows.tolist()))
        checkup.findings.append(Finding(what, holds=False, found=f"NaN or infinity in {rows}"))
        return None
    again = engine.float32_retries
    more = f", {again} sequences run again in float32" if again else ""
    checkup.findings.append(Finding(what, holds=True, found=f"{vectors.size:,} numbers{more}"))
    return vectors


def _canary(engine: Engine) -> np.ndarray:
    items = engine.prepare(canary_sequences())
    in_file_order = engine.extractor.batching == "file-order"
    run: Callable[..., dict[str, np.ndarray]] = (
        engine.embed_together if in_file_order else engine.embed_alone
    )
    return run(items)[LAST].copy()


def _compare_loads(checkup: Checkup, vectors: np.ndarray, again: np.ndarray) -> Iterator[Finding]:
    worst = _worst(again, vectors)
    found = "the same bits" if np.array_equal(again, vectors) else f"a difference of {worst:.3g}"
    yield Finding("a fresh load gives the same vectors", worst <= checkup.tolerance, found)
    distinct = len(np.unique(vectors, axis=0))
    yield Finding(
        "different sequences have different vectors", distinct > 1, f"{distinct} of {len(vectors)}"
    )


def _compare_company(checkup: Checkup, alone: np.ndarray, engine: Engine) -> Iterator[Finding]:
    """Embed the canary in batches, once for the time that it takes, once with most padding."""
    items = engine.prepare(canary_sequences())
    began = time.perf_counter()
    engine.embed(items)
    checkup.tokens_per_second = engine.tokens / max(time.perf_counter() - began, 1e-9)
    if engine.extractor.batching == "file-order":
        return
    worst = _worst(engine.embed_together(items)[LAST], alone)
    yield Finding(
        "a vector does not depend on what else is in the batch",
        worst <= checkup.tolerance,
        f"a difference of {worst:.3g}",
    )


def _compare_known(checkup: Checkup, vectors: np.ndarray, *, default: bool) -> Iterator[Finding]:
    """Compare with what the registry says, where the model is run as the registry means."""
    known = models().get(checkup.model)
    if known is None or not default:
        return
    if known.dim is not None:
        yield Finding(
            f"vectors have the {known.dim:,} numbers that are stated",
            known.dim == vectors.shape[1],
            f"{vectors.shape[1]:,}",
        )
    if known.canary is not None and known.canary.weights == checkup.weights:
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
        stated = np.array(known.canary.lengths)
        worst = float(np.max(np.abs(lengths - stated) / np.maximum(stated, 1e-12)))
        yield Finding(
            "the canary's vectors are as long as recorded for these weights",
            worst <= checkup.tolerance,
            f"a relative difference of {worst:.3g}",
        )


def _compare_store(
    checkup: Checkup, vectors: np.ndarray, described: Fingerprint, store: Store
) -> Iterator[Finding]:
    stated = store.fingerprint
    own = described.model_copy(update={"dim": vectors.shape[1], "store_dtype": stated.store_dtype})
    fields = [
        f"{name}: {theirs!r} in the store, {ours!r} here"
        for name, theirs, ours in fingerprint_difference(stated, own)
    ]
    yield Finding("the store has this model's fingerprint", not fields, "; ".join(fields) or own.id)
    what = "the canary is the store's"
    if store.root.canary.sequences_sha256 != canary_digest():
        yield Finding(what, holds=False, found="it is of other sequences than this version's")
        return
    if stated.dim != vectors.shape[1]:
        yield Finding(what, holds=False, found=f"{stated.dim:,} numbers in the store")
        return
    try:
        made = as_stored(vectors, stated.store_dtype)
    except WorkError as error:
        yield Finding(what, holds=False, found=error.problem)
        return
    worst = _worst(made, store.canary())
    allowed = tolerance(checkup.compute_dtype, stated.store_dtype)
    yield Finding(what, worst <= allowed, f"a difference of {worst:.3g}, {allowed:g} allowed")


def _worst(made: np.ndarray, expected: np.ndarray) -> float:
    return float(relative_difference(made, expected).max())


def _rounded_digest(vectors: np.ndarray) -> str:
    values = vectors.astype(np.float64)
    scale = np.sqrt(np.mean(values**2, axis=1, keepdims=True))
    unit = np.divide(values, scale, out=np.zeros_like(values), where=scale > 0)
    # Adding 0 makes one zero of the two.
    return digest((np.round(unit, _DECIMALS) + 0.0).tolist())
