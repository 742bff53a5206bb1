"""A package index on the loopback device, with faults on demand.

It serves miniature releases of a project named vllm: the simple API as HTML or as
JSON, and the files with range requests.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import io
import json
import os
import re
import socket
import tarfile
import threading
import zipfile
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping

    import pytest

#: 2026-06-13 08:46:40 UTC, the newest time in every miniature source distribution.
NEWEST = 1_781_340_400

#: What a request may meet, see `Server.faults`.
BUSY, HALF, HANG, MISSING, FORBIDDEN = "busy", "half", "hang", "missing", "forbidden"


def make_sdist(
    version: str, files: Mapping[str, bytes], extra: list[tarfile.TarInfo] | None = None
) -> bytes:
    """A source distribution; ``extra`` are members without content, as given."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for number, (path, content) in enumerate(files.items()):
            member = tarfile.TarInfo(f"vllm-{version}/{path}")
            member.size = len(content)
            member.mtime = NEWEST - number
            member.mode = 0o775 if path.endswith(".sh") else 0o664
            tar.addfile(member, io.BytesIO(content))
        for member in extra or []:
            tar.addfile(member)
    return gzip.compress(raw.getvalue(), mtime=0)


def make_wheel(files: Mapping[str, bytes]) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path, (2026, 6, 13, 8, 46, 40)), content)
    return raw.getvalue()


def wheel_name(version: str, build: str = "", arch: str = "x86_64") -> str:
    return f"vllm-{version}{build}-cp38-abi3-manylinux_2_28_{arch}.whl"


@dataclass
class Served:
    """A file of the index; ``sha256`` is what the index claims."""

    content: bytes
    sha256: str | None
    yanked: bool = False


@dataclass
class Server:
    """What is served, how, and what was asked for.

    Attributes:
        url: The simple API.
        files: By name.
        as_json: Serve the JSON form of the simple API.
        ranges: Answer range requests; ``suffix_ranges``: also ``bytes=-N``.
        login: ``user:password`` that requests must carry.
        faults: By the last part of the path, what the next requests meet in turn.
        log: Method, last part of the path and Range header of each request.
    """

    url: str = ""
    files: dict[str, Served] = field(default_factory=dict)
    as_json: bool = True
    ranges: bool = True
    suffix_ranges: bool = True
    login: str | None = None
    faults: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    log: list[tuple[str, str, str]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def add(
        self, name: str, content: bytes, *, claim: str | None = "", yanked: bool = False
    ) -> None:
        """Serve a file; ``claim`` is the digest to state instead of the right one."""
        digest = hashlib.sha256(content).hexdigest() if claim == "" else claim
        self.files[name] = Served(content, digest, yanked)

    def add_release(self, version: str, files: Mapping[str, bytes]) -> None:
        """Serve a source distribution and a wheel with the same files."""
        self.add(f"vllm-{version}.tar.gz", make_sdist(version, files))
        self.add(wheel_name(version), make_wheel(files))

    def asked(self, name: str) -> int:
        """How many requests there were for a file, or for the list (``vllm``)."""
        return sum(asked == name for _, asked, _ in self.log)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _HTTPServer

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        state = self.server.state
        name = self.path.rstrip("/").rpartition("/")[2]
        state.log.append((self.command, name, self.headers.get("Range", "")))
        fault = state.faults[name].pop(0) if state.faults[name] else ""
        if state.login is not None and not self._logged_in(state.login):
            self._send(401, b"", {"WWW-Authenticate": "Basic"})
        elif fault in {BUSY, MISSING, FORBIDDEN}:
            self._send({BUSY: 503, MISSING: 404, FORBIDDEN: 403}[fault], b"")
        elif fault == HANG:
            state.released.wait(30)
            self.close_connection = True
        elif self.path.endswith("/simple/vllm/"):
            self._send(200, *_project_page(state))
        elif name in state.files:
            self._send_file(state, state.files[name].content, body, fault == HALF)
        else:
            self._send(404, b"")

    def _logged_in(self, login: str) -> bool:
        expected = "Basic " + base64.b64encode(login.encode()).decode()
        return self.headers.get("Authorization") == expected

    def _send_file(self, state: Server, data: bytes, body: bool, half: bool) -> None:
        status, headers = 200, {"Content-Type": "application/octet-stream"}
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if wanted and state.ranges:
            first, last = wanted.groups()
            if not first and not state.suffix_ranges:
                self._send(501, b"")
                return
            start = int(first) if first else max(0, len(data) - int(last))
            end = int(last) if first and last else len(data) - 1
            if start >= len(data):
                self._send(416, b"")
                return
            end = min(end, len(data) - 1)
            status = 206
            headers["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
            data = data[start : end + 1]
        headers["Content-Length"] = str(len(data))
        self._send(status, data[: len(data) // 2] if half else data, headers, body)
        if half:
            self.close_connection = True

    def _send(
        self,
        status: int,
        data: bytes,
        headers: Mapping[str, str] | None = None,
        body: bool = True,
    ) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Length": str(len(data)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(data)


def _project_page(state: Server) -> tuple[bytes, dict[str, str]]:
    if state.as_json:
        page: dict[str, Any] = {
            "meta": {"api-version": "1.1"},
            "name": "vllm",
            "versions": [],
            "files": [
                {
                    "filename": name,
                    "url": f"../../files/{name}",
                    "hashes": {"sha256": file.sha256} if file.sha256 else {},
                    "size": len(file.content),
                    "yanked": file.yanked,
                }
                for name, file in state.files.items()
            ],
        }
        return json.dumps(page).encode(), {
            "Content-Type": "application/vnd.pypi.simple.v1+json"
        }
    return project_html(state.files, "../../files"), {"Content-Type": "text/html"}


def project_html(files: Mapping[str, Served], base: str) -> bytes:
    """The HTML form of the simple API for ``files`` below ``base``."""
    links = [
        f'<a href="{base}/{name}{"#sha256=" + file.sha256 if file.sha256 else ""}"'
        f"{' data-yanked=broken' if file.yanked else ''}>{html.escape(name)}</a>"
        for name, file in files.items()
    ]
    page = "<!DOCTYPE html><html><body>{}</body></html>".format("\n".join(links))
    return page.encode()


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    state: Server

    def handle_error(self, *_: object) -> None:
        """A client that gave up is no error here."""


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server without files, on a free port, for the time of the block."""
    with _HTTPServer(("127.0.0.1", 0), _Handler) as server:
        scheme = "http"
        if tls is not None:
            scheme = "https"
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        server.state = Server(url=f"{scheme}://127.0.0.1:{server.server_port}/simple")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.state
        finally:
            server.state.released.set()
            server.shutdown()
            thread.join()


def free_port() -> int:
    """A port where nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def only_this_index(
    monkeypatch: pytest.MonkeyPatch, url: str, cache: os.PathLike[str]
) -> None:
    """Make ``url`` the one index, whatever this machine's pip is set up for."""
    for name in list(os.environ):
        if name.upper().startswith("PIP_") or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    # Asking pip takes a second; test_pipconfig does it.
    monkeypatch.setattr("vllm_graft.index.pipconfig._config_list", str)
    monkeypatch.setenv("PIP_INDEX_URL", url)
    monkeypatch.setenv("PIP_RETRIES", "2")
    monkeypatch.setenv("PIP_TIMEOUT", "5")
    monkeypatch.setenv("NETRC", os.devnull)
    monkeypatch.setenv("VLLM_GRAFT_CACHE", os.fspath(cache))
    monkeypatch.setattr("vllm_graft.index.session.BACKOFF", 0.001)
