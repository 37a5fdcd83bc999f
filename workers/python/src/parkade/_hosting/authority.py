"""The server that a client asked for: `Host`, as a name and a port."""

from __future__ import annotations

_PORTS = {"http": "80", "https": "443"}
_PORT_DIGITS_MAX = 5


def server_of(host: str, scheme: str) -> tuple[str, str]:
    """The name and the port that the client asked for; a request without `Host` was for this machine."""
    name, colon, port = host.rpartition(":")
    if colon and port.isdecimal() and len(port) <= _PORT_DIGITS_MAX:
        return name, port
    return host or "localhost", _PORTS[scheme]
