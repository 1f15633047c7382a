"""The samples without a host."""

import json
import unittest
from typing import Any

import activities  # noqa: F401
from deedbox import Failure
from deedbox.testing import Answer, FakeContext

RUN = "0190b1c2-0000-7000-8000-000000000001"
ORDER = {"order": "42", "amount_cents": 1999, "customer": "ada", "provider_url": "http://p.test"}


def run(ctx: FakeContext, name: str, value: Any) -> Any:
    return json.loads(ctx.run_named(name, json.dumps(value)))


class Samples(unittest.TestCase):
    def setUp(self) -> None:
        self.ctx = FakeContext(RUN)

    def test_an_order_is_charged_at_the_provider(self) -> None:
        self.ctx.answer(Answer(json={"id": "ch_1", "paid": True}))
        self.assertEqual(run(self.ctx, "charge-once", ORDER), {"charge_id": "ch_1", "outcome": "charged"})
        sent = self.ctx.sent[0]
        self.assertEqual((sent.method, sent.url), ("POST", "http://p.test/v1/charges"))
        self.assertEqual(sent.json(), {"amount_cents": 1999, "customer": "ada", "order": "42"})

    def test_a_declined_card_is_a_value(self) -> None:
        self.ctx.answer(Answer(402, json={"code": "card_declined"}), Answer(404, body="no such customer"))
        rejected = {"outcome": "rejected", "status": 402, "reason": {"code": "card_declined"}}
        self.assertEqual(run(self.ctx, "charge-once", ORDER), rejected)
        self.assertEqual(run(self.ctx, "charge-once", ORDER)["reason"], "no such customer")

    def test_a_provider_in_trouble_is_tried_again(self) -> None:
        for status, again in ((408, True), (429, True), (503, True), (401, False)):
            with self.subTest(status), self.assertRaises(Failure) as caught:
                self.ctx.answer(Answer(status))
                run(self.ctx, "charge-once", ORDER)
            self.assertEqual((caught.exception.code, caught.exception.is_retryable), ("http-status", again))

    def test_a_user_is_welcomed_with_references_of_the_run(self) -> None:
        self.ctx.answer(Answer(json={"id": "acc"}), Answer(json={"id": "mail"}))
        user = {"provider_url": "http://p.test", "user": "ada", "email": "a@b.test"}
        self.assertEqual(run(self.ctx, "welcome-user", user), {"account_id": "acc", "mail_id": "mail"})
        references = [sent.json()["reference"] for sent in self.ctx.sent]
        self.assertEqual(references, [self.ctx.subkey("account"), self.ctx.subkey("mail")])

    def test_a_list_is_summed_into_a_file(self) -> None:
        self.ctx.answer(Answer(body="name,amount_cents\nada,5\nbob,-2\n"))
        job = {"source_url": "http://p.test/list", "path": "exports/sum.csv"}
        self.assertEqual(run(self.ctx, "import-csv", job), {"rows": 2, "total_cents": 3})
        self.assertEqual(self.ctx.written_files[0].data, b"rows,total_cents\n2,3\n")

    def test_a_line_that_does_not_parse_is_named(self) -> None:
        for line in ("ada", "ada,x", "ada,1,2", "ada,1_0", ""):
            with self.subTest(line), self.assertRaisesRegex(Failure, "bad-csv: line 3"):
                self.ctx.answer(Answer(body=f"name,amount_cents\nbob,1\n{line}\n"))
                run(self.ctx, "import-csv", {"source_url": "http://p.test/list", "path": "exports/sum.csv"})

    def test_a_payment_ends_paid_or_expired(self) -> None:
        payment = {"provider_url": "http://p.test", "order": "42", "wait_ms": 10}
        self.ctx.answer(Answer(json={"id": "pay"}), Answer(json={"id": "pay"}))
        self.assertEqual(run(self.ctx, "wait-for-webhook", payment), {"outcome": "expired"})
        again = FakeContext(RUN)
        again.answer(Answer(json={"id": "pay"}))
        again.deliver("paid", {"by": "bank"})
        paid = {"outcome": "paid", "payment_id": "pay", "by": "bank"}
        self.assertEqual(run(again, "wait-for-webhook", payment), paid)

    def test_an_order_that_cannot_be_placed_is_a_value(self) -> None:
        order = {"provider_url": "http://p.test", "order": "42"}
        self.ctx.answer(Answer(409, json={"why": "sold"}), Answer(json={"id": "o1"}))
        self.assertEqual(run(self.ctx, "reject-as-data", order), {"outcome": "rejected", "reason": {"why": "sold"}})
        self.assertEqual(run(self.ctx, "reject-as-data", order), {"outcome": "placed", "order_id": "o1"})

    def test_steps_go_on_where_they_were(self) -> None:
        self.ctx.checkpoint.save({"done": 1})
        self.ctx.answer(Answer(), Answer())
        done = run(self.ctx, "checkpointed", {"steps": 3, "provider_url": "http://p.test"})
        self.assertEqual(done, {"done": 3, "began_at": 1})
        self.assertEqual([sent.json() for sent in self.ctx.sent], [{"step": 2}, {"step": 3}])

    def test_an_echo_is_the_same_and_typed(self) -> None:
        for value in ({"a": 1, "b": "x"}, {"a": 1, "b": "x", "c": None, "nested": {"list": ["y"]}}):
            self.assertEqual(run(self.ctx, "echo", value), value)
        with self.assertRaisesRegex(Failure, r"invalid-input: input\.nested\.list\[0\]: expected a text"):
            run(self.ctx, "echo", {"a": 1, "b": "x", "nested": {"list": [1]}})


if __name__ == "__main__":
    unittest.main()
