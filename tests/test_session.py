"""Networks that fail and indexes that refuse, seen through the list of releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import loopback
import tls
from vllm_graft.errors import FetchError
from vllm_graft.index.client import Index

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loopback import Server

FILES = {"vllm/__init__.py": b""}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with loopback.serving() as running:
        loopback.only_this_index(monkeypatch, running.url, tmp_path / "cache")
        yield running


def _versions() -> list[str]:
    with Index() as index:
        return [release.version for release in index.releases()]


def test_a_busy_index_is_asked_again(server: Server) -> None:
    server.add_release("0.9.0", FILES)
    server.faults["vllm"] = [loopback.BUSY, loopback.BUSY]
    assert _versions() == ["0.9.0"]


@pytest.mark.parametrize(
    ("fault", "requests", "message"),
    [
        (loopback.BUSY, 3, "503 Service Unavailable"),
        (loopback.FORBIDDEN, 1, "403 Forbidden"),
        (loopback.MISSING, 1, "no vLLM on the package index"),
        (loopback.HANG, 3, "stopped answering"),
    ],
)
def test_failures_are_bounded_and_explained(
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    requests: int,
    message: str,
) -> None:
    monkeypatch.setenv("PIP_TIMEOUT", "0.2")
    server.faults["vllm"] = [fault] * 9
    with pytest.raises(FetchError, match=message) as caught:
        _versions()
    assert caught.value.hint
    asked = server.asked("vllm")
    # A client that waits no longer may be gone before its request is read.
    assert asked <= requests if fault == loopback.HANG else asked == requests


def test_no_index_at_all_is_explained(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://127.0.0.1:{loopback.free_port()}/simple"
    monkeypatch.setenv("PIP_INDEX_URL", url)
    with pytest.raises(FetchError, match="connection to the index failed"):
        _versions()


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """An index whose certificate nobody trusts."""
    with loopback.serving(tls.server_context(tmp_path)) as running:
        loopback.only_this_index(monkeypatch, running.url, tmp_path / "cache")
        running.add_release("0.9.0", FILES)
        yield running


def test_an_untrusted_certificate_is_explained_and_not_tried_again(
    secure: Server,
) -> None:
    with pytest.raises(FetchError, match="certificate") as caught:
        _versions()
    assert "PIP_CERT" in str(caught.value.hint)
    assert secure.log == []


def test_the_certificates_of_pip_count_more_than_those_of_requests(
    secure: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "server.pem.other"))
    monkeypatch.setenv("PIP_CERT", str(tls.write_certificate(tmp_path)))
    assert _versions() == ["0.9.0"]


@pytest.mark.parametrize("with_port", [True, False])
def test_a_trusted_host_is_trusted(
    secure: Server, monkeypatch: pytest.MonkeyPatch, with_port: bool
) -> None:
    host = secure.url.split("/")[2]
    monkeypatch.setenv("PIP_TRUSTED_HOST", host if with_port else host.split(":")[0])
    assert _versions() == ["0.9.0"]


def test_the_proxy_of_pip_is_asked(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A proxy is asked for the whole URL; this one serves the path of any host.
    server.add_release("0.9.0", FILES)
    monkeypatch.setenv("PIP_INDEX_URL", "http://index.test/simple")
    monkeypatch.setenv("PIP_PROXY", server.url.removesuffix("/simple"))
    assert _versions() == ["0.9.0"]


def test_a_login_is_sent_and_stays_out_of_messages_and_cache(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add_release("0.9.0", FILES)
    server.login = "me:secret"
    url = server.url.replace("http://", "http://me:secret@")
    monkeypatch.setenv("PIP_INDEX_URL", url)
    assert _versions() == ["0.9.0"]
    (stored,) = (tmp_path / "cache" / "index").iterdir()
    assert "secret" not in stored.read_text()
    server.faults["vllm"] = [loopback.BUSY] * 9
    stored.unlink()
    with pytest.raises(FetchError) as caught:
        _versions()
    assert "secret" not in str(caught.value)


def test_a_wrong_login_is_explained(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.login = "me:secret"
    with pytest.raises(FetchError, match="401 Unauthorized") as caught:
        _versions()
    assert "login" in str(caught.value.hint)
