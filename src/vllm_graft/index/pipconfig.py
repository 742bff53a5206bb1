"""Which package index to ask, and how: read from the user's pip configuration.

Whoever can ``pip install vllm`` on a machine has an index, certificates and a
proxy set up for it, so nothing has to be configured a second time.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from vllm_graft.errors import FetchError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Sections of ``pip config list`` that concern ``pip download``; later ones win.
_SECTIONS = ("global", "install", "download", ":env:")

#: pip's own defaults (``pip --help``): seconds, and attempts after the first.
_TIMEOUT = 15.0
_RETRIES = 5


@dataclass(frozen=True)
class IndexSettings:
    """How to reach the package index.

    Attributes:
        urls: Base URLs of the simple API without credentials, the main index
            first. Empty stands for the client library's default index.
        credentials: User and password for each ``host[:port]`` that has them.
        cert: CA bundle to trust instead of the default.
        client_cert: Client certificate and key in one PEM file.
        proxy: Proxy for http and https.
        trusted_hosts: Hosts (``host`` or ``host:port``) whose certificate is not
            verified.
        timeout: Seconds to wait for a connection and for each read.
        retries: Attempts after the first.
    """

    urls: tuple[str, ...] = ()
    credentials: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    cert: str | None = None
    client_cert: str | None = None
    proxy: str | None = None
    trusted_hosts: tuple[str, ...] = ()
    timeout: float = _TIMEOUT
    retries: int = _RETRIES


def read_settings() -> IndexSettings:
    """The index settings of pip for this interpreter.

    Raises:
        FetchError: A setting cannot be understood, or pip is told to use no
            index at all.
    """
    options = parse_config_list(_config_list())
    # pip's environment variables count even where there is no pip to ask.
    options |= _environment_options()
    if options.get("no-index", "").lower() in {"1", "true", "yes", "on"}:
        raise FetchError(
            "pip is configured to use no package index (no-index)",
            hint="Unset PIP_NO_INDEX, or set PIP_INDEX_URL to an index with vLLM.",
        )
    extra = options.get("extra-index-url", "").split()
    main = options.get("index-url", "").split()[:1]
    split = [_split_credentials(url) for url in [*main, *extra]]
    urls = tuple(dict.fromkeys(url for url, _, _ in split))
    return IndexSettings(
        # The default index stays the main one when only extra ones are named.
        urls=urls if main or not urls else ("", *urls),
        credentials={host: login for _, host, login in split if login is not None},
        cert=options.get("cert") or None,
        client_cert=options.get("client-cert") or None,
        proxy=options.get("proxy") or None,
        trusted_hosts=tuple(options.get("trusted-host", "").split()),
        timeout=_number(options, "timeout", _number(options, "default-timeout", 15)),
        retries=int(_number(options, "retries", _RETRIES)),
    )


def parse_config_list(output: str) -> dict[str, str]:
    """The options in the output of ``pip config list``.

    Each line reads ``section.option='value'``, the value a Python string.
    Sections of commands other than install and download are left out.
    """
    found: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in output.splitlines():
        key, equals, value = line.partition("=")
        section, _, option = key.rpartition(".")
        if not equals or section not in found:
            continue
        try:
            text = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            continue
        found[section][option.lower().replace("_", "-")] = str(text)
    merged: dict[str, str] = {}
    for section in _SECTIONS:
        merged |= found[section]
    return merged


def _config_list() -> str:
    """What ``pip config list`` prints; nothing where there is no pip."""
    candidates = [[sys.executable, "-m", "pip"]]
    if pip := shutil.which("pip"):
        candidates.append([pip])
    for pip_command in candidates:
        try:
            done = subprocess.run(
                [*pip_command, "config", "list"],
                # Elsewhere a folder named pip could be imported in its place.
                cwd=os.path.dirname(sys.executable) or None,  # noqa: PTH120
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return done.stdout
    return ""


def _environment_options() -> dict[str, str]:
    """``PIP_INDEX_URL`` as ``index-url``, and so on."""
    return {
        name[4:].lower().replace("_", "-"): value
        for name, value in os.environ.items()
        if name.startswith("PIP_") and value
    }


def _split_credentials(url: str) -> tuple[str, str, tuple[str, str] | None]:
    """The URL without user and password, its ``host[:port]``, and the login.

    They are kept apart so that no message and no cache file ever holds them.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.port:
            host = f"{host}:{parts.port}"
    except ValueError as error:
        raise FetchError(
            f"the package index URL cannot be understood: {error}",
            hint="Correct index-url or extra-index-url in pip's configuration.",
        ) from error
    if parts.scheme not in {"http", "https", "file"}:
        raise FetchError(
            f"the package index URL '{parts.scheme}:...' is neither http, https "
            "nor file",
            hint="Correct index-url or extra-index-url in pip's configuration.",
        )
    login = None
    if parts.username is not None:
        login = (unquote(parts.username), unquote(parts.password or ""))
        parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    return urlunsplit(parts), host, login


def _number(options: Mapping[str, str], name: str, default: float) -> float:
    text = options.get(name)
    if text is None:
        return default
    try:
        return max(0.0, float(text))
    except ValueError as error:
        raise FetchError(
            f"pip's setting '{name}' is not a number: {text}",
            hint=f"Correct '{name}' in pip's configuration.",
        ) from error
