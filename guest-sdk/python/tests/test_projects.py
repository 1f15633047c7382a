"""The projects that stand on this package keep to it: their own tests pass."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
SAMPLES = PACKAGE.parents[1] / "examples/samples/python"


def tests_of(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "unittest", *arguments]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=120)


class Projects(unittest.TestCase):
    def assert_pass(self, project: Path, *arguments: str) -> None:
        done = tests_of(project, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"Ran [1-9]")

    def test_the_samples_pass(self) -> None:
        self.assert_pass(SAMPLES, "discover", "-s", "tests", "-t", ".")

    def test_a_new_project_passes(self) -> None:
        self.assert_pass(PACKAGE / "template")

    def test_a_project_whose_tests_fail_is_seen(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "test_it.py").write_text(
                "import unittest\n\n\nclass It(unittest.TestCase):\n    def test_it(self):\n        self.fail()\n"
            )
            self.assertNotEqual(tests_of(Path(folder)).returncode, 0)
