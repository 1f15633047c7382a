"""What type hints ask of a JSON text, and what is said about one that does not fit. F-J04."""

import json
import unittest
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Literal, NewType, NotRequired, Optional, TypedDict
from uuid import UUID

from deedbox._hints import ReadError, read_text, shape_of
from deedbox._shapes import root_schema
from deedbox._write import WriteError, to_text

Cents = NewType("Cents", int)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Place(TypedDict):
    city: str
    zip: NotRequired[str]


@dataclass
class Line:
    amount: Cents
    tags: list[str] = field(default_factory=list)


@dataclass
class Order:
    """An order.

    With more words.
    """

    order: str
    lines: list[Line]
    colour: Colour = Colour.RED
    place: Place | None = None
    kind: Literal["a", "b"] = "a"
    extra: dict[str, float] = field(default_factory=dict)
    class_: str = field(default="", metadata={"name": "class"})

    def __post_init__(self) -> None:
        if not self.order:
            raise ValueError("an order has a number")


@dataclass
class Tree:
    name: str
    children: list["Tree"] = field(default_factory=list)


@dataclass
class Card:
    number: str
    means: Literal["card"] = "card"


@dataclass
class Bank:
    iban: str
    means: Literal["bank"] = "bank"


def read(text: str, hint: Any, strict: bool = True) -> Any:
    return read_text(text, hint, "input", strict=strict)


class Reading(unittest.TestCase):
    def refused(self, text: str, hint: Any, message: str) -> None:
        with self.assertRaises(ReadError) as caught:
            read(text, hint)
        self.assertEqual(str(caught.exception), message)

    def test_members_in_any_order_become_what_the_hints_say(self) -> None:
        text = '{"place": {"city": "X"}, "class": "k", "colour": "blue", "lines": [{"amount": 5}], "order": "42"}'
        expected = Order("42", [Line(Cents(5))], Colour.BLUE, {"city": "X"}, class_="k")
        self.assertEqual(read(text, Order), expected)
        self.assertEqual(json.loads(to_text(expected, "output"))["class"], "k")

    def test_an_error_names_the_place_and_not_the_value(self) -> None:
        line = '{"order": "1", "lines": [{"amount": 1}, {"amount": %s}]}'
        self.refused(line % '"secret"', Order, "input.lines[1].amount: expected an integer, found a text")
        self.refused(line % "true", Order, "input.lines[1].amount: expected an integer, found a boolean")
        self.refused(line % "1.0", Order, "input.lines[1].amount: expected an integer, found a number")
        self.refused(line % "null", Order, "input.lines[1].amount: expected an integer, found null")
        self.refused('{"lines": []}', Order, "input: the member `order` is missing")
        self.refused("[]", Order, "input: expected an object (Order), found a list")
        self.refused('{"city": 1}', Place, "input.city: expected a text, found an integer")
        self.refused('{"a": {"b": 1}}', dict[str, dict[str, str]], "input.a.b: expected a text, found an integer")
        self.refused('"green"', Colour, 'input: expected one of "red", "blue"')
        self.refused("1", Literal["a", 2], 'input: expected one of "a", 2')

    def test_an_unknown_member_of_an_input_is_named_and_one_of_an_answer_passed_over(self) -> None:
        known = "known are `number`, `means`"
        self.refused('{"number": "1", "cvc": "2"}', Card, f"input: the member `cvc` is not known; {known}")
        self.assertEqual(read('{"number": "1", "cvc": "2"}', Card, strict=False), Card("1"))

    def test_an_object_may_check_itself(self) -> None:
        self.refused('{"order": "", "lines": []}', Order, "input: an order has a number")

    def test_one_of_several_types_is_found_by_its_tag_or_by_trying(self) -> None:
        self.assertEqual(read('{"means": "bank", "iban": "x"}', Card | Bank), Bank("x"))
        self.refused('{"means": "bank"}', Card | Bank, "input: the member `iban` is missing")
        self.assertEqual(read('"x"', int | str), "x")
        self.refused("1.5", int | str, "input: expected an integer or a text")
        self.refused('"x"', Optional[int], "input: expected an integer, found a text")
        self.assertIsNone(read("null", Optional[Card]))

    def test_numbers_texts_and_times_are_read_exactly(self) -> None:
        self.assertEqual(read("123456789012345678901234567890", int), 123456789012345678901234567890)
        self.assertEqual((read("1", float), type(read("1", float))), (1.0, float))
        self.assertEqual(read('"2026-01-02"', date), date(2026, 1, 2))
        self.assertEqual(read('"2026-01-02T03:04:05Z"', datetime).utcoffset().total_seconds(), 0)
        self.assertEqual(read('"0197f3a4-5b6c-7d8e-9f01-23456789abcd"', UUID).version, 7)
        self.refused('"soon"', date, "input: expected a date of ISO 8601")
        self.refused('"\\ud800"', str, "input: the text is no Unicode: it has half of a surrogate pair")

    def test_lists_and_tuples_have_the_length_that_is_asked_for(self) -> None:
        self.assertEqual(read("[1, 2]", tuple[int, ...]), (1, 2))
        self.assertEqual(read('[1, "a"]', tuple[int, str]), (1, "a"))
        self.refused("[1]", tuple[int, str], "input: expected a list of 2, found a list")
        self.assertEqual(read('[1, {"a": null}]', Annotated[list, "any"]), [1, {"a": None}])

    def test_what_is_no_json_is_said_to_be_none(self) -> None:
        why = "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
        self.refused("{", dict, f"input: it is no JSON: {why}")
        self.refused("[NaN]", list, "input: NaN is no JSON")
        self.refused("[" * 100_000, list, "input: it is nested too deeply")

    def test_a_hint_without_a_form_in_json_is_refused_with_what_to_use(self) -> None:
        for hint in (set[int], bytes, complex, dict[int, str]):
            with self.subTest(hint), self.assertRaisesRegex(TypeError, "use a dataclass|write dict"):
                shape_of(hint)


