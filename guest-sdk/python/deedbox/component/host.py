"""The real host: the imports of the component behind `Host`. It only translates."""

from collections.abc import Callable
from typing import Any, TypeVar

from componentize_py_types import Err
from wit_world.imports import checkpoint, context, files, http, idempotency, messaging, signals

from .. import errors
from .._host import (
    Business,
    Condition,
    Identity,
    Lookup,
    Named,
    OnUnknown,
    Options,
    Published,
    Received,
    Request,
    Run,
    Source,
    Written,
)
from ..failure import Failure, milliseconds

T = TypeVar("T")


class ComponentHost:
    """What the host of this component offers."""

    def idempotency_key(self) -> str:
        return idempotency.idempotency_key()

    def subkey(self, name: str) -> str:
        return _call(lambda _: errors.InvalidName(), idempotency.subkey, name)

    def run_info(self) -> Run:
        it = context.run()
        return Run(it.tenant, it.run_id, it.activity, it.attempt, it.max_attempts, it.remaining_ms)

    def cancelled(self) -> bool:
        return context.cancelled()

    def send(self, request: Request, options: Options) -> Received:
        lookup = None if options.lookup is None else _lookup(options.lookup)
        chosen = http.Options(_identity(options.identity), _on_unknown(options.on_unknown), lookup)
        got = _call(_http_error, http.send, _request(request), chosen)
        body = got.body.value if isinstance(got.body, http.Body_Bytes) else None
        return Received(got.status, got.headers, body, _source(got.source), got.effect_id)

    def publish(self, subject: str, payload: bytes, headers: list[tuple[str, str]], options: Options) -> Published:
        chosen = messaging.Options(_identity(options.identity), _on_unknown(options.on_unknown), headers)
        it = _call(_message_error, messaging.publish, subject, payload, chosen)
        return Published(it.stream, it.sequence, it.duplicate, it.message_id, _source(it.source), it.effect_id)

    def write(self, path: str, data: bytes, identity: Identity) -> Written:
        it = _call(_file_error, files.write, path, data, _identity(identity))
        return Written(_source(it.source), it.effect_id)

    def append(self, path: str, data: bytes) -> None:
        _call(_file_error, files.append, path, data)

    def poll_signal(self, name: str) -> tuple[str, int] | None:
        return _given(_call(_signal_error, signals.poll, name))

    def wait_signal(self, name: str, timeout_ms: int | None) -> tuple[str, int] | None:
        return _given(_call(_signal_error, signals.wait, name, timeout_ms))

    def save(self, state: bytes) -> None:
        _call(lambda _: errors.CheckpointTooLarge(), checkpoint.save, state)

    def load(self) -> bytes | None:
        return checkpoint.load()


def _call(error_of: Callable[[Any], Failure], function: Callable[..., T], *arguments: Any) -> T:
    try:
        return function(*arguments)
    except Err as error:
        raise error_of(error.value) from None


def _request(it: Request) -> http.Request:
    return http.Request(it.method, it.url, it.headers, it.body, it.timeout_ms)


def _lookup(it: Lookup) -> http.Lookup:
    headers = [(name, value.encode()) for name, value in it.headers.items()]
    request = http.Request("GET", it.url, headers, b"", None)
    return http.Lookup(request, _condition(it.found), _condition(it.absent), milliseconds(it.settle))


def _condition(it: Condition) -> http.Condition:
    return http.Condition(list(it.statuses), it.pointer, it.equals)


def _identity(it: Identity) -> http.Identity:
    match it:
        case Named():
            return http.Identity_Named(it.name)
        case Business():
            return http.Identity_Business(http.BusinessKey(it.operation, it.key))
    return http.Identity_Positional()


def _on_unknown(it: OnUnknown) -> http.OnUnknown:
    return http.OnUnknown[it.name]


def _source(it: http.Source) -> Source:
    return Source[it.name]


def _given(it: signals.Signal | None) -> tuple[str, int] | None:
    return None if it is None else (it.payload, it.sequence)


def _signal_error(error: signals.SignalError) -> Failure:
    if error is signals.SignalError.INVALID_NAME:
        return errors.SignalInvalidName()
    return errors.SignalTooManyCalls()


def _case(error: Any) -> tuple[str, Any]:
    """The name of the case, as the generated class has it, and what it holds."""
    return type(error).__name__.removeprefix("Error_"), getattr(error, "value", "")


def _http_error(error: Any) -> Failure:
    name, text = _case(error)
    return errors.http_error(name, text)


def _message_error(error: Any) -> Failure:
    name, text = _case(error)
    return errors.message_error(name, text)


def _file_error(error: Any) -> Failure:
    name, text = _case(error)
    return errors.file_error(name, text)
