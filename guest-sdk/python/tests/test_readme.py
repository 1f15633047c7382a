"""Every example of the README runs as it stands. F-J08."""

import re
import unittest
from pathlib import Path
from typing import Any

from deedbox._host import Business, Named
from deedbox.testing import Answer, FakeContext

TEXT = (Path(__file__).parents[1] / "README.md").read_text()
RUN = "0190b1c2-0000-7000-8000-000000000001"


class Readme(unittest.TestCase):
    def setUp(self) -> None:
        self.names: dict[str, Any] = {"__name__": "readme"}
        self.blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
        for block in self.blocks:
            exec(compile(block, "README.md", "exec"), self.names)
        self.ctx = FakeContext(RUN)

    def test_the_first_example_charges_an_order_under_its_name(self) -> None:
        self.ctx.answer(Answer(json={"id": "ch_1", "paid": True}))
        receipt = self.names["charge_once"](self.ctx, self.names["Order"]("42", 1999))
        self.assertEqual(receipt.id, "ch_1")
        self.assertEqual(self.ctx.sent[0].identity, Named("charge"))
        self.assertEqual(self.ctx.sent[0].json(), {"order": "42", "amount_cents": 1999})

    def test_the_other_examples_do_what_is_said_of_them(self) -> None:
        self.assertEqual(len(self.blocks), 4)
        self.names["announce"](self.ctx, "42")
        self.assertEqual(self.ctx.sent_messages[0].identity, Business("order-paid", "42"))
        self.assertEqual(self.ctx.written_files[0].path, "exports/42.csv")
        self.assertEqual(self.names["approve"](self.ctx, "42")["outcome"], "rejected")
        result = unittest.defaultTestLoader.loadTestsFromTestCase(self.names["Greeting"]).run(unittest.TestResult())
        self.assertTrue(result is not None and result.wasSuccessful() and result.testsRun == 1)

    def test_every_code_that_an_error_has_is_in_its_table(self) -> None:
        from deedbox import errors

        kinds = [it for it in vars(errors).values() if isinstance(it, type) and issubclass(it, errors.CallError)]
        for kind in kinds:
            if kind is not errors.CallError:
                self.assertIn(f"`{kind.CODE}`", TEXT)
