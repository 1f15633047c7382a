"""The host behind a fake context: what was asked of it, and what it is to answer. Without a script messages and files
succeed; a request without an answer fails the test and is named.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from dataclasses import dataclass, replace
from typing import Any

from .. import errors
from .._host import Headers, Identity, Lookup, OnUnknown, Options, Published, Received, Request, Run, Source, Written
from .keys import Keys

TENANT = "test"
_EFFECT = "0" * 64
_MAX_STATE_BYTES = 64 * 1024
_SIGNAL_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")


@dataclass
class Sent:
    """One request, as the host would have got it."""

    method: str
    url: str
    headers: Headers
    body: bytes
    timeout_ms: int | None
    identity: Identity
    on_unknown: OnUnknown
    lookup: Lookup | None

    def header(self, name: str) -> str | None:
        """The first header of that name, in any case."""
        return next((value.decode() for it, value in self.headers if it.lower() == name.lower()), None)

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass
class SentMessage:
    """One message, as the host would have got it."""

    subject: str
    payload: bytes
    headers: list[tuple[str, str]]
    identity: Identity
    on_unknown: OnUnknown

    def json(self) -> Any:
        """The payload as JSON."""
        return json.loads(self.payload)


@dataclass
class WrittenFile:
    """One write, as the host would have got it."""

    path: str
    data: bytes
    identity: Identity


class FakeHost:
    """All state of a fake run."""

    def __init__(self, run_id: str) -> None:
        self.keys = Keys(TENANT, run_id)
        self.run = Run(TENANT, run_id, "test", attempt=1, max_attempts=3, remaining_ms=60_000)
        self.is_cancelled = False
        self.script: deque[Received | errors.CallError] = deque()
        self.sent: list[Sent] = []
        self.messages: list[SentMessage] = []
        self.files: list[WrittenFile] = []
        self.message_errors: deque[errors.CallError] = deque()
        self.file_errors: deque[errors.CallError] = deque()
        self.state: bytes | None = None
        self.delivered: list[tuple[str, str, int]] = []
        self._read: set[int] = set()
        self._asked: Counter[tuple[str, str]] = Counter()
        self._given: dict[tuple[str, str, int], tuple[str, int] | None] = {}

    def begin_attempt(self, number: int) -> None:
        self._asked.clear()
        self.run = replace(self.run, attempt=number)

    def idempotency_key(self) -> str:
        return self.keys.run_key()

    def subkey(self, name: str) -> str:
        return self.keys.subkey(name)

    def run_info(self) -> Run:
        return self.run

    def cancelled(self) -> bool:
        return self.is_cancelled

    def send(self, request: Request, options: Options) -> Received:
        it, how = request, options
        fields = (it.method, it.url, it.headers, it.body, it.timeout_ms)
        self.sent.append(Sent(*fields, how.identity, how.on_unknown, how.lookup))
        if not self.script:
            raise AssertionError(f"no answer for {it.method} {it.url}: add one with FakeContext.answer")
        answer = self.script.popleft()
        if isinstance(answer, errors.CallError):
            raise answer
        return answer

    def publish(self, subject: str, payload: bytes, headers: list[tuple[str, str]], options: Options) -> Published:
        self.messages.append(SentMessage(subject, payload, headers, options.identity, options.on_unknown))
        if self.message_errors:
            raise self.message_errors.popleft()
        sequence = len(self.messages)
        return Published("TEST", sequence, False, f"00000000-0000-8000-8000-{sequence:012}", Source.SENT, _EFFECT)

    def write(self, path: str, data: bytes, identity: Identity) -> Written:
        self.files.append(WrittenFile(path, data, identity))
        if self.file_errors:
            raise self.file_errors.popleft()
        return Written(Source.SENT, _EFFECT)

    def append(self, path: str, data: bytes) -> None:
        why = (
            "an append that is made twice writes twice: write a file of its own for each run, for example one named by "
            "`idempotency_key`"
        )
        raise errors.file_error("Denied", why)

    def poll_signal(self, name: str) -> tuple[str, int] | None:
        return self._give("poll", name)

    def wait_signal(self, name: str, timeout_ms: int | None) -> tuple[str, int] | None:
        """A wait with a time-out is over at once when no signal is here. One without an end would never end."""
        given = self._give("wait", name)
        if given is None and timeout_ms is None:
            raise AssertionError(
                f"the activity waits for the signal {name} without end: deliver it with FakeContext.deliver"
            )
        return given

    def save(self, state: bytes) -> None:
        if len(state) > _MAX_STATE_BYTES:
            raise errors.CheckpointTooLarge()
        self.state = state

    def load(self) -> bytes | None:
        return self.state

    def _give(self, kind: str, name: str) -> tuple[str, int] | None:
        """What a call was given it is given again in every later attempt, as by the host."""
        if not _SIGNAL_NAME.fullmatch(name):
            raise errors.SignalInvalidName()
        place = (kind, name, self._asked[kind, name])
        self._asked[kind, name] += 1
        if place not in self._given:
            self._given[place] = self._take(name)
        return self._given[place]

    def _take(self, name: str) -> tuple[str, int] | None:
        for it, payload, sequence in self.delivered:
            if it == name and sequence not in self._read:
                self._read.add(sequence)
                return payload, sequence
        return None
