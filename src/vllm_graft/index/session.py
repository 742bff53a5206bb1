"""One HTTP session for the package index, with pip's settings and bounded retries.

Importing this imports requests: only what reads the index does.
"""

from __future__ import annotations

import io
import os
import re
import time
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

import requests
import urllib3
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.auth import HTTPBasicAuth

from vllm_graft.errors import FetchError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vllm_graft.index.pipconfig import IndexSettings

T = TypeVar("T")

#: Requests that may be under way at once.
JOBS = 8
#: Seconds before the first retry; each further one waits twice as long.
BACKOFF = 0.25
_LONGEST_WAIT = 8.0
_PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


class Session(requests.Session):
    """A session that uses one index's settings for every request."""

    def __init__(self, settings: IndexSettings) -> None:
        super().__init__()
        self.settings = settings
        self.cert = settings.client_cert
        self.auth = _HostLogins(settings.credentials)
        for scheme in ("https://", "http://"):
            self.mount(scheme, HTTPAdapter(pool_maxsize=2 * JOBS))
        for host in settings.trusted_hosts:
            self.mount(f"https://{host}/", _Unverified(pool_maxsize=2 * JOBS))
            if ":" not in host:
                self.mount(f"https://{host}:", _Unverified(pool_maxsize=2 * JOBS))
        if settings.trusted_hosts:
            # pip does the same: the user has asked for it.
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        self.mount("file://", LocalFiles())

    def merge_environment_settings(
        self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any
    ) -> Any:
        """Let pip's settings win over the variables that requests reads."""
        if self.settings.proxy:
            proxies = dict.fromkeys(("http", "https"), self.settings.proxy)
        if verify is None and self.settings.cert:
            verify = self.settings.cert
        return super().merge_environment_settings(url, proxies, stream, verify, cert)

    def send(self, request: Any, **kwargs: Any) -> requests.Response:
        """Send with the configured timeout: no request waits for ever."""
        if kwargs.get("timeout") is None:
            kwargs["timeout"] = self.settings.timeout
        return super().send(request, **kwargs)


class _HostLogins(requests.auth.AuthBase):
    """Sends a login to the host whose index URL carried it, and to no other."""

    def __init__(self, logins: Mapping[str, tuple[str, str]]) -> None:
        self._logins = logins

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        parts = urlsplit(request.url or "")
        host = str(parts.hostname or "")
        login = self._logins.get(f"{host}:{parts.port}" if parts.port else host)
        # requests leaves ~/.netrc alone once a session has an auth of its own.
        login = login or requests.utils.get_netrc_auth(request.url or "")
        return HTTPBasicAuth(*login)(request) if login else request


class _Unverified(HTTPAdapter):
    """For pip's trusted hosts."""

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:  # noqa: ARG002
        super().cert_verify(conn, url, verify=False, cert=cert)  # type: ignore[no-untyped-call]


class LocalFiles(BaseAdapter):
    """Serves ``file://`` URLs, with ranges; a folder stands for its index.html."""

    def send(  # type: ignore[override]
        self, request: requests.PreparedRequest, **_: Any
    ) -> requests.Response:
        path = Path(unquote(urlsplit(request.url or "").path))
        if path.is_dir():
            path /= "index.html"
        response = requests.Response()
        response.request = request
        response.url = request.url or ""
        try:
            stream = _ClosedAtEnd(path)
        except OSError as error:
            response.status_code = HTTPStatus.NOT_FOUND
            response.reason = error.strerror or "cannot be read"
            response.raw = io.BytesIO()
            return response
        size = os.fstat(stream.fileno()).st_size
        response.status_code = HTTPStatus.OK
        response.raw = stream
        if path.suffix in {"", ".html"}:
            response.headers["Content-Type"] = "text/html"
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("Range", ""))
        if wanted is not None and any(wanted.groups()):
            first, last = _range(wanted[1], wanted[2], size)
            with stream:
                stream.seek(first)
                response.raw = io.BytesIO(stream.read(last - first + 1))
            response.status_code = HTTPStatus.PARTIAL_CONTENT
            response.headers["Content-Range"] = f"bytes {first}-{last}/{size}"
            size = last - first + 1
        response.headers["Content-Length"] = str(size)
        return response

    def close(self) -> None:
        """Nothing is kept open."""


