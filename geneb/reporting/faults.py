"""Faults as lines of text, for an error that lists them."""

from __future__ import annotations

from collections.abc import Sequence

from geneb.errors import Fault

_SHOWN = 200


def listed(faults: Sequence[Fault]) -> str:
    """Return one line a fault, each on a new line and indented."""
    lines = [one_line(fault) for fault in faults[:_SHOWN]]
    if len(faults) > _SHOWN:
        lines.append(f"and {len(faults) - _SHOWN:,} more")
    return "".join(f"\n    {line}" for line in lines)


def one_line(fault: Fault) -> str:
    """Return a fault as one line."""
    details = [f"expected {fault.expected}"] if fault.expected else []
    details += [f"found {fault.found}"] if fault.found else []
    return f"{fault.where}: {fault.problem}" + (f" ({', '.join(details)})" if details else "")
