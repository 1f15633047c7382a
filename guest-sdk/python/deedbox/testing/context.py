"""The context of a unit test. It holds no key that the test did not ask for by its run id."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from .. import _registry, errors
from .._write import to_text
from ..context import Context
from ..failure import milliseconds
from .answer import Answer
from .fake import FakeHost, Sent, SentMessage, WrittenFile


class FakeContext(Context):
    """A context for a unit test: `my_activity(FakeContext("0190b1c2-0000-7000-8000-000000000001"), order)`.

    It is the first of three attempts of the run with this id, a UUID that the test writes down, so that its keys are
    the same whenever the test runs. Raises ValueError when it is none: there is no key to hand out then. Each request
    needs an answer in the script; one without raises AssertionError and names the request.
    """

    def __init__(self, run_id: str = "") -> None:
        self._fake = FakeHost(run_id)
        super().__init__(self._fake)

    def answer(self, *answers: Answer) -> None:
        """Adds the answers to the next requests that have none yet."""
        self._fake.script.extend(answer.result for answer in answers)

    @property
    def sent(self) -> list[Sent]:
        """Every request so far, in order."""
        return self._fake.sent

    @property
    def sent_messages(self) -> list[SentMessage]:
        """Every message so far, in order. Each is kept by the stream `TEST` unless it is refused."""
        return self._fake.messages

    def refuse_message(self, error: errors.CallError) -> None:
        """The next message that is not refused yet fails with this error."""
        self._fake.message_errors.append(error)

    @property
    def written_files(self) -> list[WrittenFile]:
        """Every file so far, in order."""
        return self._fake.files

    def refuse_write(self, error: errors.CallError) -> None:
        """The next write that is not refused yet fails with this error."""
        self._fake.file_errors.append(error)

    def deliver(self, name: str, payload: Any) -> None:
        """Delivers a signal to the run."""
        delivered = self._fake.delivered
        delivered.append((name, to_text(payload, "payload"), len(delivered) + 1))

    def set_attempt(self, attempt: int) -> None:
        """Makes this the attempt of that number, with the saved state of the attempts before, and the signals that they
        were given.
        """
        self._fake.begin_attempt(attempt)

    def set_max_attempts(self, attempts: int) -> None:
        self._fake.run = replace(self._fake.run, max_attempts=attempts)

    def set_activity(self, name: str) -> None:
        self._fake.run = replace(self._fake.run, activity=name)

    def set_remaining(self, time: float | timedelta) -> None:
        self._fake.run = replace(self._fake.run, remaining_ms=milliseconds(time))

    def cancel(self) -> None:
        """Asks the attempt to stop."""
        self._fake.is_cancelled = True

    def run_named(self, activity: str, text: str) -> str:
        """Runs an activity by its name on a JSON text, as the host does, and gives its output as JSON text. The module
        with the activity must have been imported.
        """
        return _registry.run(self, activity, text)
