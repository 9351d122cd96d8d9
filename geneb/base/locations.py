"""What may be told to others of where something lies: stores and results are exchanged."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit


def shareable(location: str | Path) -> str:
    """Return what may be told to others of where something lies.

    Of a path that is its base name; of an address everything but user, password, query and
    fragment. A hub id such as ``organisation/model`` stays whole, unless a file is there.
    """
    text = str(location)
    if "://" in text:
        return _shareable_address(text)
    path = Path(location)
    is_hub_id = (
        isinstance(location, str) and len(path.parts) == 2 and path.parts[0].strip(".~/") != ""
    )
    if is_hub_id and not path.exists():
        return text
    return path.name or path.resolve().name


def _shareable_address(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:  # no host can be told from what stands before it
        return f"{text.partition('://')[0]}://"
    if parts.scheme == "file":
        return Path(parts.path).name
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="", fragment="").geturl()
