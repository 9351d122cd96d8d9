"""A small web server for a built site, for the eyes of whoever started it.

It is bound to this machine, answers GET and HEAD only, and knows no files but those that lay in
the folder when it started: nothing is listed, no path or link leads anywhere else.
"""

from __future__ import annotations

import os
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from geneb.errors import InputError, NotFoundError

LOOPBACK = "127.0.0.1"
INDEX = "index.html"
SECURITY_HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",  # the page brings the rest of its policy
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
_TYPES = {
    ".html": "text/html",
    ".json": "application/json",
    ".csv": "text/csv",
    ".md": "text/markdown",
    ".tex": "text/plain",
    ".txt": "text/plain",
}


class SiteServer(ThreadingHTTPServer):
    """Serves the regular files below a folder.

    Attributes
    ----------
    files
        Path of an address, such as ``/index.html`` -> file.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self.files = _find_files(folder)
        super().__init__((LOOPBACK, port), _Handler)

    @property
    def address(self) -> str:
        """Where a browser finds it."""
        return f"http://{LOOPBACK}:{self.server_address[1]}/"


def make_server(folder: Path, port: int = 0) -> SiteServer:
    """Return a server of a folder; it answers once its `serve_forever` runs.

    Parameters
    ----------
    port
        0 takes any free one.

    Raises
    ------
    NotFoundError
        If there is no page in the folder.
    InputError
        If the port cannot be had.
    """
    if not (folder / INDEX).is_file():
        raise NotFoundError(
            "there is no site here",
            where=str(folder),
            expected=INDEX,
            fix="name a folder that `geneb leaderboard build` wrote a site into",
        )
    try:
        return SiteServer(folder, port)
    except OSError as error:
        raise InputError(
            "this port cannot be used",
            where=f"{LOOPBACK}:{port}",
            found=error.strerror or str(error),
            fix="give another --port; 0 takes any free one",
        ) from error


def _find_files(folder: Path) -> dict[str, Path]:
    found = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                found["/" + path.relative_to(folder).as_posix()] = path
    return found


class _Handler(BaseHTTPRequestHandler):
    server: SiteServer
    server_version = "geneb"
    sys_version = ""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with a file."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Answer with a file's headers."""
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        name = unquote(urlsplit(self.path).path)
        path = self.server.files.get(f"/{INDEX}" if name == "/" else name)
        try:
            data = path.read_bytes() if path else None
        except OSError:  # it was removed since
            data = None
        if path is None or data is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        kind = _TYPES.get(path.suffix)
        self.send_header(
            "Content-Type", f"{kind}; charset=utf-8" if kind else "application/octet-stream"
        )
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data)

    def end_headers(self) -> None:
        """Close the headers, of answers and errors alike, with those that keep a browser safe."""
        for name, value in SECURITY_HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the inherited name
        """Say nothing: requests are the user's own."""
