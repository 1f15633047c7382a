"""Messages to this run.

What a call here gave is recorded by the host and given again to the same call of every later attempt. It is for what
the outside tells the run; it carries nothing to the outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, overload

from . import errors
from ._hints import ReadError, read_text
from ._host import Host
from .failure import milliseconds

T = TypeVar("T")


@dataclass(frozen=True)
class Signal:
    """One message to the run."""

    name: str
    payload: str
    """A JSON text."""
    sequence: int
    """Its place among all signals of the run, from 1."""

    @overload
    def json(self) -> Any: ...

    @overload
    def json(self, kind: type[T]) -> T: ...

    def json(self, kind: Any = Any) -> Any:
        """The payload, of that type. Members that the type does not have are ignored. Raises SignalFormat."""
        try:
            return read_text(self.payload, kind, "payload", strict=False)
        except ReadError as error:
            raise errors.SignalFormat(f"the payload does not have the expected shape: {error}", str(error)) from None


class Signals:
    """The signals of this run."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def poll(self, name: str) -> Signal | None:
        """The oldest unread signal of that name, if one is here. Raises SignalInvalidName or SignalTooManyCalls."""
        return _signal(name, self._host.poll_signal(name))

    @overload
    def wait(self, name: str) -> Signal: ...

    @overload
    def wait(self, name: str, timeout: None) -> Signal: ...

    @overload
    def wait(self, name: str, timeout: float | timedelta | None) -> Signal | None: ...

    def wait(self, name: str, timeout: float | timedelta | None = None) -> Signal | None:
        """Waits for a signal of that name; with a `timeout`, None when no signal came in time.

        A long wait ends this attempt without spending a retry; the run starts again when the signal is here or the time
        is over, and this call then gives it. The time is counted from the first attempt that waits here, and goes on
        while the run is suspended. Raises as `poll` does.
        """
        timeout_ms = None if timeout is None else min(milliseconds(timeout), 2**63)
        return _signal(name, self._host.wait_signal(name, timeout_ms))


def _signal(name: str, given: tuple[str, int] | None) -> Signal | None:
    return None if given is None else Signal(name, *given)


__all__ = ["Signal", "Signals"]
