"""The register of activities in this component, and the typed call around each.

It turns JSON texts into the author's types and back. An input that does not fit is a permanent failure that names the
place, never an exception of another kind.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, overload

from ._hints import ReadError, parse, shape_of
from ._records import described
from ._shapes import PLAIN, Shape, root_schema
from ._write import WriteError, to_text
from .context import Context
from .failure import Failure

F = TypeVar("F", bound=Callable[..., Any])
_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")
_registered: dict[str, Activity] = {}


@dataclass
class Activity:
    """One activity, as `@activity` registers it."""

    name: str
    summary: str
    function: Callable[..., Any]
    takes_input: bool

    @cached_property
    def input(self) -> Shape:
        """Raises TypeError when the hints do not say what it is."""
        if not self.takes_input:
            return PLAIN[type(None)]
        return shape_of(self._hint(list(inspect.signature(self.function).parameters)[1]))

    @cached_property
    def output(self) -> Shape:
        return shape_of(self._hint("return"))

    def schemas(self) -> tuple[str, str]:
        """JSON Schema texts of the input and the output."""
        return json.dumps(root_schema(self.input)), json.dumps(root_schema(self.output))

    def call(self, context: Context, text: str) -> str:
        """Reads the input, calls the function and writes its output."""
        try:
            value = self.input.read(parse(text, "input"), "input", True)
        except ReadError as error:
            raise Failure.permanent("invalid-input", str(error)) from None
        output = self.function(context, value) if self.takes_input else self.function(context)
        try:
            return to_text(output, "output")
        except WriteError as error:
            message = f"the output cannot be written as JSON: {error}"
            raise Failure.permanent("invalid-output", message) from None

    def _hint(self, parameter: str) -> Any:
        hints = typing.get_type_hints(self.function, include_extras=True)
        if parameter not in hints:
            raise TypeError(f"the activity {self.name} has no type hint for `{parameter}`: write one, if only `Any`")
        return hints[parameter]


@overload
def activity(function: F) -> F: ...


@overload
def activity(*, name: str | None = None, summary: str | None = None) -> Callable[[F], F]: ...


def activity(function: F | None = None, *, name: str | None = None, summary: str | None = None) -> Any:
    """Makes a function an activity: `def charge_once(ctx: Context, order: Order) -> Receipt`, or without an input.

    Its name is the function's with `-` for `_`, its summary the first paragraph of what is written about it. The type
    hints say what input is taken; one that does not fit ends the run with `invalid-input`. The function itself stays
    as it is, so that tests and other code call it as any other.
    """

    def register(it: F) -> F:
        _register(it, name or it.__name__.replace("_", "-"), described(it) if summary is None else summary)
        return it

    return register if function is None else register(function)


def all_activities() -> list[Activity]:
    """Every activity of this component, by name."""
    return [_registered[name] for name in sorted(_registered)]


def run(context: Context, name: str, text: str) -> str:
    """Runs the activity of that name on a JSON text, and gives its output as JSON text."""
    found = _registered.get(name)
    if found is None:
        message = f'this module has no activity "{name}"; it has: {", ".join(sorted(_registered))}'
        raise Failure.permanent("unknown-activity", message)
    return found.call(context, text)


def _register(function: Callable[..., Any], name: str, summary: str) -> None:
    if not _NAME.fullmatch(name):
        raise TypeError(f"{name!r} cannot be the name of an activity: it has 1 to 128 characters of A-Z a-z 0-9 . _ -")
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"the activity {name} is an async function: write a plain one, a component has no event loop")
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = list(inspect.signature(function).parameters.values())
    if len(parameters) not in (1, 2) or any(it.kind not in kinds for it in parameters):
        raise TypeError(f"the activity {name} takes the context and at most one input: put more into a dataclass")
    other = _registered.get(name)
    if other and _place(other.function) != _place(function):
        raise TypeError(f"two activities are called {name}: {_place(other.function)} and {_place(function)}")
    _registered[name] = Activity(name, summary, function, len(parameters) == 2)


def _place(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"