class _ClosedAtEnd(io.FileIO):
    """Closes itself once it is read to the end, as requests expects of a stream."""

    def read(self, size: int | None = -1) -> bytes:
        if self.closed:
            return b""
        data = super().read(-1 if size is None else size) or b""
        if size != 0 and (not data or size is None or size < 0):
            self.close()
        return data


def _range(first: str, last: str, size: int) -> tuple[int, int]:
    """The first and last byte that a Range header's two numbers mean."""
    if not first:
        return max(0, size - int(last)), size - 1
    return int(first), min(int(last), size - 1) if last else size - 1


def retrying(action: Callable[[], T], retries: int) -> T:
    """Call ``action`` again while it fails with an error that may pass.

    Args:
        action: What to try; it starts afresh on each call.
        retries: Attempts after the first.

    Raises:
        Exception: What the last attempt raised.
    """
    for attempt in range(retries):
        try:
            return action()
        except Exception as error:  # noqa: PERF203 - it waits anyway
            if not may_pass(error):
                raise
            time.sleep(_wait(error, BACKOFF * 2**attempt))
    return action()


def may_pass(error: BaseException) -> bool:
    """Whether trying again can help."""
    cause = network_error(error)
    if isinstance(cause, requests.exceptions.SSLError):
        return False
    if isinstance(cause, requests.HTTPError):
        response = cause.response
        return response is not None and response.status_code in _PASSING_STATUS
    return isinstance(
        cause,
        (
            requests.ConnectionError,
            requests.Timeout,
            requests.exceptions.ChunkedEncodingError,
            urllib3.exceptions.HTTPError,
        ),
    )


def network_error(error: BaseException) -> BaseException:
    """The error of requests or urllib3 that ``error`` was raised for, or itself.

    remotezip replaces network errors by its own, which carry only the text.
    """
    known = (requests.RequestException, urllib3.exceptions.HTTPError)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, known):
            return cause
        cause = cause.__cause__ or cause.__context__
    return error


def status_of(error: BaseException) -> int | None:
    """The HTTP status that ``error`` stands for, if it stands for one."""
    cause = network_error(error)
    response = cause.response if isinstance(cause, requests.HTTPError) else None
    return None if response is None else response.status_code


def fetch_error(doing: str, error: BaseException) -> FetchError:
    """A FetchError that says what failed, why, and what to do.

    Args:
        doing: What was tried, as a sentence ending without a stop.
        error: What it failed with.
    """
    cause = network_error(error)
    status = status_of(error)
    hint = "Check the network and pip's index settings (`pip config list`), then retry."
    if isinstance(cause, requests.exceptions.SSLError):
        reason = "the certificate of the index is not trusted"
        hint = "Set pip's 'cert' option (PIP_CERT) to the CA bundle of your network."
    elif isinstance(cause, requests.exceptions.ProxyError):
        reason = "the proxy cannot be reached"
        hint = "Check pip's 'proxy' option and HTTPS_PROXY."
    elif status is not None:
        reason = f"the index answered {status} {_phrase(status)}".rstrip()
        if status in {401, 403, 407}:
            hint = "Check the login in pip's index-url, or in ~/.netrc."
    elif isinstance(cause, (requests.Timeout, urllib3.exceptions.TimeoutError)):
        reason = "the index stopped answering"
        hint = "Retry later, or raise pip's 'timeout' option (PIP_TIMEOUT)."
    elif may_pass(error):
        reason = "the connection to the index failed or broke off"
    else:
        reason = f"{type(cause).__name__}: {cause}".rstrip(": ")
    return FetchError(f"{doing}: {reason}", hint=hint)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _wait(error: BaseException, backoff: float) -> float:
    """Seconds to wait: what the server asks for, within bounds."""
    cause = network_error(error)
    response = cause.response if isinstance(cause, requests.HTTPError) else None
    asked = "" if response is None else response.headers.get("Retry-After", "")
    return min(float(asked) if asked.isdigit() else backoff, _LONGEST_WAIT)
