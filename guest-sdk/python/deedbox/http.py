"""HTTP through the ledger. GET, HEAD and OPTIONS are reads; every other method is an effect, and happens once.

Nothing here retries: the host answers the next identical call by the ledger's rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeVar, overload
from urllib.parse import urlencode

from . import errors
from ._hints import ReadError, read_text
from ._host import Condition, Host, Lookup, OnUnknown, Options, Received, Request, Source, identity
from ._write import WriteError, to_bytes
from .failure import milliseconds

T = TypeVar("T")
_MAX_TIMEOUT_MS = 0xFFFF_FFFF


class Client:
    """Where requests start."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def get(self, url: str, **options: Any) -> Response:
        """A read; the options are those of `request`."""
        return self.request("GET", url, **options)

    def post(self, url: str, **options: Any) -> Response:
        return self.request("POST", url, **options)

    def put(self, url: str, **options: Any) -> Response:
        return self.request("PUT", url, **options)

    def patch(self, url: str, **options: Any) -> Response:
        return self.request("PATCH", url, **options)

    def delete(self, url: str, **options: Any) -> Response:
        return self.request("DELETE", url, **options)

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str | bytes] | None = None,
        json: Any = None,
        form: Mapping[str, str] | list[tuple[str, str]] | None = None,
        body: bytes | str | None = None,
        timeout: float | timedelta | None = None,
        effect: str | None = None,
        business_effect: tuple[str, str] | None = None,
        on_unknown: OnUnknown | str = OnUnknown.PROVIDER_DEFAULT,
        lookup: Lookup | None = None,
    ) -> Response:
        """Sends one request, or answers it from the ledger. Every status is an answer.

        The body is one of `json` (anything but None that can be written as JSON), `form` (an HTML form) and `body`; the
        first two set the content type unless the headers have one. The host refuses `host`, hop-by-hop and framing
        headers. `timeout` is how long to wait for the whole answer; the host caps it by the time left for the attempt.

        `effect` names this effect, 1 to 256 bytes, unique in this run; `business_effect`, an operation and a key, names
        it by the business itself, for all runs that name the same. Without either it is known by its method, address
        and order. `on_unknown` and `lookup` say what happens when nobody knows whether it did.

        Raises the errors of `deedbox.errors`.
        """
        fields = [(name, _bytes(value)) for name, value in (headers or {}).items()]
        content, content_type = _content(json, form, body)
        if content_type and not any(name.lower() == "content-type" for name, _ in fields):
            fields.append(("content-type", content_type.encode()))
        timeout_ms = None if timeout is None else min(milliseconds(timeout), _MAX_TIMEOUT_MS)
        options = Options(identity(effect, business_effect), OnUnknown(on_unknown), lookup)
        return Response(self._host.send(Request(method, url, fields, content, timeout_ms), options))


class Response:
    """An answer with any status, from the provider or from the record of an earlier send."""

    def __init__(self, received: Received) -> None:
        self._received = received

    @property
    def status(self) -> int:
        return self._received.status

    @property
    def is_success(self) -> bool:
        """Whether the status is 200 to 299."""
        return 200 <= self.status < 300

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        """Every header, in the order received."""
        return self._received.headers

    def header(self, name: str) -> str | None:
        """The first header of that name, in any case, when its value is text."""
        found = next((value for it, value in self.headers if it.lower() == name.lower()), None)
        try:
            return None if found is None else found.decode()
        except UnicodeDecodeError:
            return None

    def bytes(self) -> bytes:
        """The body. Raises BodyNotKept when the record has none: a missing body is never an empty one."""
        if self._received.body is None:
            raise errors.BodyNotKept("the recorded answer has no body, because it was larger than the host keeps")
        return self._received.body

    def text(self) -> str:
        """The body as UTF-8. Raises UnexpectedBody."""
        try:
            return self.bytes().decode()
        except UnicodeDecodeError as error:
            raise _unexpected(str(error)) from None

    @overload
    def json(self) -> Any: ...

    @overload
    def json(self, kind: type[T]) -> T: ...

    def json(self, kind: Any = Any) -> Any:
        """The body as JSON, of that type. Members that the type does not have are ignored. Raises UnexpectedBody."""
        try:
            return read_text(self.bytes(), kind, "body", strict=False)
        except ReadError as error:
            raise _unexpected(str(error)) from None

    @property
    def source(self) -> Source:
        """Whether this was sent now, or where it comes from otherwise."""
        return self._received.source

    @property
    def effect_id(self) -> str | None:
        """The effect behind a claimed call; none for a read."""
        return self._received.effect_id

    def error_for_status(self) -> Response:
        """The answer itself unless its status is 400 or higher. Else raises HttpStatus: 5xx, 408, 425 and 429 are
        retryable and the others permanent.
        """
        if self.status >= 400:
            raise errors.HttpStatus(self.status)
        return self


def _unexpected(why: str) -> errors.UnexpectedBody:
    return errors.UnexpectedBody(f"the answer cannot be read as asked: {why}", why)


def _content(json: Any, form: Any, body: bytes | str | None) -> tuple[bytes, str]:
    if sum(it is not None for it in (json, form, body)) > 1:
        raise ValueError("a request has one body: give one of `json`, `form` and `body`")
    if json is not None:
        try:
            return to_bytes(json, "body"), "application/json"
        except WriteError as error:
            raise errors.InvalidRequest(f"the body is not JSON: {error}", str(error)) from None
    if form is not None:
        return urlencode(form, safe="*").encode(), "application/x-www-form-urlencoded"
    return _bytes(body or b""), ""


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


__all__ = ["Client", "Condition", "Lookup", "OnUnknown", "Response", "Source"]