class Schemas(unittest.TestCase):
    def test_a_schema_says_what_is_read(self) -> None:
        schema = root_schema(shape_of(Order))
        self.assertEqual(schema["description"], "An order.")
        self.assertEqual(schema["required"], ["order", "lines"])
        self.assertFalse(schema["additionalProperties"])
        self.assertEqual(schema["properties"]["lines"], {"type": "array", "items": {"$ref": "#/$defs/Line"}})
        self.assertEqual(schema["properties"]["kind"], {"enum": ["a", "b"], "default": "a"})
        self.assertEqual(schema["properties"]["colour"], {"$ref": "#/$defs/Colour", "default": "red"})
        self.assertEqual(schema["$defs"]["Place"]["required"], ["city"])

    def test_a_type_that_contains_itself_has_a_schema(self) -> None:
        schema = root_schema(shape_of(Tree))
        self.assertEqual(schema["$ref"], "#/$defs/Tree")
        children = schema["$defs"]["Tree"]["properties"]["children"]
        self.assertEqual(children["items"], {"$ref": "#/$defs/Tree"})
        self.assertEqual(read('{"name": "a", "children": [{"name": "b"}]}', Tree).children[0].name, "b")

    def test_two_types_of_one_name_have_two_schemas(self) -> None:
        @dataclass
        class Line:
            other: int

        schema = root_schema(shape_of(tuple[Line, Order]))
        self.assertEqual(set(schema["$defs"]), {"Line", "Order", "Line2", "Colour", "Place"})


class Writing(unittest.TestCase):
    def test_a_value_that_json_does_not_have_is_refused_at_its_place(self) -> None:
        cases: list[tuple[Any, str]] = [({"a": [set()]}, "output.a[0]"), ({1: 2}, "output"), ([b"x"], "output[0]")]
        for value, place in cases:
            with self.subTest(place), self.assertRaises(WriteError) as caught:
                to_text(value, "output")
            self.assertTrue(str(caught.exception).startswith(f"{place}: "), caught.exception)
        circle: list[Any] = []
        circle.append(circle)
        for value in (float("nan"), "\ud800", circle):
            with self.assertRaises(WriteError):
                to_text(value, "output")

    def test_the_same_value_is_the_same_text(self) -> None:
        value = {"b": 1, "a": [Colour.RED, UUID(int=1), date(2026, 1, 2), "é"]}
        written = '{"b":1,"a":["red","00000000-0000-0000-0000-000000000001","2026-01-02","é"]}'
        self.assertEqual(to_text(value, "output"), written)
