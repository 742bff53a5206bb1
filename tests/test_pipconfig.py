from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from vllm_graft.errors import FetchError
from vllm_graft.index.pipconfig import parse_config_list, read_settings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


def test_nothing_configured_means_the_default_index() -> None:
    settings = read_settings()
    assert settings.urls == ()
    assert (settings.timeout, settings.retries) == (15, 5)


def test_the_environment_names_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.test/simple")
    monkeypatch.setenv("PIP_CERT", "/ca.pem")
    monkeypatch.setenv("PIP_CLIENT_CERT", "/me.pem")
    monkeypatch.setenv("PIP_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("PIP_TRUSTED_HOST", "index.test other.test:8443")
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "180")
    monkeypatch.setenv("PIP_RETRIES", "1")
    settings = read_settings()
    assert settings.urls == ("https://index.test/simple",)
    assert settings.cert == "/ca.pem"
    assert settings.client_cert == "/me.pem"
    assert settings.proxy == "http://proxy.test:3128"
    assert settings.trusted_hosts == ("index.test", "other.test:8443")
    assert (settings.timeout, settings.retries) == (180, 1)


def test_a_configuration_file_of_pip_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = https://file.test/simple\ntimeout = 7\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_TIMEOUT", "9")
    settings = read_settings()
    assert settings.urls == ("https://file.test/simple",)
    assert settings.timeout == 9


def test_the_environment_counts_where_there_is_no_pip(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.test/simple")
    assert read_settings().urls == ("https://index.test/simple",)


def test_extra_indexes_follow_the_default_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "file:///a/simple file:///b/simple")
    assert read_settings().urls == ("", "file:///a/simple", "file:///b/simple")


def test_credentials_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://me:p%40ss@index.test:8443/simple")
    settings = read_settings()
    assert settings.urls == ("https://index.test:8443/simple",)
    assert settings.credentials == {"index.test:8443": ("me", "p@ss")}


def test_later_sections_win() -> None:
    output = (
        ":env:.timeout='4'\n"
        "download.retries='3'\n"
        "freeze.timeout='99'\n"
        "global.retries='1'\n"
        "global.timeout='2'\n"
        "install.retries='2'\n"
        "global.extra_index_url='\\nhttps://a.test\\nhttps://b.test'\n"
        "no key here\n"
        "global.broken='\n"
    )
    assert parse_config_list(output) == {
        "timeout": "4",
        "retries": "3",
        "extra-index-url": "\nhttps://a.test\nhttps://b.test",
    }


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("PIP_INDEX_URL", "ftp://index.test", "neither http, https nor file"),
        ("PIP_INDEX_URL", "https://index.test:port/", "cannot be understood"),
        ("PIP_TIMEOUT", "soon", "'timeout' is not a number: soon"),
        ("PIP_NO_INDEX", "true", "no package index"),
    ],
)
def test_what_cannot_be_understood_is_an_error_with_a_hint(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(FetchError, match=message) as caught:
        read_settings()
    assert caught.value.hint


def test_an_error_does_not_show_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "ftp://me:secret@index.test/simple")
    with pytest.raises(FetchError) as caught:
        read_settings()
    assert "secret" not in str(caught.value)
