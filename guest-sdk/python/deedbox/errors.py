"""Everything that can go wrong with a call, a class for each and a stable code in it.

All are `Failure`s: one that the activity does not catch ends the attempt with its code. Nothing here decides what to do
about an error.
"""

from __future__ import annotations

from typing import ClassVar

from .failure import Failure


class CallError(Failure):
    """A call through the host did not give what was asked. `text` is the host's own reason, or empty."""

    CODE: ClassVar[str] = "call-failed"
    RETRYABLE: ClassVar[bool] = False

    def __init__(self, message: str, text: str = "") -> None:
        super().__init__(self.CODE, message, is_retryable=self.RETRYABLE)
        self.text = text


class Denied(CallError):
    """The deployment does not allow it. Nothing was sent."""

    CODE = "denied"


class EffectMismatch(CallError):
    """The same effect was claimed with another request, or two calls at one place overlap. Nothing was sent."""

    CODE = "effect-mismatch"


class InFlight(CallError):
    """Another attempt or run holds this effect right now. Nothing was sent."""

    CODE = "in-flight"
    RETRYABLE = True


class OutcomeUnknown(CallError):
    """The effect may have happened, and policy forbids sending it again."""

    CODE = "outcome-unknown"


class Unreachable(CallError):
    """The provider could not be reached. Nothing was sent."""

    CODE = "unreachable"
    RETRYABLE = True


class TimedOut(CallError):
    """No whole answer came in time. The effect may have happened."""

    CODE = "timed-out"
    RETRYABLE = True


class ResponseTooLarge(CallError):
    """The answer is larger than the host's limit. It was sent."""

    CODE = "response-too-large"


class InvalidRequest(CallError):
    """The request cannot be sent as it stands. Nothing was sent."""

    CODE = "invalid-request"


class ConnectionLost(CallError):
    """The connection broke after the request was sent. The effect may have happened."""

    CODE = "connection-lost"
    RETRYABLE = True


class BodyNotKept(CallError):
    """The answer was recorded without its body, because it was larger than the host keeps."""

    CODE = "body-not-kept"


class UnexpectedBody(CallError):
    """The body is not what the caller asked for."""

    CODE = "unexpected-body"


class MessageRefused(CallError):
    """The server refused the message."""

    CODE = "message-refused"
    RETRYABLE = True


class WriteFailed(CallError):
    """The file was not written."""

    CODE = "write-failed"
    RETRYABLE = True


class HttpStatus(CallError):
    """The provider answered with a status of 400 or higher; see `Response.error_for_status`."""

    CODE = "http-status"

    def __init__(self, status: int) -> None:
        super().__init__(f"the provider answered with status {status}")
        self.status = status
        self.is_retryable = status in (408, 425, 429) or 500 <= status <= 599
        self.details = {"status": status}


class InvalidName(CallError):
    """A subkey was refused because of its name."""

    CODE = "invalid-name"

    def __init__(self) -> None:
        super().__init__("the name of a subkey has 1 to 256 bytes of UTF-8: choose another name")


class SignalInvalidName(CallError):
    """A signal was not given because of its name."""

    CODE = "signal-invalid-name"

    def __init__(self) -> None:
        super().__init__("the name of a signal has 1 to 128 characters of A-Z a-z 0-9 . _ -: choose another name")


class SignalTooManyCalls(CallError):
    """This attempt has polled and waited more often than the host allows."""

    CODE = "signal-too-many-calls"

    def __init__(self) -> None:
        super().__init__(
            "this attempt has polled and waited more often than the host allows: wait instead of polling in a loop"
        )


class SignalFormat(CallError):
    """The payload of a signal does not have the expected shape."""

    CODE = "signal-format"


class CheckpointTooLarge(CallError):
    """The state is larger than the host allows."""

    CODE = "checkpoint-too-large"

    def __init__(self) -> None:
        super().__init__(
            "the state is larger than the host allows (64 KiB unless the operator set another limit): save less"
        )


class CheckpointFormat(CallError):
    """The state does not have the expected shape."""

    CODE = "checkpoint-format"


_Cases = dict[str, tuple[type[CallError], str]]
_MISMATCH = (EffectMismatch, "{}")
_IN_FLIGHT = (InFlight, "another attempt or run holds this effect right now: try again later")
_HTTP: _Cases = {
    "Denied": (Denied, "the deployment does not allow this call: {}"),
    "EffectMismatch": _MISMATCH,
    "InFlight": _IN_FLIGHT,
    "OutcomeUnknown": (
        OutcomeUnknown,
        "nobody knows whether this effect happened, and policy forbids sending it again: {}",
    ),
    "Unreachable": (Unreachable, "the provider could not be reached: {}"),
    "TimedOut": (TimedOut, "no whole answer came in time"),
    "ResponseTooLarge": (ResponseTooLarge, "the answer is larger than the host's limit of {} bytes"),
    "InvalidRequest": (InvalidRequest, "the request cannot be sent as it stands: {}"),
    "ConnectionLost": (ConnectionLost, "the connection broke after the request was sent: {}"),
}
_MESSAGES: _Cases = {
    "Denied": (Denied, "the deployment does not allow this message: {}"),
    "EffectMismatch": _MISMATCH,
    "InFlight": _IN_FLIGHT,
    "OutcomeUnknown": (
        OutcomeUnknown,
        "nobody knows whether this message was published, and policy forbids sending it again: {}",
    ),
    "Unreachable": (Unreachable, "the server could not be reached: {}"),
    "TimedOut": (TimedOut, "no acknowledgement came in time"),
    "InvalidRequest": (InvalidRequest, "the message cannot be sent as it stands: {}"),
    "Refused": (MessageRefused, "the server refused the message: {}"),
    "ConnectionLost": (ConnectionLost, "the connection broke after the message was sent: {}"),
}
_FILES: _Cases = {
    "Denied": (Denied, "this write is not allowed: {}"),
    "EffectMismatch": _MISMATCH,
    "InFlight": _IN_FLIGHT,
    "InvalidRequest": (InvalidRequest, "the file cannot be written as it stands: {}"),
    "Failed": (WriteFailed, "the file was not written: {}"),
}


def http_error(case: str, text: object = "") -> CallError:
    """The error for a case of the host's interface, by its name there in Python's manner, such as `InFlight`."""
    return _error(_HTTP, case, text)


def message_error(case: str, text: object = "") -> CallError:
    """The same for messages."""
    return _error(_MESSAGES, case, text)


def file_error(case: str, text: object = "") -> CallError:
    """The same for files."""
    return _error(_FILES, case, text)


def _error(cases: _Cases, case: str, text: object) -> CallError:
    kind, message = cases[case]
    return kind(message.format(text), str(text))
