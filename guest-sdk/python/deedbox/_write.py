"""Values of Python as JSON texts. The same value always gives the same bytes, for a body is part of what the ledger
compares; so nothing without an order of its own, such as a set, is written.
"""

from __future__ import annotations

import dataclasses
import json
from datetime import date, datetime
from enum import Enum
from typing import Any
from uuid import UUID


class WriteError(ValueError):
    """A value cannot be written as JSON; the text names the place."""


def to_text(value: Any, place: str) -> str:
    """JSON text of a value of dataclasses, dicts, lists, tuples, enums, dates, UUIDs and what JSON has itself.

    Raises WriteError for anything else.
    """
    try:
        text = json.dumps(_plain(value, place), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except RecursionError:
        raise WriteError(f"{place}: it is nested too deeply, or contains itself") from None
    except UnicodeEncodeError:
        raise WriteError(f"{place}: a text in it is no Unicode: it has half of a surrogate pair") from None
    except ValueError as error:
        raise error if isinstance(error, WriteError) else WriteError(f"{place}: {error}") from None
    return text


def to_bytes(value: Any, place: str) -> bytes:
    """The same as UTF-8."""
    return to_text(value, place).encode()


def member_name(field: dataclasses.Field[Any]) -> str:
    """The name of a dataclass's field in JSON: `field(metadata={"name": "class"})`, or its own."""
    name: str = field.metadata.get("name", field.name)
    return name


def _plain(value: Any, place: str) -> Any:
    match value:
        case Enum():
            return _plain(value.value, place)
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {_name(name, place): _plain(item, f"{place}.{name}") for name, item in value.items()}
        case list() | tuple():
            return [_plain(item, f"{place}[{i}]") for i, item in enumerate(value)]
        case datetime() | date():
            return value.isoformat()
        case UUID():
            return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((member_name(field), getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: _plain(item, f"{place}.{name}") for name, item in fields}
    raise WriteError(f"{place}: a value of type {type(value).__name__} cannot be written as JSON")


def _name(name: Any, place: str) -> str:
    if not isinstance(name, str):
        found = type(name).__name__
        raise WriteError(f"{place}: the names of an object's members are texts, this one is of type {found}")
    return name
