"""A certificate for 127.0.0.1 that nobody trusts, and its key.

Made for these tests alone; self-signed, valid from 2020 to 2120.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_CERTIFICATE = """\
MIIBjTCCATOgAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAkxMjcuMC4w
LjEwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CTEyNy4wLjAuMTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABM1ZZbjfAxBcyS9I
JnnYG16Qtfa8ihbzR/A+IKV2DJtGX+BqoNuRdeB6OJBqCoUXKJ2HpEkJesa2XDyn
B+FNu0yjdDByMA8GA1UdEwEB/wQFMAMBAf8wHQYDVR0OBBYEFH6PIfkjbIyla3EW
sE5G/2TE5R35MB8GA1UdIwQYMBaAFH6PIfkjbIyla3EWsE5G/2TE5R35MA4GA1Ud
DwEB/wQEAwIChDAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0gAMEUCIGLe
tGEpmmdqCSnrZ7/zSck0C2GAw1BOzSZDHxinrmvPAiEArmRdn0/C6vcOHLEFFG1f
OWiX8rSOHuxNraAPqN/29m8=
"""
_KEY = """\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjel9csbMxRb6VMeo
nGb0NAjmfvIg+QvJuszhW6Wu0PChRANCAATNWWW43wMQXMkvSCZ52BtekLX2vIoW
80fwPiCldgybRl/gaqDbkXXgejiQagqFFyidh6RJCXrGtlw8pwfhTbtM
"""


def _pem(kind: str, body: str) -> str:
    return f"-----BEGIN {kind}-----\n{body}-----END {kind}-----\n"


def write_certificate(folder: Path) -> Path:
    """Write the certificate, for a client to trust."""
    path = folder / "certificate.pem"
    path.write_text(_pem("CERTIFICATE", _CERTIFICATE))
    return path


def server_context(folder: Path) -> ssl.SSLContext:
    """What a server shows the certificate with."""
    both = folder / "server.pem"
    both.write_text(_pem("CERTIFICATE", _CERTIFICATE) + _pem("PRIVATE KEY", _KEY))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return context
