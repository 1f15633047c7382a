"""The activities without a host."""

import unittest

from activities import Order, Receipt, charge_once
from deedbox import errors
from deedbox.testing import Answer, FakeContext

ORDER = Order("42", 1999)


class ChargeOnce(unittest.TestCase):
    def setUp(self) -> None:
        # The keys of a run come from its id, so that a test writes one down.
        self.ctx = FakeContext("0190b1c2-0000-7000-8000-000000000001")

    def test_an_order_is_charged(self) -> None:
        self.ctx.answer(Answer(json={"id": "ch_1"}))
        self.assertEqual(charge_once(self.ctx, ORDER), Receipt("ch_1"))
        self.assertEqual(self.ctx.sent[0].json(), {"order": "42", "amount_cents": 1999})

    def test_a_provider_in_trouble_is_tried_again(self) -> None:
        self.ctx.answer(Answer(503))
        with self.assertRaises(errors.HttpStatus) as caught:
            charge_once(self.ctx, ORDER)
        self.assertTrue(caught.exception.is_retryable)
