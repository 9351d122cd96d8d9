"""Which tasks are meant: patterns to task ids, and a folder to task files."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from geneb.benchmark.spec import Spec
from geneb.errors import InputError, NotFoundError
from geneb.tasks.rows import task_id

_NEAR_SHOWN = 5
_MISSING_SHOWN = 10


def select(patterns: Sequence[str], available_ids: Iterable[str], spec: Spec) -> list[str]:
    """Return the available tasks that any of the patterns means.

    Parameters
    ----------
    patterns
        Each a task id, a glob on ids (case counts), or a label or category of the spec (case does
        not count). No patterns mean all tasks.
    available_ids
        Ids to choose from, of the spec and others.

    Returns
    -------
    list of str
        Tasks of the spec in its order, then others by name; none twice.

    Raises
    ------
    InputError
        If a pattern means none of them; it names those that look alike.
    """
    available = _in_order(available_ids, spec)
    if not patterns:
        return available
    names = {task.id: (task.label, task.category) for task in spec.tasks}
    meant: set[str] = set()
    for pattern in patterns:
        matched = {task for task in available if _matches(pattern, task, names.get(task, ()))}
        if not matched:
            known = [*available, *(name for task in available for name in names.get(task, ()))]
            raise InputError(
                f"no task is meant by {pattern[:200]!r}",
                expected="a task id, a label, a category or a glob on ids",
                fix=suggest(pattern, known),
            )
        meant |= matched
    return [task for task in available if task in meant]


def find_task_files(
    data_dir: Path, patterns: Sequence[str], spec: Spec, *, available: bool = False
) -> list[Path]:
    """Return the CSVs of a folder that a run is about.

    Without patterns these are all tasks of the spec, with patterns the tasks that they mean (see
    `select`); each of them must be there. With ``available`` they are those of them that are
    there, and without patterns all CSVs of the folder.

    Parameters
    ----------
    data_dir
        Folder of ``<task id>.csv``. Hidden files, folders and files with other endings are
        ignored.

    Returns
    -------
    list of Path
        Tasks of the spec in its order, then others by name; at least one.

    Raises
    ------
    NotFoundError
        If there is no such folder, or if tasks are missing from it: all of them in one error.
    InputError
        If a pattern means no task, a chosen file's name cannot be a task's, or the names of two
        files differ only in case.
    """
    present = _task_files(data_dir)
    official = [task.id for task in spec.tasks]
    if patterns:
        chosen = select(patterns, {*present, *official}, spec)
    else:
        chosen = _in_order(present, spec) if available else official
    found = [task for task in chosen if task in present]
    missing = [task for task in chosen if task not in present]
    if missing and not available:
        raise _missing_error(data_dir, missing, len(chosen))
    if not found:
        raise NotFoundError("there are no such task CSVs in this folder", where=str(data_dir))
    files = [present[task] for task in found]
    for path in files:
        task_id(path)
    return files


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the known names that look like one that is not known."""
    near = _near(name[:200], known)
    if near:
        return "did you mean " + " or ".join(map(repr, near)) + "?"
    return "see `geneb task list` for the tasks of the benchmark"


def _in_order(task_ids: Iterable[str], spec: Spec) -> list[str]:
    place = {task.id: k for k, task in enumerate(spec.tasks)}
    return sorted(set(task_ids), key=lambda task: (place.get(task, len(place)), task))


def _matches(pattern: str, task: str, names: Collection[str]) -> bool:
    if fnmatchcase(task, pattern):
        return True
    return pattern.casefold() in (name.casefold() for name in names)


def _near(name: str, known: Iterable[str]) -> list[str]:
    """Return known names that hold the given one, then such as are spelt like it."""
    folded = {candidate.casefold(): candidate for candidate in known}
    wanted = name.casefold().strip("*? ")
    holding = [key for key in folded if wanted and wanted in key]
    alike = difflib.get_close_matches(wanted, folded, n=_NEAR_SHOWN, cutoff=0.6)
    return [folded[key] for key in dict.fromkeys([*holding, *alike])][:_NEAR_SHOWN]


def _task_files(data_dir: Path) -> dict[str, Path]:
    """Return the CSVs of a folder by their names without the ending."""
    if not data_dir.is_dir():
        raise NotFoundError("there is no such folder of task CSVs", where=str(data_dir))
    files = {
        path.stem: path
        for path in sorted(data_dir.iterdir())
        if path.suffix == ".csv" and not path.name.startswith(".") and path.is_file()
    }
    spelling: dict[str, str] = {}
    for stem in files:
        other = spelling.setdefault(stem.casefold(), stem)
        if other != stem:
            raise InputError(
                "the names of two task files differ only in case",
                where=str(data_dir),
                found=f"{other}.csv and {stem}.csv",
                fix="rename one: not every file system can hold both",
            )
    return files


def _missing_error(data_dir: Path, missing: Sequence[str], wanted: int) -> NotFoundError:
    more = len(missing) - _MISSING_SHOWN
    names = ", ".join(f"{task}.csv" for task in missing[:_MISSING_SHOWN])
    return NotFoundError(
        f"{len(missing)} of the {wanted} task CSVs wanted are not in this folder",
        where=str(data_dir),
        found=f"no {names}" + (f" and {more} more" if more > 0 else ""),
        fix="add them, name tasks with --tasks, or pass --available to take what is there",
    )
