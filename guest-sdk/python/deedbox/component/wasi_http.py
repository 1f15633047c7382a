"""Plain HTTP clients over `wasi:http`: `http.client`, `urllib.request`, and urllib3 with all that stands on it, such as
requests. Their effects are claimed, keyed and replayed as those of `Context.http`.

It takes the place of the connection only; what a client makes of it stays the client's.
"""

import http.client
import socket
import sys
import urllib.request
from typing import Any

from .._exchange import Exchange
from .wasi_send import send


def install() -> None:
    """Before the author's module is imported. There is no `ssl` in a component, so that https comes with this too."""
    client: Any = http.client
    client.HTTPConnection.connect = _connect
    client.HTTPSConnection = HTTPSConnection
    requests: Any = urllib.request
    requests.HTTPSHandler = HTTPSHandler


def install_into_imported() -> None:
    """After it: into urllib3 and requests, only when it has imported them."""
    adapters: Any = sys.modules.get("requests.adapters")
    if adapters:
        # The host checks certificates, and the file of authorities is not in the component.
        adapters.HTTPAdapter.cert_verify = lambda *_: None
    pools: Any = sys.modules.get("urllib3.connectionpool")
    if pools is None:
        return
    connection: Any = sys.modules["urllib3.connection"]
    plain = connection.HTTPConnection
    plain.connect = _connect_late
    plain.is_connected = property(lambda it: it.sock is not None)

    def without_tls(secure: Any, *arguments: Any, **options: Any) -> None:
        plain.__init__(secure, *arguments, **{name: it for name, it in options.items() if name not in _TLS})

    members = {"default_port": 443, "is_verified": True, "__init__": without_tls}
    pools.HTTPConnectionPool.ConnectionCls = plain
    pools.HTTPSConnectionPool.ConnectionCls = connection.HTTPSConnection = type("HTTPSConnection", (plain,), members)


# What urllib3 hands to a connection that speaks TLS by itself: here the host does, and nothing looks at it.
_TLS = (
    *("key_file", "cert_file", "key_password", "cert_reqs", "assert_hostname", "assert_fingerprint", "server_hostname"),
    *("ssl_context", "ca_certs", "ca_cert_dir", "ca_cert_data", "ssl_minimum_version", "ssl_maximum_version"),
    "ssl_version",
)


def _connect(connection: Any) -> None:
    connection.sock = _exchange(connection, at_once=True)


def _connect_late(connection: Any) -> None:
    connection.sock = _exchange(connection, at_once=False)


def _exchange(connection: Any, *, at_once: bool) -> Exchange:
    if getattr(connection, "_tunnel_host", None):
        raise OSError("an activity has no proxy: the host sends each request itself")
    timeout = connection.timeout
    if not (timeout is None or isinstance(timeout, (int, float))):
        timeout = socket.getdefaulttimeout()
    secure = connection.default_port == 443
    host = f"[{connection.host}]" if ":" in connection.host else connection.host
    authority = host if connection.port == connection.default_port else f"{host}:{connection.port}"
    return Exchange("https" if secure else "http", authority, timeout, send, at_once)


class HTTPSConnection(http.client.HTTPConnection):
    """As that of `http.client`, but the host speaks TLS: a context is taken and not looked at."""

    default_port = 443

    def __init__(self, host: str, port: int | None = None, *, context: Any = None, **options: Any) -> None:
        super().__init__(host, port, **options)


class HTTPSHandler(urllib.request.AbstractHTTPHandler):
    """As that of `urllib.request`."""

    def __init__(self, debuglevel: int | None = None, context: Any = None, check_hostname: bool | None = None) -> None:
        super().__init__(debuglevel or 0)

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(HTTPSConnection, request)

    https_request = urllib.request.AbstractHTTPHandler.do_request_
