"""A hub on this machine: what the hub's library asks, in any version, answered from memory."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class FakeHub:
    """Repositories of one commit each, and what was asked for.

    Attributes
    ----------
    asked
        Path of each file that was sent, in order.
    """

    repository: str
    commit: str
    files: Mapping[str, bytes]
    url: str = ""
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str) -> tuple[bytes, str] | None:
        """Return the body for a path, and its kind."""
        about = f"/api/models/{self.repository}"
        if path == f"{about}/revision/{self.commit}":
            siblings = [{"rfilename": name} for name in self.files]
            return _as_json({"id": self.repository, "sha": self.commit, "siblings": siblings})
        if path == f"{about}/tree/{self.commit}":
            return _as_json(
                [
                    {"type": "file", "path": name, "size": len(content), "oid": "0" * 40}
                    for name, content in self.files.items()
                ]
            )
        head = f"/{self.repository}/resolve/{self.commit}/"
        content = self.files.get(path.removeprefix(head)) if path.startswith(head) else None
        return None if content is None else (content, "application/octet-stream")


def _as_json(value: object) -> tuple[bytes, str]:
    return json.dumps(value).encode(), "application/json"


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._reply(with_body=False)

        def do_GET(self) -> None:
            self._reply(with_body=True)

        def log_message(self, *args: object) -> None:
            """Tests are silent."""

        def _reply(self, *, with_body: bool) -> None:
            path = self.path.partition("?")[0]
            found = hub.answer(path)
            body, kind = found or (b"{}", "application/json")
            if found and with_body and "/resolve/" in path:
                hub.asked.append(path.rpartition("/")[2])
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Repo-Commit", hub.commit)
            self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
            if not found:
                missing = "EntryNotFound" if hub.repository in path else "RepoNotFound"
                self.send_header("X-Error-Code", missing)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

    return Handler


@contextmanager
def serve_hub(repository: str, commit: str, files: Mapping[str, bytes]) -> Iterator[FakeHub]:
    """Serve a repository on a free port for the length of a with-block."""
    hub = FakeHub(repository, commit, files)
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub)) as server:
        server.daemon_threads = True
        hub.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
