"""Activities against the fake context."""

import json
import unittest
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from deedbox import Condition, Context, Failure, Lookup, OnUnknown, Source, activity, errors
from deedbox._host import Business, Named, Positional
from deedbox._registry import all_activities
from deedbox.testing import Answer, FakeContext

RUN = "0190b1c2-0000-7000-8000-000000000001"
URL = "http://p.test/x"


@dataclass
class Receipt:
    id: str


@activity
def order_it(ctx: Context, order: str) -> Receipt:
    """Orders it.

    More about it.
    """
    return ctx.http.post(URL, json={"order": order}).error_for_status().json(Receipt)


@activity(name="Say.nothing_1", summary="Says nothing")
def say_nothing(ctx: Context) -> None: ...


@activity
def unwritable(ctx: Context) -> Any:
    return {"a": object()}


class Registering(unittest.TestCase):
    def test_every_activity_is_described_with_its_schemas(self) -> None:
        found = {it.name: it for it in all_activities()}
        self.assertEqual(found["order-it"].summary, "Orders it.")
        self.assertEqual(found["Say.nothing_1"].summary, "Says nothing")
        self.assertEqual(json.loads(found["order-it"].schemas()[0])["type"], "string")
        self.assertEqual(json.loads(found["Say.nothing_1"].schemas()[0])["type"], "null")

    def test_what_cannot_be_an_activity_is_refused_when_it_is_declared(self) -> None:
        async def later(ctx: Context) -> None: ...

        def three(ctx: Context, a: int, b: int) -> None: ...

        def none() -> None: ...

        for function in (later, three, none):
            with self.subTest(function.__name__), self.assertRaises(TypeError):
                activity(function)
        with self.assertRaisesRegex(TypeError, "two activities are called order-it"):
            activity(name="order-it")(unwritable)
        with self.assertRaisesRegex(TypeError, "name of an activity"):
            activity(name="a b")(unwritable)

    def test_a_missing_hint_is_named(self) -> None:
        def untyped(ctx: Context, value) -> None: ...  # type: ignore[no-untyped-def]

        activity(untyped)
        with self.assertRaisesRegex(TypeError, "untyped has no type hint for `value`"):
            next(it for it in all_activities() if it.name == "untyped").schemas()


class Running(unittest.TestCase):
    def setUp(self) -> None:
        self.ctx = FakeContext(RUN)

    def failing(self, name: str, text: str) -> Failure:
        with self.assertRaises(Failure) as caught:
            self.ctx.run_named(name, text)
        return caught.exception

    def test_an_activity_runs_by_its_name_on_json(self) -> None:
        self.ctx.answer(Answer(json={"id": "r1", "more": True}))
        self.assertEqual(self.ctx.run_named("order-it", '"42"'), '{"id":"r1"}')
        self.assertEqual(self.ctx.run_named("Say.nothing_1", "null"), "null")

    def test_what_does_not_fit_is_a_permanent_failure_that_names_the_place(self) -> None:
        cases = (
            ("order-it", "5", "invalid-input", "input: expected a text, found an integer"),
            ("Say.nothing_1", "{}", "invalid-input", "input: expected null, found an object"),
            ("unwritable", "null", "invalid-output", "output.a"),
            ("missing", "null", "unknown-activity", "it has: Say.nothing_1"),
        )
        for name, text, code, words in cases:
            failure = self.failing(name, text)
            self.assertEqual((failure.code, failure.is_retryable), (code, False))
            self.assertIn(words, failure.message)

    def test_an_error_of_a_call_ends_the_attempt_with_its_code(self) -> None:
        self.ctx.answer(Answer.error(errors.http_error("InFlight")), Answer(503), Answer(404), Answer(json={}))
        found = [self.failing("order-it", '"42"') for _ in range(4)]
        codes = [(failure.code, failure.is_retryable) for failure in found]
        expected = [("in-flight", True), ("http-status", True), ("http-status", False), ("unexpected-body", False)]
        self.assertEqual(codes, expected)
        self.assertEqual(found[1].details_json, '{"status":503}')
        self.assertIn("body: the member `id` is missing", found[3].message)

    def test_a_request_without_an_answer_is_named(self) -> None:
        with self.assertRaisesRegex(AssertionError, "no answer for POST http://p.test/x"):
            order_it(self.ctx, "42")


