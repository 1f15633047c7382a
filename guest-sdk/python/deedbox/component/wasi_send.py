"""One whole request over `wasi:http`, and its whole answer. Errors are those that Python has for sockets, each with the
failure that it stands for when nobody catches it.
"""

from typing import Any

from componentize_py_types import Err, Ok
from wit_world.imports import outgoing_handler, streams, types

from .. import errors
from .._exchange import PlainAnswer, PlainRequest
from ..failure import Failure
from .uncaught import FAILURE

_READ_BYTES = 1 << 16
_WRITE_BYTES = 4096
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")

# How the host begins the text of what `wasi:http` has no code for.
_TEXTS = {
    "another attempt": "InFlight",
    "effect mismatch: ": "EffectMismatch",
    "outcome unknown: ": "OutcomeUnknown",
    "invalid request: ": "InvalidRequest",
}


def send(request: PlainRequest) -> PlainAnswer:
    """Raises ConnectionRefusedError when nothing was sent, TimeoutError, or ConnectionError."""
    outgoing = _outgoing(request)
    body = outgoing.body()
    try:
        future = outgoing_handler.handle(outgoing, _options(request.timeout))
    except Err as error:
        raise _error(error.value) from None
    with future:
        _write(body, request.body)
        with future.subscribe() as ready:
            ready.block()
        return _answer(future.get())


def _outgoing(it: PlainRequest) -> types.OutgoingRequest:
    try:
        outgoing = types.OutgoingRequest(types.Fields.from_list(it.headers))
        outgoing.set_method(_method(it.method))
        outgoing.set_scheme(types.Scheme_Https() if it.scheme == "https" else types.Scheme_Http())
        outgoing.set_authority(it.authority)
        outgoing.set_path_with_query(it.path)
    except Err as error:
        why = type(error.value).__name__ if error.value else "its method, address or a header is malformed"
        raise _failing(ConnectionRefusedError(why), errors.http_error("InvalidRequest", why)) from None
    return outgoing


def _method(name: str) -> Any:
    if name in _METHODS:
        return getattr(types, f"Method_{name.capitalize()}")()
    return types.Method_Other(name)


def _options(timeout: float | None) -> types.RequestOptions | None:
    """The host adds up the parts that are set, so that one of them is the time for all."""
    if timeout is None:
        return None
    options = types.RequestOptions()
    options.set_first_byte_timeout(max(1_000_000, int(timeout * 1_000_000_000)))
    return options


def _write(body: types.OutgoingBody, data: bytes) -> None:
    try:
        with body.write() as stream:
            for start in range(0, len(data), _WRITE_BYTES):
                stream.blocking_write_and_flush(data[start : start + _WRITE_BYTES])
        types.OutgoingBody.finish(body, None)
    except Err:
        # The host needs no more of it, or refuses the call: its answer says which.
        pass


def _answer(got: Any) -> PlainAnswer:
    match got:
        case Ok(Ok(response)):
            with response:
                with response.headers() as fields:
                    headers = fields.entries()
                return PlainAnswer(response.status(), headers, _read(response))
        case Ok(Err(code)):
            raise _error(code)
    raise ConnectionError("the host gave no answer")


def _read(response: types.IncomingResponse) -> bytes:
    parts = []
    with response.consume() as body, body.stream() as stream:
        while True:
            try:
                parts.append(stream.blocking_read(_READ_BYTES))
            except Err as error:
                if isinstance(error.value, streams.StreamError_Closed):
                    return b"".join(parts)
                lost = errors.http_error("ConnectionLost", "the answer broke off")
                raise _failing(ConnectionError("the answer broke off"), lost) from None


def _error(code: Any) -> OSError:
    name = type(code).__name__.removeprefix("ErrorCode_")
    text = str(getattr(code, "value", None) or name)
    if name in ("ConnectionReadTimeout", "HttpResponseTimeout", "ConnectionTimeout"):
        return _failing(TimeoutError("timed out"), errors.http_error("TimedOut"))
    if name == "ConnectionTerminated":
        return _failing(ConnectionResetError(text), errors.http_error("ConnectionLost", text))
    if name == "HttpResponseBodySize":
        return _failing(ConnectionError(text), errors.http_error("ResponseTooLarge", text))
    if name == "HttpRequestDenied":
        why = "the run's log names the rule"
        return _failing(ConnectionRefusedError(f"denied: {why}"), errors.http_error("Denied", why))
    if name != "InternalError":
        return _failing(ConnectionRefusedError(text), errors.http_error("Unreachable", text))
    case = next((case for start, case in _TEXTS.items() if text.startswith(start)), None)
    if case:
        return _failing(ConnectionRefusedError(text), errors.http_error(case, text))
    if text.startswith("the recorded answer has no body"):
        return _failing(ConnectionError(text), errors.BodyNotKept(text))
    return ConnectionError(text)


def _failing(error: OSError, failure: Failure) -> OSError:
    setattr(error, FAILURE, failure)
    return error
