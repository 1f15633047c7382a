"""The host as this package sees it, so that an activity runs against the real one and against a fake one alike. Nothing
here decides anything: it is the interface of `deedbox:activity` in the words of Python.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

Headers = list[tuple[str, bytes]]


class Source(Enum):
    """Where an answer comes from."""

    SENT = "sent"
    REPLAYED = "replayed"
    LOOKED_UP = "looked-up"
    SUPPLIED = "supplied"


class OnUnknown(Enum):
    """What to do when nobody knows whether an effect happened and sending again is not safe by itself."""

    PROVIDER_DEFAULT = "provider-default"
    """As the deployment's policy, else the provider's profile, says; `ASK` when neither does."""
    ASK = "ask"
    """The run waits until a person or a system settles the question."""
    AT_MOST_ONCE = "at-most-once"
    """Never send again: the call raises `OutcomeUnknown`."""
    AT_LEAST_ONCE = "at-least-once"
    """Send again, and accept that the effect may happen twice."""


@dataclass(frozen=True)
class Positional:
    """An effect known by its place and its order within the attempt."""


@dataclass(frozen=True)
class Named:
    """An effect known by a name that is unique in the run."""

    name: str


@dataclass(frozen=True)
class Business:
    """An effect known by the business itself: two runs that name the same share one."""

    operation: str
    key: str


Identity = Positional | Named | Business


@dataclass(frozen=True)
class Condition:
    """Recognises an answer of a look-up: any of these statuses and, with a `pointer` (RFC 6901; `*` stands for every
    element), a JSON value there that is not null, or that equals the text in `equals`.
    """

    statuses: tuple[int, ...]
    pointer: str | None = None
    equals: str | None = None


@dataclass(frozen=True)
class Lookup:
    """A GET by which the host asks the provider whether an effect happened. It is made without the activity, maybe days
    later. When neither condition is true it cannot tell. `settle` is how many seconds after the send `absent` may still
    be wrong.
    """

    url: str
    found: Condition
    absent: Condition
    headers: dict[str, str] = field(default_factory=dict)
    settle: float = 0


@dataclass
class Request:
    method: str
    url: str
    headers: Headers
    body: bytes
    timeout_ms: int | None


@dataclass
class Options:
    identity: Identity
    on_unknown: OnUnknown
    lookup: Lookup | None = None


@dataclass
class Received:
    """An answer. `body` is None when it was recorded without one."""

    status: int
    headers: Headers
    body: bytes | None
    source: Source
    effect_id: str | None


@dataclass(frozen=True)
class Published:
    """Where the server keeps a message."""

    stream: str
    sequence: int
    duplicate: bool
    message_id: str
    source: Source
    effect_id: str


@dataclass(frozen=True)
class Written:
    """A file that is in place."""

    source: Source
    effect_id: str


@dataclass(frozen=True)
class Run:
    """What is known about a run."""

    tenant: str
    run_id: str
    """The stable id of the run, a UUID: the same in every attempt."""
    activity: str
    """The name under which the activity was deployed."""
    attempt: int
    """1 for the first attempt. For logging only: a key built from it differs on every attempt, and the effect would
    happen again."""
    max_attempts: int
    remaining_ms: int
    """Milliseconds left before this attempt is stopped, as of the call to `Context.run`."""


class Host(Protocol):
    """The ways out of an activity. Every method raises the errors of `deedbox.errors`."""

    def idempotency_key(self) -> str: ...

    def subkey(self, name: str) -> str: ...

    def run_info(self) -> Run: ...

    def cancelled(self) -> bool: ...

    def send(self, request: Request, options: Options) -> Received: ...

    def publish(
        self, subject: str, payload: bytes, headers: list[tuple[str, str]], options: Options
    ) -> Published: ...

    def write(self, path: str, data: bytes, identity: Identity) -> Written: ...

    def append(self, path: str, data: bytes) -> None: ...

    def poll_signal(self, name: str) -> tuple[str, int] | None:
        """Payload and sequence."""

    def wait_signal(self, name: str, timeout_ms: int | None) -> tuple[str, int] | None: ...

    def save(self, state: bytes) -> None: ...

    def load(self) -> bytes | None: ...


def identity(effect: str | None, business_effect: tuple[str, str] | None) -> Identity:
    """How the caller tells an effect apart. Raises ValueError when it does so twice."""
    if effect is not None and business_effect is not None:
        raise ValueError("an effect has one identity: give `effect` or `business_effect`, not both")
    if business_effect is not None:
        return Business(*business_effect)
    return Positional() if effect is None else Named(effect)