class Http(unittest.TestCase):
    def setUp(self) -> None:
        self.ctx = FakeContext(RUN)

    def sent(self, **options: Any) -> Any:
        self.ctx.answer(Answer())
        self.ctx.http.post(URL, **options)
        return self.ctx.sent[-1]

    def test_an_effect_is_told_apart_as_the_call_says(self) -> None:
        self.assertEqual(self.sent().identity, Positional())
        self.assertEqual(self.sent(effect="pay").identity, Named("pay"))
        self.assertEqual(self.sent(business_effect=("pay", "42")).identity, Business("pay", "42"))
        with self.assertRaisesRegex(ValueError, "one identity"):
            self.sent(effect="pay", business_effect=("pay", "42"))
        self.assertEqual(self.sent().on_unknown, OnUnknown.PROVIDER_DEFAULT)
        self.assertEqual(self.sent(on_unknown="at-most-once").on_unknown, OnUnknown.AT_MOST_ONCE)
        with self.assertRaises(ValueError):
            self.sent(on_unknown="never")
        lookup = Lookup("http://p.test/y", Condition((200,), "/id"), Condition((404,)), settle=5)
        self.assertEqual(self.sent(lookup=lookup).lookup, lookup)

    def test_a_body_has_its_type_unless_one_is_given(self) -> None:
        sent = self.sent(json={"a": "é"})
        self.assertEqual((sent.body, sent.header("Content-Type")), ('{"a":"é"}'.encode(), "application/json"))
        self.assertEqual(self.sent(json=[], headers={"Content-Type": "x/y"}).headers, [("Content-Type", b"x/y")])
        sent = self.sent(form=[("b", "x y&z"), ("ä", "100%"), ("empty", "")])
        self.assertEqual(sent.body, b"b=x+y%26z&%C3%A4=100%25&empty=")
        self.assertEqual(sent.header("content-type"), "application/x-www-form-urlencoded")
        self.assertEqual(self.sent(body="text").body, b"text")
        with self.assertRaisesRegex(ValueError, "one body"):
            self.sent(json={}, body="x")

    def test_a_body_that_cannot_be_written_is_never_sent(self) -> None:
        with self.assertRaisesRegex(errors.InvalidRequest, "the body is not JSON: body.a"):
            self.sent(json={"a": {1, 2}})
        self.assertEqual(self.ctx.sent, [])

    def test_a_timeout_is_rounded_up_to_milliseconds(self) -> None:
        for timeout, expected in ((2, 2000), (0.0001, 1), (timedelta(hours=1), 3_600_000), (1e9, 0xFFFF_FFFF)):
            self.assertEqual(self.sent(timeout=timeout).timeout_ms, expected)
        with self.assertRaises(ValueError):
            self.sent(timeout=-1)

    def test_an_answer_is_read_as_asked(self) -> None:
        first = Answer(201, json={"id": "x"}, headers={"X-A": "1"})
        self.ctx.answer(first, Answer(body=b"\xff"), Answer(replayed=True))
        answer = self.ctx.http.get(URL)
        self.assertEqual((answer.status, answer.is_success), (201, True))
        self.assertEqual((answer.json(), answer.header("x-a")), ({"id": "x"}, "1"))
        self.assertEqual((answer.json(Receipt), answer.source), (Receipt("x"), Source.SENT))
        with self.assertRaises(errors.UnexpectedBody):
            self.ctx.http.get(URL).text()
        self.assertEqual(self.ctx.http.get(URL).source, Source.REPLAYED)

    def test_a_missing_body_is_an_error_and_never_an_empty_one(self) -> None:
        self.ctx.answer(Answer(without_body=True))
        with self.assertRaises(errors.BodyNotKept):
            self.ctx.http.get(URL).bytes()
        with self.assertRaises(ValueError):
            Answer.error(errors.BodyNotKept(""))


