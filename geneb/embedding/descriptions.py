"""What a store says of what made it: fingerprint, canary and root, for each layer of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from pydantic import ValidationError

from geneb.base.text import plain
from geneb.benchmark.spec import load_model_meta, load_spec
from geneb.embedding.canary import canary_digest, make_canary
from geneb.embedding.engine import Engine
from geneb.errors import InputError, WorkError
from geneb.extractors.base import LAST, Extractor
from geneb.extractors.registry import models
from geneb.stores.arrays import vectors_digest
from geneb.stores.model import FORMAT, VERSION, CanaryRef, Fingerprint, ModelRef, Root, StoreDtype


@dataclass(frozen=True)
class Beginning:
    """What a store of one layer is created with, or compared with.

    Attributes
    ----------
    root
        What it says of itself.
    canary
        The canary's vectors, as stored, shape (16, dim).
    """

    root: Root
    canary: np.ndarray


def begin_stores(
    engine: Engine, names: Mapping[str, str], *, model: str, run: str, store_dtype: StoreDtype
) -> dict[str, Beginning]:
    """Return what each layer's store begins with; the canary is embedded once for all.

    Parameters
    ----------
    names
        For each layer, as the extractor calls it, the name under which its results are known.
    model
        The model that they are of.
    run
        The run's id.

    Raises
    ------
    InputError
        If the extractor describes itself in fields of another kind.
    WorkError
        If the canary cannot be embedded, or the layers are of several widths.
    """
    described = {layer: describe_extractor(engine.extractor, store_dtype, layer) for layer in names}
    canaries = make_canary(engine, store_dtype, list(names))
    # A run's record counts what its rows met.
    engine.out_of_memory_splits = engine.float32_retries = 0
    widths = {canary.shape[1] for canary in canaries.values()}
    if len(widths) > 1:
        raise WorkError(
            "the layers of this model have vectors of several widths",
            found=", ".join(map(str, sorted(widths))),
            fix="embed each with --layer N into a store of its own",
        )
    return {
        layer: Beginning(
            _root(
                engine.token_budget,
                described[layer].model_copy(update={"dim": canary.shape[1]}),
                canary,
                _model_ref(model, names[layer]),
                run,
            ),
            canary,
        )
        for layer, canary in canaries.items()
    }


def describe_extractor(
    extractor: Extractor, store_dtype: StoreDtype, layer: str = LAST, dim: int = 1
) -> Fingerprint:
    """Return the fingerprint of what an extractor makes.

    Parameters
    ----------
    layer
        A layer's number in the place of the extractor's own.
    dim
        Numbers a vector; a placeholder where nothing has been embedded yet.

    Raises
    ------
    InputError
        If the extractor describes itself in fields of another kind.
    """
    description = extractor.describe()
    parameters = dict(description.parameters)
    if layer != LAST:
        parameters["layer"] = int(layer)
    if extractor.batching == "file-order":
        parameters["rows a batch"] = extractor.batch_size
    try:
        return Fingerprint(
            extractor=extractor.name,
            numerics_version=extractor.numerics_version,
            parameters=parameters,
            weights=description.weights,
            tokenizer=description.tokenizer,
            file=description.file,
            compute_dtype=description.compute_dtype,
            matmul_precision=description.matmul_precision,
            store_dtype=store_dtype,
            dim=dim,
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
    token_budget: int, fingerprint: Fingerprint, canary: np.ndarray, model: ModelRef, run: str
) -> Root:
    data = load_spec().data
    return Root(
        format=FORMAT,
        version=VERSION,
        fingerprint_id=fingerprint.id,
        fingerprint=fingerprint,
        model=model,
        canary=CanaryRef(sequences_sha256=canary_digest(), vectors_sha256=vectors_digest(canary)),
        token_budget=token_budget,
        benchmark_data={"repository": data.repo, "revision": data.revision, "compared": False},
        created_by=run,
        seal=None,
    )


def _model_ref(model: str, name: str) -> ModelRef:
    """Return what the registry and the benchmark know of a model, under the name of its recipe."""
    built_in, facts = models().get(model), load_model_meta().find(model)
    known = built_in or facts
    return ModelRef(
        id=name,
        display=known.display + name.removeprefix(model) if known else name,
        params=facts.params if facts else None,
        licence=facts.licence if facts else None,
        source=facts.hub_id or facts.url if facts else None,
    )
