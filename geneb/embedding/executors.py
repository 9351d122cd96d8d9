"""Running the block jobs of a task, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import zip_longest

from geneb.embedding.blocks import TaskWorker
from geneb.embedding.plan import BlockJob


def run_serial(
    jobs: Sequence[BlockJob],
    worker: TaskWorker,
    *,
    stop: Callable[[], bool],
    computed: Callable[[], None],
    done: Callable[[BlockJob], None],
) -> bool:
    """Run jobs in order: the next block is prepared, and the last written, while one computes.

    In memory at a time are the rows of the block that is computed and those of the block that is
    written, Zarr's encoded copy of the latter, the one block that rows were last copied from, and
    the items of two blocks: the one that is computed and the one that is prepared. Rows are those
    of every layer that is written.

    Parameters
    ----------
    stop
        Asked before each block.
    computed
        Called when a block has been computed, before it is written.
    done
        Told of each block that has been written.

    Returns
    -------
    bool
        Whether all jobs were done; false where ``stop`` ended it, after whole blocks.
    """
    with ThreadPoolExecutor(1, "prepare") as ahead, ThreadPoolExecutor(1, "write") as behind:
        prepared = [ahead.submit(worker.prepare, job) for job in jobs[:1]]
        written: tuple[BlockJob, Future[None]] | None = None
        finished = True
        for job, following in zip_longest(jobs, jobs[1:]):
            if stop():
                finished = False
                break
            ready = prepared.pop().result()
            if following is not None:
                prepared.append(ahead.submit(worker.prepare, following))
            rows = worker.compute(ready)
            _settle(written, done)
            computed()
            written = (job, behind.submit(worker.write, job, rows))
        _settle(written, done)
    return finished


def _settle(
    written: tuple[BlockJob, Future[None]] | None, done: Callable[[BlockJob], None]
) -> None:
    """Wait until a block is written, if there is one, and tell of it."""
    if written is not None:
        job, future = written
        future.result()
        done(job)
