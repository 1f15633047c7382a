"""Write Deedbox activities in Python.

An activity is an ordinary function with `@activity`. What it changes in the outside world it changes through
`Context.http`, `Context.messages` and `Context.files`, where the host claims each effect before it is made and answers
it from the record when the activity runs again. This package holds no policy and keeps no record of its own: it only
gives the host's interface the shape of Python.
"""

from . import errors
from ._host import Condition, Lookup, OnUnknown, Published, Run, Source, Written
from ._registry import activity
from .context import Context
from .failure import Failure
from .http import Response
from .signals import Signal

__all__ = [
    "Condition",
    "Context",
    "Failure",
    "Lookup",
    "OnUnknown",
    "Published",
    "Response",
    "Run",
    "Signal",
    "Source",
    "Written",
    "activity",
    "errors",
]
