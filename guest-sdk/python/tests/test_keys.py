"""The keys that a test context shows are those that a host derives: both are held to the same vectors."""

import json
import unittest
from pathlib import Path
from typing import Any

from deedbox import errors
from deedbox.testing import FakeContext
from deedbox.testing.keys import Keys

VECTORS = json.loads((Path(__file__).parents[2] / "key-vectors.json").read_text())
# The tenant of every test context.
TENANT = "test"


def cases(kind: str) -> list[dict[str, Any]]:
    found = [case for case in VECTORS[kind] if case["tenant"] == TENANT]
    assert len(found) >= 3, f"{kind}: too few vectors to check anything"
    return found


class KeysOfATest(unittest.TestCase):
    def test_run_keys_are_those_of_the_vectors_in_every_attempt(self) -> None:
        for case in cases("run_keys"):
            fake = FakeContext(case["run_id"])
            for attempt in (1, 2, 3):
                fake.set_attempt(attempt)
                self.assertEqual(fake.idempotency_key(), case["text"], case)

    def test_subkeys_are_those_of_the_vectors_in_every_attempt(self) -> None:
        for case in cases("subkeys"):
            fake = FakeContext(case["run_id"])
            for attempt in (1, 2, 3):
                fake.set_attempt(attempt)
                self.assertEqual(fake.subkey(case["name"]), case["text"], case)

    def test_the_derivation_is_that_of_the_vectors_for_every_tenant(self) -> None:
        for case in VECTORS["run_keys"]:
            self.assertEqual(Keys(case["tenant"], case["run_id"]).run_key(), case["text"], case)
        for case in VECTORS["subkeys"]:
            self.assertEqual(Keys(case["tenant"], case["run_id"]).subkey(case["name"]), case["text"], case)

    def test_names_that_the_vectors_refuse_are_errors(self) -> None:
        fake = FakeContext("00000000-0000-0000-0000-000000000000")
        self.assertTrue(VECTORS["refused_names"])
        for length in VECTORS["refused_names"]:
            with self.subTest(length), self.assertRaises(errors.InvalidName):
                fake.subkey("a" * length)
        with self.assertRaises(errors.InvalidName):
            fake.subkey("é" * 129)

    def test_there_is_no_context_without_a_stable_key(self) -> None:
        for run_id in ("", "1", "0197F3A4-5B6C-7D8E-9F01-23456789ABCD", "0197f3a45b6c7d8e9f0123456789abcd"):
            with self.subTest(run_id), self.assertRaisesRegex(ValueError, "write a .*UUID into the test"):
                FakeContext(run_id)
        with self.assertRaisesRegex(ValueError, "needs a run id"):
            FakeContext()
