"""Objects with known members, and values of one of several types: dataclasses, TypedDicts, unions.

A dataclass may check itself in `__post_init__`: a ValueError raised there is told at the place of the object.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from ._shapes import Choice, Definitions, ReadError, Schema, Shape, mismatch


@dataclasses.dataclass
class Member:
    """One member of an object. `attribute` is its name in Python, `default` may be `dataclasses.MISSING`."""

    attribute: str
    shape: Shape
    required: bool
    default: Any


class Record:
    """An object with known members. They are filled in after it is made, for a type may contain itself."""

    def __init__(self, kind: type, make: Callable[[dict[str, Any]], Any]) -> None:
        self.kind, self._make = kind, make
        self.members: dict[str, Member] = {}
        self.name = f"an object ({kind.__name__})"

    def read(self, value: Any, place: str, strict: bool) -> Any:
        if type(value) is not dict:
            raise mismatch(place, self.name, value)
        missing = [name for name, member in self.members.items() if member.required and name not in value]
        if missing:
            raise ReadError(place, f"the member {_quoted(missing)} is missing")
        unknown = [name for name in value if name not in self.members]
        if strict and unknown:
            raise ReadError(place, f"the member {_quoted(unknown)} is not known; known are {_quoted(self.members)}")
        there = ((name, member) for name, member in self.members.items() if name in value)
        made = {it.attribute: it.shape.read(value[name], f"{place}.{name}", strict) for name, it in there}
        try:
            return self._make(made)
        except ValueError as error:
            raise ReadError(place, str(error)) from None

    def schema(self, definitions: Definitions) -> Schema:
        return definitions.refer(self.kind, self.kind.__name__, lambda: self._body(definitions))

    def fits_tag(self, value: Any) -> bool:
        """True when a member that can only be one of a few values is there and is one of them."""
        choices = ((name, it.shape) for name, it in self.members.items() if isinstance(it.shape, Choice))
        known = [(name, shape) for name, shape in choices if name in value]
        return bool(known) and all(value[name] in shape.values for name, shape in known)

    def _body(self, definitions: Definitions) -> Schema:
        properties = {}
        for name, member in self.members.items():
            properties[name] = dict(member.shape.schema(definitions))
            if member.default is not dataclasses.MISSING:
                properties[name]["default"] = member.default
        body: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        required = [name for name, member in self.members.items() if member.required]
        if required:
            body["required"] = required
        told = described(self.kind)
        return {"description": told, **body} if told else body


class OneOf:
    """A value of one of several types, tried in their order."""

    def __init__(self, choices: list[Shape]) -> None:
        self._choices = choices
        self.name = " or ".join(choice.name for choice in choices)

    def read(self, value: Any, place: str, strict: bool) -> Any:
        others = [choice for choice in self._choices if choice.name != "null"]
        if value is None and len(others) < len(self._choices):
            return None
        if type(value) is dict:
            tagged: list[Shape] = [it for it in others if isinstance(it, Record) and it.fits_tag(value)]
            others = tagged or others
        if len(others) == 1:
            return others[0].read(value, place, strict)
        for choice in others:
            try:
                return choice.read(value, place, strict)
            except ReadError:
                continue
        raise ReadError(place, f"expected {self.name}")

    def schema(self, definitions: Definitions) -> Schema:
        schemas = [choice.schema(definitions) for choice in self._choices]
        if all(set(schema) == {"type"} for schema in schemas):
            return {"type": [schema["type"] for schema in schemas]}
        return {"anyOf": schemas}


def described(kind: Any) -> str:
    """The first paragraph of what the author says about it, in one line."""
    text = inspect.cleandoc(kind.__doc__ or "")
    # A dataclass without words gets its signature for them.
    if dataclasses.is_dataclass(kind) and text.startswith(f"{getattr(kind, '__name__', '')}("):
        return ""
    return " ".join(text.split("\n\n")[0].split())


def _quoted(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
