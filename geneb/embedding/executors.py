"""Running the block jobs of a task, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from geneb.embedding.blocks import TaskWorker
from geneb.embedding.plan import BlockJob


def run_serial(
    jobs: Sequence[BlockJob],
    worker: TaskWorker,
    *,
    stop: Callable[[], bool],
    done: Callable[[BlockJob], None],
) -> bool:
    """Run jobs in order: the next block is prepared, and the last written, while one computes.

    At most two blocks are in memory at a time.

    Parameters
    ----------
    stop
        Asked before each block.
    done
        Told of each block that has been written.

    Returns
    -------
    bool
        Whether all jobs were done; false where ``stop`` ended it, after whole blocks.
    """
    with ThreadPoolExecutor(1, "prepare") as ahead, ThreadPoolExecutor(1, "write") as behind:
        prepared = ahead.submit(worker.prepare, jobs[0]) if jobs else None
        written: Future[None] | None = None
        finished = True
        for number, job in enumerate(jobs):
            assert prepared is not None
            if stop():
                finished = False
                break
            ready = prepared.result()
            prepared = (
                ahead.submit(worker.prepare, jobs[number + 1]) if number + 1 < len(jobs) else None
            )
            rows = worker.compute(ready)
            if written is not None:
                written.result()
                done(jobs[number - 1])
            written = behind.submit(worker.write, job, rows)
            last = job
        if written is not None:
            written.result()
            done(last)
    return finished