class OtherWays(unittest.TestCase):
    def setUp(self) -> None:
        self.ctx = FakeContext(RUN)

    def test_a_message_is_kept_or_refused(self) -> None:
        published = self.ctx.messages.publish("orders", json={"a": 1}, business_effect=("paid", "42"))
        self.assertEqual((published.stream, published.sequence), ("TEST", 1))
        sent = self.ctx.sent_messages[0]
        self.assertEqual((sent.json(), sent.headers), ({"a": 1}, [("Content-Type", "application/json")]))
        self.assertEqual(sent.identity, Business("paid", "42"))
        self.ctx.refuse_message(errors.message_error("Refused", "full"))
        with self.assertRaises(errors.MessageRefused) as caught:
            self.ctx.messages.publish("orders", "text")
        self.assertEqual((caught.exception.code, caught.exception.text), ("message-refused", "full"))

    def test_a_file_is_written_whole_and_never_appended_to(self) -> None:
        self.ctx.files.write("exports/a.csv", "é", effect="export")
        self.assertEqual(self.ctx.written_files[0].data, "é".encode())
        with self.assertRaisesRegex(errors.Denied, "writes twice"):
            self.ctx.files.append("exports/a.csv", "x")
        self.ctx.refuse_write(errors.file_error("Failed", "full"))
        with self.assertRaises(errors.WriteFailed):
            self.ctx.files.write("exports/a.csv", b"")

    def test_a_signal_is_given_again_in_the_next_attempt(self) -> None:
        self.assertIsNone(self.ctx.signals.poll("go"))
        self.ctx.deliver("go", {"by": "ada"})
        self.ctx.set_attempt(2)
        self.assertIsNone(self.ctx.signals.poll("go"), "as in the first attempt")
        signal = self.ctx.signals.wait("go", 1)
        assert signal is not None
        self.assertEqual((signal.json(), signal.sequence), ({"by": "ada"}, 1))
        self.assertIsNone(self.ctx.signals.wait("go", 1))
        with self.assertRaises(errors.SignalFormat):
            signal.json(list[int])
        with self.assertRaises(errors.SignalInvalidName):
            self.ctx.signals.poll("a b")
        with self.assertRaisesRegex(AssertionError, "deliver it"):
            self.ctx.signals.wait("other")

    def test_a_checkpoint_holds_one_value(self) -> None:
        self.assertIsNone(self.ctx.checkpoint.load())
        self.ctx.checkpoint.save(Receipt("a"))
        self.ctx.set_attempt(2)
        self.assertEqual(self.ctx.checkpoint.load(Receipt), Receipt("a"))
        with self.assertRaises(errors.CheckpointFormat):
            self.ctx.checkpoint.load(int)
        with self.assertRaises(errors.CheckpointTooLarge):
            self.ctx.checkpoint.save("x" * 70_000)

    def test_a_run_is_told_about_and_may_be_cancelled(self) -> None:
        self.ctx.set_activity("a")
        self.ctx.set_attempt(2)
        self.ctx.set_max_attempts(5)
        self.ctx.set_remaining(1.5)
        run = self.ctx.run()
        self.assertEqual((run.activity, run.attempt, run.max_attempts, run.remaining_ms), ("a", 2, 5, 1500))
        self.assertFalse(self.ctx.cancelled())
        self.ctx.cancel()
        self.assertTrue(self.ctx.cancelled())


class Failures(unittest.TestCase):
    def test_a_failure_carries_what_the_host_is_told(self) -> None:
        failure = Failure.retryable("down", "it is down", retry_after=timedelta(seconds=1.5), details={"a": 1})
        self.assertEqual((failure.retry_after_ms, failure.details_json), (1500, '{"a":1}'))
        self.assertEqual(str(failure), "down: it is down")
        self.assertIn("unwritable", Failure.permanent("a", "b", details=object()).details_json or "")

    def test_the_codes_and_kinds_are_those_of_every_language(self) -> None:
        retryable = {"in-flight", "unreachable", "timed-out", "connection-lost", "message-refused", "write-failed"}
        kinds = [it for it in vars(errors).values() if isinstance(it, type) and issubclass(it, errors.CallError)]
        codes = {it.CODE: it.RETRYABLE for it in kinds if it is not errors.CallError}
        self.assertEqual({code for code, again in codes.items() if again}, retryable)
        permanent = {"denied", "effect-mismatch", "outcome-unknown", "invalid-request", "response-too-large"}
        permanent |= {"body-not-kept", "unexpected-body", "invalid-name", "checkpoint-too-large", "checkpoint-format"}
        permanent |= {"signal-invalid-name", "signal-too-many-calls", "signal-format", "http-status"}
        self.assertEqual({code for code, again in codes.items() if not again}, permanent)
