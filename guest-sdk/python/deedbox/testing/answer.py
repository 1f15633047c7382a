"""A scripted answer to a request of the activity under test."""

from __future__ import annotations

from typing import Any

from .. import errors
from .._host import Headers, Received, Source
from .._write import to_bytes

_OF_READING = (errors.HttpStatus, errors.BodyNotKept, errors.UnexpectedBody)


class Answer:
    """What the next request gets: `Answer(201)`, `Answer(json={...})`, or `Answer.error(TimedOut(...))`."""

    def __init__(
        self,
        status: int = 200,
        *,
        json: Any = None,
        body: bytes | str = b"",
        headers: dict[str, str] | None = None,
        replayed: bool = False,
        without_body: bool = False,
    ) -> None:
        """`replayed`: as from the record of an earlier send; `without_body`: as from a record without its body."""
        fields: Headers = [(name, value.encode()) for name, value in (headers or {}).items()]
        content: bytes | None = body.encode() if isinstance(body, str) else body
        if json is not None:
            content = to_bytes(json, "answer")
            fields.insert(0, ("content-type", b"application/json"))
        if without_body:
            content = None
        source = Source.REPLAYED if replayed or without_body else Source.SENT
        self.result: Received | errors.CallError = Received(status, fields, content, source, "0" * 64)

    @classmethod
    def error(cls, error: errors.CallError) -> Answer:
        """No answer but this error. HttpStatus, BodyNotKept and UnexpectedBody come from reading an answer: script that
        answer instead.
        """
        if isinstance(error, _OF_READING):
            raise ValueError(f"{error.code!r} comes from reading an answer: script that answer instead")
        answer = cls()
        answer.result = error
        return answer
