"""What a type hint asks of a JSON value: the value read and checked, and a JSON Schema that says the same.

An error names the place and never the value, for inputs and answers may hold what nobody else should see.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from enum import Enum
from typing import Any, Protocol
from uuid import UUID

Schema = dict[str, Any]


class ReadError(ValueError):
    """A JSON value does not fit its type; the text names the place."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place}: {why}")


class Shape(Protocol):
    """A type hint, understood."""

    @property
    def name(self) -> str:
        """In a message: `expected NAME`."""

    def read(self, value: Any, place: str, strict: bool) -> Any:
        """The value as the type hint has it. `strict` refuses unknown members. Raises ReadError."""

    def schema(self, definitions: Definitions) -> Schema:
        """What says the same as a JSON Schema."""


class Definitions:
    """The named parts of one schema."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}
        self._names: dict[int, str] = {}

    def refer(self, key: object, name: str, make: Callable[[], Schema]) -> Schema:
        """A reference to the part of that key, which is made when it is not there yet."""
        if id(key) not in self._names:
            free = next(it for it in _numbered(name) if it not in self.schemas)
            self._names[id(key)] = free
            self.schemas[free] = {}
            self.schemas[free] = make()
        return {"$ref": f"#/$defs/{self._names[id(key)]}"}


def root_schema(shape: Shape) -> Schema:
    """A whole schema, draft 2020-12."""
    definitions = Definitions()
    root = shape.schema(definitions)
    parts = definitions.schemas
    reference = root.get("$ref", "")
    if reference and json.dumps([root, parts]).count(f'"{reference}"') == 1:
        root = parts.pop(reference.removeprefix("#/$defs/"))
    head: Schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**head, **root, **({"$defs": parts} if parts else {})}


class Anything:
    """Any value, as it is."""

    name = "anything"

    def read(self, value: Any, place: str, strict: bool) -> Any:
        return value

    def schema(self, definitions: Definitions) -> Schema:
        return {}


class Plain:
    """One of the types that JSON has itself."""

    def __init__(self, kind: type, name: str, schema_type: str) -> None:
        self.kind, self.name, self._type = kind, name, schema_type

    def read(self, value: Any, place: str, strict: bool) -> Any:
        # True is an int in Python, and no number in JSON.
        if self.kind is float and type(value) is int:
            try:
                return float(value)
            except OverflowError:
                raise ReadError(place, "the number is too large") from None
        if type(value) is not self.kind:
            raise mismatch(place, self.name, value)
        if isinstance(value, str):
            _check_unicode(value, place)
        return value

    def schema(self, definitions: Definitions) -> Schema:
        return {"type": self._type}


class Formatted:
    """A type of Python that is a text in JSON."""

    def __init__(self, kind: type, name: str, form: str, parse: Callable[[str], Any]) -> None:
        self.kind, self.name, self._form, self._parse = kind, name, form, parse

    def read(self, value: Any, place: str, strict: bool) -> Any:
        if type(value) is not str:
            raise mismatch(place, self.name, value)
        try:
            return self._parse(value)
        except ValueError:
            raise ReadError(place, f"expected {self.name}") from None

    def schema(self, definitions: Definitions) -> Schema:
        return {"type": "string", "format": self._form}


PLAIN: dict[Any, Shape] = {
    type(None): Plain(type(None), "null", "null"),
    bool: Plain(bool, "a boolean", "boolean"),
    int: Plain(int, "an integer", "integer"),
    float: Plain(float, "a number", "number"),
    str: Plain(str, "a text", "string"),
    datetime: Formatted(datetime, "a date and time of ISO 8601", "date-time", datetime.fromisoformat),
    date: Formatted(date, "a date of ISO 8601", "date", date.fromisoformat),
    UUID: Formatted(UUID, "a UUID", "uuid", UUID),
}


class Choice:
    """One of a few values: a Literal or an Enum."""

    def __init__(self, values: dict[Any, Any], key: object = None, title: str = "") -> None:
        self.values, self._key, self._title = values, key, title
        self.name = "one of " + ", ".join(json.dumps(value) for value in values)

    def read(self, value: Any, place: str, strict: bool) -> Any:
        for known, made in self.values.items():
            if type(value) is type(known) and value == known:
                return made
        raise ReadError(place, f"expected {self.name}")

    def schema(self, definitions: Definitions) -> Schema:
        inline: Schema = {"enum": list(self.values)}
        return definitions.refer(self._key, self._title, lambda: inline) if self._title else inline


def enumeration(kind: type[Enum]) -> Choice:
    """The members of an Enum, by their values."""
    return Choice({member.value: member for member in kind}, kind, kind.__name__)


class Many:
    """A list, or a tuple of any length."""

    def __init__(self, item: Shape, kind: Callable[[list[Any]], Any]) -> None:
        self.name = "a list"
        self._item, self._kind = item, kind

    def read(self, value: Any, place: str, strict: bool) -> Any:
        if type(value) is not list:
            raise mismatch(place, self.name, value)
        return self._kind([self._item.read(item, f"{place}[{i}]", strict) for i, item in enumerate(value)])

    def schema(self, definitions: Definitions) -> Schema:
        items = self._item.schema(definitions)
        return {"type": "array", **({"items": items} if items else {})}


class Row:
    """A tuple of as many items as it has types."""

    def __init__(self, items: list[Shape]) -> None:
        self.name = f"a list of {len(items)}"
        self._items = items

    def read(self, value: Any, place: str, strict: bool) -> Any:
        if type(value) is not list or len(value) != len(self._items):
            raise mismatch(place, self.name, value)
        pairs = zip(self._items, value, strict=True)
        return tuple(shape.read(item, f"{place}[{i}]", strict) for i, (shape, item) in enumerate(pairs))

    def schema(self, definitions: Definitions) -> Schema:
        count = len(self._items)
        items = [item.schema(definitions) for item in self._items]
        return {"type": "array", "prefixItems": items, "minItems": count, "maxItems": count}


class Table:
    """A dict from texts."""

    def __init__(self, item: Shape) -> None:
        self.name = "an object"
        self._item = item

    def read(self, value: Any, place: str, strict: bool) -> Any:
        if type(value) is not dict:
            raise mismatch(place, self.name, value)
        return {name: self._item.read(item, f"{place}.{name}", strict) for name, item in value.items()}

    def schema(self, definitions: Definitions) -> Schema:
        items = self._item.schema(definitions)
        return {"type": "object", **({"additionalProperties": items} if items else {})}


def mismatch(place: str, name: str, value: Any) -> ReadError:
    """The error for a value of another kind."""
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", int: "an integer", float: "a number"}
    return ReadError(place, f"expected {name}, found {kinds.get(type(value), 'null')}")


def _check_unicode(value: str, place: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ReadError(place, "the text is no Unicode: it has half of a surrogate pair") from None


def _numbered(name: str) -> Any:
    yield name
    number = 2
    while True:
        yield f"{name}{number}"
        number += 1
