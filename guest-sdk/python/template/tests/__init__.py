"""The SDK lies beside the project, so that nothing needs to be installed for the tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "deedbox-sdk"))
