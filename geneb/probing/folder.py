"""The results folder of a probe, opened for writing or refused while nothing has been changed."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from geneb.base.canonical import pretty_json
from geneb.base.files import atomic_write, check_name
from geneb.base.text import name_some
from geneb.errors import GenebError, InputError, NotFoundError
from geneb.results import RUN_FILE, TASK_FOLDER, ResultsFolder, RunInfo, in_regime_order


def open_for_writing(
    out: Path, info: RunInfo, task_ids: Collection[str] = ()
) -> tuple[ResultsFolder, str | None]:
    """Open or create ``out/<model id>`` for the results of one run.

    Parameters
    ----------
    task_ids
        What the run will probe, in the regimes of ``info``.

    Returns
    -------
    folder : ResultsFolder
    note : str or None
        What changed since the folder's results were made, if that makes them stale.

    Raises
    ------
    InputError
        If nothing can be written there, or see `check_folder`.
    """
    path = out / check_name(info.model_id, "model")
    note = None
    with _usable(path):
        (path / TASK_FOLDER).mkdir(parents=True, exist_ok=True)
        with ResultsFolder(path, info).lock().held():
            before = check_folder(out, info, task_ids)
            if before is not None:
                if changes := info.changes(before):
                    note = f"{path}: its tasks are probed again; {'; '.join(changes)}"
                regimes = in_regime_order([*before.regimes, *info.regimes])
                info = info.model_copy(update={"regimes": regimes})
            atomic_write(path / RUN_FILE, pretty_json(info.model_dump(mode="json")))
    return ResultsFolder(path, info), note


def check_folder(out: Path, info: RunInfo, task_ids: Collection[str]) -> RunInfo | None:
    """Check that a run may write into ``out/<model id>``; nothing is changed.

    Returns
    -------
    RunInfo or None
        Of the results that lie there.

    Raises
    ------
    InputError
        If results of another store, protocol, backend or seeds lie there, or results under other
        versions or BLAS that this run would not make again: they would drop out of the summary.
        If nothing can be written there.
    """
    path = out / check_name(info.model_id, "model")
    with _usable(path):
        _check_writable(path / TASK_FOLDER)
    try:
        before = RunInfo.read(path / RUN_FILE)
    except NotFoundError:
        return None
    if differences := info.differences(before):
        raise InputError(
            "this folder holds results of another run",
            where=str(path),
            found="; ".join(differences),
            fix="give another --out, or remove the folder",
        )
    if lost := _left_stale(ResultsFolder(path, before), info, task_ids):
        changes = info.changes(before) or ["an earlier probe under other versions or BLAS"]
        raise InputError(
            "results made under other versions or BLAS lie here, and this run would not make "
            f"these again: {name_some(lost)}",
            where=str(path),
            expected="all results of a folder under the same versions, BLAS kernel and threads",
            found="; ".join(changes),
            fix="probe all tasks in all regimes, or name another --out",
        )
    return before


def _left_stale(folder: ResultsFolder, info: RunInfo, task_ids: Collection[str]) -> list[str]:
    """Return what has results under another key than this run's, and would get none by it."""
    lost = []
    for task_id in folder.task_ids():
        try:
            results = folder.read_task(task_id)
        except GenebError:  # damaged: there is nothing in it to lose
            continue
        if results.origin.run_key == info.key:
            continue
        if task_id not in task_ids:
            lost.append(task_id)
        else:
            missing = in_regime_order(set(results.by_regime()) - set(info.regimes))
            lost += [f"{task_id} ({regime})" for regime in missing]
    return lost


def _check_writable(folder: Path) -> None:
    """Raise what making or writing a folder would raise, as far as that can be told beforehand."""
    while not os.path.lexists(folder):
        folder = folder.parent
    for holds, code in (
        (folder.is_dir(), errno.ENOTDIR),
        (os.access(folder, os.W_OK | os.X_OK), errno.EACCES),
    ):
        if not holds:
            raise OSError(code, os.strerror(code), str(folder))


@contextlib.contextmanager
def _usable(path: Path) -> Iterator[None]:
    """Make what the system says against writing here a user's mistake."""
    try:
        yield
    except GenebError:
        raise
    except OSError as error:
        raise InputError(
            "results cannot be written here",
            where=str(path),
            found=": ".join(filter(None, (error.filename, error.strerror or str(error)))),
            fix="name another --out: a folder that can be written to, or a new one",
        ) from error
