"""What a run did: a summary for whoever called it, a record for the store."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from geneb.base import env
from geneb.stores.model import RunRecord


@dataclass
class EmbedSummary:
    """What an embedding run did.

    Attributes
    ----------
    store, fingerprint
        The store, or the folder of the layers' stores; the fingerprint is then that of the layer
        that is the model's own.
    device
        Where the model ran.
    layers
        Where each layer has a store: the stores' names and fingerprints.
    embedded, complete
        Ids of the tasks embedded now, and of those that were complete before.
    blocks, rows_computed, rows_copied
        Blocks written now, and their rows; those of one layer.
    tokens
        Embedded tokens, padding not counted.
    out_of_memory_splits
        How often a batch had to be halved.
    float32_retries
        Rows (or windows of rows) that were not finite, and were run once more in float32.
    seconds
        Of the whole run.
    stopped
        Whether it was stopped; the store can be resumed.
    unsealed
        Why the store was not sealed; None once it is.
    """

    store: str
    model: str
    fingerprint: str
    run: str
    dim: int
    device: str
    layers: dict[str, str] = field(default_factory=dict)
    embedded: list[str] = field(default_factory=list)
    complete: list[str] = field(default_factory=list)
    blocks: int = 0
    rows_computed: int = 0
    rows_copied: int = 0
    tokens: int = 0
    out_of_memory_splits: int = 0
    float32_retries: int = 0
    seconds: float = 0.0
    stopped: bool = False
    unsealed: str | None = None
    warnings: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the summary as a JSON value."""
        return asdict(self)


class RunClock:
    """When a run began: for people, and for counting seconds."""

    def __init__(self) -> None:
        self.started = _now()
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since then, to the millisecond."""
        return round(time.monotonic() - self._began, 3)


def new_run_id() -> str:
    """Return a random id: it says nothing about the machine or the user."""
    return secrets.token_hex(8)


def run_record(
    summary: EmbedSummary, clock: RunClock, options: Mapping[str, Any], outcome: str | None
) -> RunRecord:
    """Return the record that a store keeps of a run.

    Parameters
    ----------
    options
        As parsed; of places only what `geneb.base.locations.shareable` tells.
    outcome
        ``finished``, ``stopped`` or ``failed``; None while it goes on or was killed.
    """
    return RunRecord(
        run=summary.run,
        started=clock.started,
        ended=_now() if outcome else None,
        outcome=outcome,
        options=dict(options),
        versions=installed_versions(),
        platform={
            "processor": env.processor(),
            "cores": env.cores(),
            "blas": env.blas(),
            "device": summary.device,
        },
        blocks=summary.blocks,
        rows_computed=summary.rows_computed,
        rows_copied=summary.rows_copied,
        tokens=summary.tokens,
        seconds=clock.seconds if outcome else None,
        out_of_memory_splits=summary.out_of_memory_splits,
        float32_retries=summary.float32_retries,
    )


@cache
def installed_versions() -> dict[str, str]:
    """Return what `env.versions` does, looked up once: it takes a tenth of a second."""
    return env.versions()


def _now() -> str:
    # Fine enough to tell the order of runs that follow one another in a script.
    return datetime.now(UTC).isoformat(timespec="milliseconds")
