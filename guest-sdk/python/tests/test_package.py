"""What is in the package beside its modules."""

import unittest
from pathlib import Path

import deedbox

PACKAGE = Path(deedbox.__file__).parent


class Package(unittest.TestCase):
    def test_the_interface_is_that_of_the_repository(self) -> None:
        ours = (PACKAGE / "wit/deps/activity.wit").read_text()
        self.assertEqual(ours, (Path(__file__).parents[3] / "wit/activity.wit").read_text())

    def test_it_says_that_it_is_typed(self) -> None:
        self.assertTrue((PACKAGE / "py.typed").exists())
