"""What several samples make of an answer."""

import json
from typing import Any

from deedbox import Response


def reason(answer: Response) -> Any:
    """What the provider says, as JSON if it is, else as text."""
    try:
        return json.loads(answer.text())
    except ValueError:
        return answer.text()
