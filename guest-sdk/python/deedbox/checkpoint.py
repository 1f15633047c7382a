"""A small note from one attempt to the next attempt of the same run.

It is for progress, not for effects: the ledger alone remembers what was sent.
"""

from __future__ import annotations

from typing import Any, TypeVar, overload

from . import errors
from ._hints import ReadError, read_text
from ._host import Host
from ._write import WriteError, to_bytes

T = TypeVar("T")


class Checkpoint:
    """The saved state of this run. It holds one value: saving replaces it."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def save(self, state: Any) -> None:
        """Replaces the saved state by `state` as JSON. Durable once it returns. Raises CheckpointTooLarge, or
        CheckpointFormat when it cannot be written.
        """
        try:
            self._host.save(to_bytes(state, "state"))
        except WriteError as error:
            raise _format(error) from None

    @overload
    def load(self) -> Any: ...

    @overload
    def load(self, kind: type[T]) -> T | None: ...

    def load(self, kind: Any = Any) -> Any:
        """The state saved last, by this or an earlier attempt; None when there is none. Raises CheckpointFormat when it
        has another shape.
        """
        state = self._host.load()
        try:
            return None if state is None else read_text(state, kind, "state", strict=False)
        except ReadError as error:
            raise _format(error) from None

    def save_bytes(self, state: bytes) -> None:
        """Replaces the saved state by these bytes."""
        self._host.save(bytes(state))

    def load_bytes(self) -> bytes | None:
        """The bytes saved last."""
        return self._host.load()


def _format(error: ValueError) -> errors.CheckpointFormat:
    return errors.CheckpointFormat(f"the state does not have the expected shape: {error}", str(error))


__all__ = ["Checkpoint"]
