"""What stands where `http.client` expects a connected socket: it gathers one request as bytes, has it sent whole, and
gives the answer as bytes. So the clients built on `http.client` work as they are.

It opens nothing, and it never sends a request twice.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from ._host import Headers

_NOT_OURS = frozenset(
    {"host", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "te", "trailer", "upgrade", "expect"}
)


@dataclass
class PlainRequest:
    """One request. `authority` is host and port, `timeout` in seconds."""

    method: str
    scheme: str
    authority: str
    path: str
    headers: Headers
    body: bytes
    timeout: float | None


@dataclass
class PlainAnswer:
    status: int
    headers: Headers
    body: bytes


Send = Callable[[PlainRequest], PlainAnswer]


class Exchange:
    """A connection for one request at a time. `send` carries it out, and raises an OSError.

    An error that says that nothing was sent is raised while the request is written, as by a connection that cannot be
    made; any other when the answer is read. When `at_once` is False the request goes out when the answer is asked for,
    for a client that sets the time-out as late as that.
    """

    def __init__(self, scheme: str, authority: str, timeout: float | None, send: Send, at_once: bool = True) -> None:
        self._scheme, self._authority, self._timeout, self._send = scheme, authority, timeout, send
        self._at_once = at_once
        self._written = bytearray()
        self._done: PlainAnswer | OSError | None = None

    def sendall(self, data: bytes) -> None:
        self._written += data
        if self._at_once and (request := self._whole()):
            self._carry_out(request)
            if isinstance(self._done, ConnectionRefusedError):
                raise self._done

    def makefile(self, mode: str = "rb", *_: object, **__: object) -> io.BufferedIOBase:
        """The answer to what was written."""
        if self._done is None:
            request = self._whole()
            if request is None:
                raise ConnectionAbortedError("the request ended before it was whole: nothing was sent")
            self._carry_out(request)
        done, self._done = self._done, None
        if isinstance(done, OSError):
            raise done
        assert done is not None
        return io.BytesIO(_serialised(done))

    def settimeout(self, timeout: float | None) -> None:
        self._timeout = timeout

    def gettimeout(self) -> float | None:
        return self._timeout

    def setsockopt(self, *_: object) -> None:
        """Nothing here has options."""

    def shutdown(self, how: int) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""

    def _carry_out(self, request: PlainRequest) -> None:
        self._written.clear()
        try:
            self._done = self._send(request)
        except OSError as error:
            self._done = error

    def _whole(self) -> PlainRequest | None:
        """The request, once all of it is written."""
        head, end, rest = bytes(self._written).partition(b"\r\n\r\n")
        if not end:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        pairs = (line.partition(":") for line in lines)
        headers = [(name.strip(), value.strip().encode("latin-1")) for name, _, value in pairs]
        body = _body({name.lower(): value for name, value in headers}, rest)
        if body is None:
            return None
        own = [(name, value) for name, value in headers if name.lower() not in _NOT_OURS]
        return PlainRequest(method, self._scheme, self._authority, path, own, body, self._timeout)


def _body(headers: dict[str, bytes], rest: bytes) -> bytes | None:
    if b"chunked" in headers.get("transfer-encoding", b"").lower():
        return _unchunked(rest)
    length = int(headers.get("content-length", b"0"))
    return rest[:length] if len(rest) >= length else None


def _unchunked(rest: bytes) -> bytes | None:
    body = bytearray()
    while True:
        size, end, rest = rest.partition(b"\r\n")
        if not end:
            return None
        count = int(size.split(b";")[0], 16)
        if len(rest) < count + 2:
            return None
        if count == 0:
            return bytes(body)
        body += rest[:count]
        rest = rest[count + 2 :]


def _serialised(answer: PlainAnswer) -> bytes:
    try:
        reason = HTTPStatus(answer.status).phrase
    except ValueError:
        reason = ""
    framing = {"transfer-encoding", "connection", "keep-alive"} | ({"content-length"} if answer.body else set())
    kept = [(name, value) for name, value in answer.headers if name.lower() not in framing]
    if not any(name.lower() == "content-length" for name, _ in kept):
        kept.append(("content-length", str(len(answer.body)).encode()))
    lines = b"".join(name.encode("latin-1") + b": " + value + b"\r\n" for name, value in kept)
    return f"HTTP/1.1 {answer.status} {reason}\r\n".encode("latin-1") + lines + b"\r\n" + answer.body
