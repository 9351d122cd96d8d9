"""The consolidated metadata of a sealed store: one document with the zarr.json of every node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from geneb.stores import layout
from geneb.stores.reader import open_store


def consolidated_metadata(path: Path) -> dict[str, Any]:
    """Return the root's ``consolidated_metadata``: the zarr.json of every node below it.

    Folders of others that lie in the root (a file server's, somebody's notes) are no nodes.
    """
    files = open_store(path).files
    found: dict[str, Any] = {}
    level = list(layout.FRAME)
    while level:
        below = []
        for node in level:
            found[node] = files.document(node)
            if _is_group(found[node]):
                below += [f"{node}/{name}" for name in files.names(node)]
        level = below
    return _inline({node: _consolidated(document) for node, document in found.items()})


def _inline(metadata: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "inline", "must_understand": False, "metadata": metadata}


def _is_group(document: Any) -> bool:
    return isinstance(document, dict) and document.get("node_type") == "group"


def _consolidated(document: Any) -> Any:
    # Groups within carry an empty one, so that Zarr does not look on the disk for their members.
    if _is_group(document):
        return {**document, "consolidated_metadata": _inline({})}
    return document
