"""What the conformance list asks of every language beside the five samples: each shows one part of the SDK alone."""

import logging
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

from deedbox import Context, Failure, activity

log = logging.getLogger("samples")
log.setLevel(logging.DEBUG)


@dataclass
class Names:
    names: list[str]


@activity
def keys(ctx: Context, wanted: Names) -> dict[str, Any]:
    """The run key, and a subkey for each name."""
    return {"run": ctx.idempotency_key(), "subkeys": {name: ctx.subkey(name) for name in wanted.names}}


@dataclass
class Failing:
    code: str
    message: str
    kind: Literal["retryable", "permanent"]
    retry_after_ms: int | None = None
    details: Any = None


@activity
def fail(ctx: Context, how: Failing) -> None:
    """Fails as it is told to."""
    if how.kind == "permanent":
        raise Failure.permanent(how.code, how.message, details=how.details)
    after = None if how.retry_after_ms is None else how.retry_after_ms / 1000
    raise Failure.retryable(how.code, how.message, retry_after=after, details=how.details)


@dataclass
class Words:
    words: str


@activity
def panic(ctx: Context, said: Words) -> None:
    """Ends by an exception that nobody catches."""
    raise RuntimeError(said.words)


@dataclass
class Spend:
    kind: Literal["loop", "memory", "stack"]


@activity
def spend(ctx: Context, what: Spend) -> None:
    """Never ends, takes memory without end, or calls itself without end."""
    hoard = []
    while what.kind == "loop":
        pass
    while what.kind == "memory":
        hoard.append(bytearray(1 << 20))
    deeper(0)


def deeper(depth: int) -> int:
    return 1 + deeper(depth + 1)


@dataclass
class Plain:
    url: str
    body: str


@activity
def plain_http(ctx: Context, call: Plain) -> dict[str, Any]:
    """POSTs with the standard library, which knows nothing of Deedbox."""
    request = urllib.request.Request(call.url, data=call.body.encode(), method="POST")
    try:
        with urllib.request.urlopen(request) as answer:
            return {"status": answer.status, "body": answer.read().decode()}
    except urllib.error.HTTPError as error:
        return {"status": error.code, "body": error.read().decode()}


@dataclass
class Steps:
    steps: int
    provider_url: str


@dataclass
class Progress:
    done: int = 0


@activity
def checkpointed(ctx: Context, work: Steps) -> dict[str, int]:
    """Makes steps, and notes after each how far it has come."""
    began = (ctx.checkpoint.load(Progress) or Progress()).done
    for step in range(began + 1, work.steps + 1):
        answer = ctx.http.post(f"{work.provider_url}/v1/steps", effect=f"step-{step}", json={"step": step})
        answer.error_for_status()
        ctx.checkpoint.save(Progress(step))
    return {"done": work.steps, "began_at": began}


@dataclass
class Note:
    subject: str
    text: str


@activity
def publish(ctx: Context, note: Note) -> dict[str, Any]:
    """Publishes a message."""
    published = ctx.messages.publish(note.subject, note.text, effect="note")
    return {"stream": published.stream, "sequence": published.sequence}


@activity(name="log")
def log_words(ctx: Context, said: Words) -> None:
    """Says it at each level, and prints it."""
    for level in (log.debug, log.info, log.warning, log.error, log.critical):
        level("%s", said.words)
    print(said.words)


class Nested(TypedDict):
    list: list[str]


class Echoed(TypedDict):
    a: int
    b: str
    c: NotRequired[bool | None]
    nested: NotRequired[Nested]


@activity
def echo(ctx: Context, it: Echoed) -> Echoed:
    """Gives the same back."""
    return it
