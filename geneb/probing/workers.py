"""Probing tasks in several processes: each loads, fits and sends home; the caller alone writes.

Workers take no signals: Ctrl-C and SIGTERM, which often reach all processes of a group, are the
caller's business, and what workers do leaves no trace that a kill could spoil. They end with the
caller, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing import connection, get_context, parent_process
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, Self

from threadpoolctl import threadpool_limits

from geneb.base import env
from geneb.errors import GenebError, InputError, WorkError
from geneb.probing.backends import Backend
from geneb.probing.execute import load_in_turn, probe_loaded
from geneb.probing.job import StoreJob, how_again
from geneb.probing.protocol import Protocol
from geneb.probing.schedule import Work, longest_first
from geneb.stores import open_store

_SIGNALS = {signal.SIGINT, signal.SIGTERM}
_PATIENCE_SECONDS = 10.0


def threads_per_worker(jobs: int) -> int:
    """Return how many BLAS threads each worker gets: no more in all than there are cores.

    Where a variable of the environment allows this process fewer, workers get no more than that.
    """
    allowed = [row["num_threads"] for row in env.blas() if row.get("user_api") == "blas"]
    return max(1, min([env.cores() // jobs, *allowed]))


class Workers:
    """Processes that probe tasks. Leaving a with-block ends them, at once.

    Parameters
    ----------
    paths
        Of the stores, in the order of the works' places.
    threads
        BLAS threads of each worker.

    Attributes
    ----------
    libraries
        What `geneb.base.env.blas` says in a worker.

    Raises
    ------
    InputError
        If backend or probe cannot be sent to another process, or no worker can be started.
    """

    def __init__(
        self, paths: Sequence[Path], backend: Backend, protocol: Protocol, threads: int
    ) -> None:
        try:
            ForkingPickler.dumps((backend, protocol))
        except Exception as error:  # whatever a stranger's probe raises when it is pickled
            raise InputError(
                "this probe cannot be sent to worker processes",
                found=f"{type(error).__name__}: {error}",
                fix="define it at the top of a module of its own, or probe with one job",
            ) from error
        self._setup = (list(paths), backend, threads)
        self._workers: list[_Worker] = []
        self.libraries: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        try:
            _, self.libraries = self._start().listen()
        except OSError as error:
            self.__exit__()
            raise InputError(
                "worker processes cannot be started",
                found="the first one ended before it was ready",
                fix="probe with one job; a script of your own must call this below "
                '`if __name__ == "__main__":`, since workers import it',
            ) from error
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def run(
        self, works: Sequence[Work], jobs: Sequence[StoreJob], count: int, *, ahead: bool
    ) -> None:
        """Probe tasks, the longest first; each store's job is told of what came of its own.

        Parameters
        ----------
        jobs
            One a store; a work's place is that of its job.
        count
            Most workers at a time.
        ahead
            Whether a worker is given its next task once the first fit of the one at hand is made:
            by then it will not be long. Given earlier, a task could wait for a worker that is
            busy while others have nothing to do.
        """
        waiting = deque(longest_first(works))
        while True:
            self._hand_out(waiting, count, ahead=ahead)
            if not any(worker.works for worker in self._workers):
                return
            ready = connection.wait([worker.connection for worker in self._workers])
            for worker in [one for one in self._workers if one.connection in ready]:
                try:
                    message, content = worker.listen()
                except OSError:
                    self._bury(worker, waiting, jobs)
                else:
                    worker.pass_on(message, content, jobs)

    def _start(self) -> _Worker:
        worker = _Worker()
        self._workers.append(worker)
        worker.send(self._setup)
        return worker

    def _hand_out(self, waiting: deque[Work], count: int, *, ahead: bool) -> None:
        for worker in self._workers:
            if waiting and (not worker.works or (ahead and worker.wants_next)):
                worker.give(waiting.popleft())
        while waiting and len(self._workers) < count:
            self._start().give(waiting.popleft())

    def _bury(self, worker: _Worker, waiting: deque[Work], jobs: Sequence[StoreJob]) -> None:
        """Fail the task that a dead worker was at; what it was given besides waits again."""
        self._workers.remove(worker)
        code = worker.end(patience=_PATIENCE_SECONDS)
        if worker.works:
            work = worker.works.popleft()
            jobs[work.place].fail(work.task_id, _death(code, jobs[work.place].store.path, work))
        waiting.extendleft(reversed(worker.works))


class _Worker:
    """One process, as its caller sees it.

    Attributes
    ----------
    works
        What it was given: the task at hand, and the next.
    """

    def __init__(self) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.works: deque[Work] = deque()
        self._begun = False
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        # A new process holds back the signals that its parent holds back.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()

    @property
    def wants_next(self) -> bool:
        """Whether there is a fit of the task at hand, and no other task to go on with."""
        return self._begun and len(self.works) == 1

    def give(self, work: Work) -> None:
        self.works.append(work)
        self.send(work)

    def send(self, content: Any) -> None:
        with contextlib.suppress(OSError):  # that it has died is met when it is listened to
            self.connection.send(content)

    def listen(self) -> tuple[str, Any]:
        """Wait for a message: what it is about, and its content.

        Raises
        ------
        OSError
            If the process has died.
        """
        try:
            return self.connection.recv()
        except EOFError as error:
            raise ConnectionResetError from error

    def pass_on(self, message: str, content: Any, jobs: Sequence[StoreJob]) -> None:
        """Tell the job of the task at hand what came of it."""
        if message == "ready":
            return
        work = self.works[0]
        job = jobs[work.place]
        if message == "fitted":
            self._begun = True
            job.fitted(work.task_id, content)
            return
        self._begun = False
        self.works.popleft()
        if message == "done":
            job.record(work.task_id, content)
        else:
            job.fail(work.task_id, content)

    def end(self, patience: float = 0.0) -> int | None:
        """End the process, unless it ends by itself within seconds; return its exit code.

        That of a process that was killed is minus the signal's number.
        """
        self._process.join(patience)
        self._process.kill()
        self._process.join()
        self.connection.close()
        return self._process.exitcode


def _death(code: int | None, path: Path, work: Work) -> GenebError:
    killed = code is not None and code < 0
    return WorkError(
        "the process that probed this task was killed"
        if killed
        else "the process that probed this task ended",
        where=f"{path}, task {work.task_id}",
        found=f"signal {-code}" if killed else f"exit code {code}",
        fix="if memory ran out, free some or take fewer --jobs; "
        f"then {how_again(path, work.task_id)}",
    )


def _serve(caller: connection.Connection) -> None:
    """Probe whatever arrives, until the caller ends this process."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    paths, backend, threads = caller.recv()
    threadpool_limits(threads)
    stores = [open_store(path) for path in paths]
    caller.send(("ready", env.blas()))
    for work, arrays in load_in_turn(_received(caller), stores):
        try:
            outcomes = probe_loaded(
                work,
                arrays,
                stores[work.place].path,
                backend,
                lambda _, regime: caller.send(("fitted", regime)),
            )
        except GenebError as error:
            caller.send(("failed", error))
        else:
            caller.send(("done", outcomes))
        del arrays  # before the task after the next is loaded


def _received(caller: connection.Connection) -> Iterator[Work]:
    with contextlib.suppress(EOFError):
        while True:
            yield caller.recv()


def _end_with_parent() -> None:
    """End this process as soon as its parent is gone, in the middle of a fit too."""
    parent = parent_process()
    assert parent is not None  # `multiprocessing` has started this process
    connection.wait([parent.sentinel])
    os._exit(1)
