"""Faults for people to read: what is alike is told once, and a list of them ends somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from geneb.base.text import name_some
from geneb.errors import Fault

MISSING_TASK = "this task is missing"
_TASK = re.compile(r'(.*\$[.]results[.]\w+)(?:[.]|\[")(.+?)(?:"\])?')
_ALIKE = 3
_SHOWN = 200


def in_brief(faults: Sequence[Fault]) -> list[Fault]:
    """Return one fault for all that say the same, if those are more than three.

    Tasks that a regime lacks are named together, by regime; of others the first is shown as an
    example, with the places of the next ones. The order is that of each kind's first.
    """
    kinds: dict[tuple[str | None, ...], list[Fault]] = {}
    for fault in faults:
        regime = _regime_and_task(fault)[0] if fault.problem == MISSING_TASK else None
        kinds.setdefault((fault.problem, fault.fix, regime), []).append(fault)
    return [fault for alike in kinds.values() for fault in _join(alike)]


def _regime_and_task(fault: Fault) -> tuple[str, str]:
    found = _TASK.fullmatch(fault.where)
    return (found[1], found[2]) if found else (fault.where, fault.where)


def _join(alike: Sequence[Fault]) -> Iterator[Fault]:
    first = alike[0]
    if len(alike) <= _ALIKE:
        yield from alike
    elif first.problem == MISSING_TASK:
        regime, tasks = _regime_and_task(first)[0], [_regime_and_task(one)[1] for one in alike]
        named = name_some(tasks, _ALIKE)
        yield Fault(regime, f"{len(tasks):,} tasks are missing: {named}", fix=first.fix)
    else:
        others = name_some([one.where for one in alike[1:]], _ALIKE - 1)
        yield replace(first, problem=f"{first.problem}; the same at {others}")


def listed(faults: Sequence[Fault]) -> str:
    """Return faults in brief, each as one line on a new line, indented."""
    brief = in_brief(faults)
    lines = [one_line(fault) for fault in brief[:_SHOWN]]
    if len(brief) > _SHOWN:
        lines.append(f"and {len(brief) - _SHOWN:,} more")
    return "".join(f"\n    {line}" for line in lines)


def one_line(fault: Fault) -> str:
    """Return a fault as one line."""
    details = [f"expected {fault.expected}"] if fault.expected else []
    details += [f"found {fault.found}"] if fault.found else []
    return f"{fault.where}: {fault.problem}" + (f" ({', '.join(details)})" if details else "")
