"""The component: what componentize-py is told to make a component of, and the export that the host calls.

Importing it imports the author's module `activities`, once, when the component is built; a module that does not import
and a hint that JSON cannot stand for fail the build. Nothing here may hold state between calls. It needs the bindings
that exist only in a component, so that no test imports it.
"""

import importlib
import os
import random
import sys
import traceback

from componentize_py_types import Err
from wit_world.exports import activities as wit

from .. import _registry
from ..context import Context
from ..failure import Failure
from . import wasi_http
from .host import ComponentHost
from .logs import to_the_runs_log
from .uncaught import failure_of

MODULE = "activities"

to_the_runs_log()
wasi_http.install()
importlib.import_module(MODULE)
wasi_http.install_into_imported()
_DESCRIBED = [(it.name, it.summary, *it.schemas()) for it in _registry.all_activities()]
if not _DESCRIBED:
    raise TypeError(f"the module {MODULE} has no activity: put @activity on a function")


class Activities:
    """The export `deedbox:activity/activities`."""

    def describe(self) -> list[wit.Descriptor]:
        return [wit.Descriptor(*described) for described in _DESCRIBED]

    def run(self, activity: str, input: str) -> str:
        # Its state came with the component, and would be the same in every run.
        random.seed(os.urandom(32))
        try:
            return _registry.run(Context(ComponentHost()), activity, input)
        except SystemExit as error:
            raise RuntimeError(f"the activity called sys.exit: {error}") from error
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                # Whoever called prints it, and traps: the host shows the end of the run's log.
                raise
            if failure is not error or error.__cause__:
                traceback.print_exception(error)
            raise Err(_written(failure)) from None
        finally:
            sys.stdout.flush()


def _written(failure: Failure) -> wit.Failure:
    kind = wit.FailureKind.RETRYABLE if failure.is_retryable else wit.FailureKind.PERMANENT
    code, message = _unicode(str(failure.code)), _unicode(str(failure.message))
    return wit.Failure(code, message, kind, failure.retry_after_ms, failure.details_json)


def _unicode(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
