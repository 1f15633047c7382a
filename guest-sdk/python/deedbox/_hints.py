"""From a type hint to its shape. A hint that JSON cannot stand for is refused when the component is built, and the
message names it.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import json
import types
import typing
from enum import Enum
from typing import Any

from ._records import Member, OneOf, Record
from ._shapes import PLAIN, Anything, Choice, Many, ReadError, Row, Shape, Table, enumeration
from ._write import WriteError, member_name, to_text

_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable)
_DICTS = (dict, collections.abc.Mapping)
_records: dict[type, Record] = {}


def shape_of(hint: Any) -> Shape:
    """The shape of a type hint. Raises TypeError for one that has none."""
    hint = _bare(hint)
    if hint in (Any, object):
        return Anything()
    if hint is None:
        return PLAIN[type(None)]
    if isinstance(hint, type) and hint in PLAIN:
        return PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return enumeration(hint)
    if typing.is_typeddict(hint) or (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        return _record(hint)
    return _composed(hint)


def read_text(text: str | bytes, hint: Any, place: str, *, strict: bool) -> Any:
    """A JSON text as a value of that type. Raises ReadError."""
    return shape_of(hint).read(parse(text, place), place, strict)


def parse(text: str | bytes, place: str) -> Any:
    """A JSON text as it is. Raises ReadError."""

    def refuse(name: str) -> Any:
        raise ReadError(place, f"{name} is no JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ReadError(place, "it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ReadError(place, f"it is no JSON: {error}") from None
    except UnicodeDecodeError:
        raise ReadError(place, "it is no UTF-8") from None


def _bare(hint: Any) -> Any:
    """Without what says nothing about the value."""
    while True:
        if typing.get_origin(hint) in (typing.Annotated, typing.Required, typing.NotRequired):
            hint = typing.get_args(hint)[0]
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        else:
            return hint


def _composed(hint: Any) -> Shape:
    origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return OneOf([shape_of(argument) for argument in arguments])
    if origin is typing.Literal:
        return Choice({value: value for value in arguments})
    if origin in _LISTS:
        return Many(shape_of(arguments[0]) if arguments else Anything(), list)
    if origin is tuple:
        return _tuple(arguments)
    if origin in _DICTS:
        name, item = arguments or (str, Any)
        if _bare(name) is not str:
            raise TypeError(f"{hint}: the names of a JSON object's members are texts: write dict[str, ...]")
        return Table(shape_of(item))
    raise TypeError(
        f"{hint} has no form in JSON: use a dataclass, a TypedDict, an Enum, a Literal, list, dict, tuple, str, int, "
        "float, bool, None, datetime, date, UUID, or Any"
    )


def _tuple(arguments: tuple[Any, ...]) -> Shape:
    if not arguments:
        return Many(Anything(), tuple)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return Many(shape_of(arguments[0]), tuple)
    return Row([shape_of(argument) for argument in arguments])


def _record(kind: type) -> Record:
    if kind not in _records:
        make: Any = dict if typing.is_typeddict(kind) else (lambda members: kind(**members))
        record = _records[kind] = Record(kind, make)
        try:
            record.members = _typed_dict(kind) if typing.is_typeddict(kind) else _dataclass(kind)
        except BaseException:
            del _records[kind]
            raise
    return _records[kind]


def _typed_dict(kind: Any) -> dict[str, Member]:
    hints = typing.get_type_hints(kind, include_extras=True)
    required = kind.__required_keys__
    none = dataclasses.MISSING
    return {name: Member(name, shape_of(hint), name in required, none) for name, hint in hints.items()}


def _dataclass(kind: Any) -> dict[str, Member]:
    hints = typing.get_type_hints(kind, include_extras=True)
    members = {}
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        member = Member(field.name, shape_of(hints[field.name]), not has_default, _shown(field.default))
        members[member_name(field)] = member
    return members


def _shown(default: Any) -> Any:
    """A default as the schema shows it, if JSON can."""
    if default is dataclasses.MISSING:
        return default
    try:
        return json.loads(to_text(default, "default"))
    except WriteError:
        return dataclasses.MISSING


__all__ = ["ReadError", "parse", "read_text", "shape_of"]
