"""What an exception that the activity did not catch says to the host. One that nothing is known about stays an
exception: it ends the attempt as a trap, with its traceback in the run's log.
"""

import json
import urllib.error

from .. import errors
from ..failure import Failure

FAILURE = "deedbox_failure"
"""The attribute by which an error of an HTTP client carries its failure."""


def failure_of(error: BaseException) -> Failure | None:
    """The failure that it stands for, or None."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, RecursionError):
        return Failure.retryable("stack-overflow", f"RecursionError: {error}")
    if isinstance(error, urllib.error.HTTPError):
        return errors.HttpStatus(error.code)
    if isinstance(error, json.JSONDecodeError):
        return Failure.permanent("invalid-json", str(error))
    return _carried(error)


def _carried(error: BaseException) -> Failure | None:
    """From the error itself or one that it wraps, as clients do."""
    seen: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        it = waiting.pop(0)
        if isinstance(it, BaseException) and it not in seen:
            carried = getattr(it, FAILURE, None)
            if isinstance(carried, Failure):
                return carried
            seen.append(it)
            waiting += [getattr(it, "reason", None), it.__cause__, it.__context__, *it.args]
    return None
