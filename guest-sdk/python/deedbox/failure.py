"""How an activity says that this attempt did not succeed, and whether another one may.

A business rejection is no failure: return it as a value. A failure must never carry a secret, for it is recorded and
shown.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Self

from ._write import to_text


class Failure(Exception):
    """The end of an attempt without a value. Make one with `Failure.retryable` or `Failure.permanent`, and raise it."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        is_retryable: bool,
        retry_after: float | timedelta | None = None,
        details: Any = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.is_retryable = is_retryable
        self.retry_after = retry_after
        self.details = details

    @classmethod
    def retryable(
        cls, code: str, message: str, *, retry_after: float | timedelta | None = None, details: Any = None
    ) -> Failure:
        """Another attempt may succeed; the retry policy decides whether there is one.

        `code` is a stable word for programs, `message` a sentence for people. `retry_after` (seconds or a timedelta) is
        the earliest time for the next attempt, counted from now; the host caps it. `details` is anything that can be
        written as JSON.
        """
        return Failure(code, message, is_retryable=True, retry_after=retry_after, details=details)

    @classmethod
    def permanent(cls, code: str, message: str, *, details: Any = None) -> Failure:
        """No further attempt is made."""
        return Failure(code, message, is_retryable=False, details=details)

    @property
    def retry_after_ms(self) -> int | None:
        """The wish for the next attempt in whole milliseconds."""
        return None if self.retry_after is None else milliseconds(self.retry_after)

    @property
    def details_json(self) -> str | None:
        """The details as JSON text; the reason in their place when they cannot be written."""
        if self.details is None:
            return None
        try:
            return to_text(self.details, "details")
        except ValueError as error:
            return to_text({"unwritable": str(error)}, "details")

    def because(self, cause: BaseException) -> Self:
        """The same, with what led to it for the traceback."""
        self.__cause__ = cause
        return self


def milliseconds(time: float | timedelta) -> int:
    """Seconds or a timedelta in milliseconds, rounded up. Raises ValueError for one below zero or not finite."""
    seconds = time.total_seconds() if isinstance(time, timedelta) else float(time)
    if not 0 <= seconds < float("inf"):
        raise ValueError("a time in seconds is finite and not below zero")
    return -int(-seconds * 1000 // 1)
