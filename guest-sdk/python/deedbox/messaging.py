"""Messages through the ledger: what is published, how its effect is told apart, and where the server keeps it.

The host claims each message first and gives it an id that is the same in every attempt. So nothing here may retry by
itself or invent an id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import errors
from ._host import Host, OnUnknown, Options, Published, identity
from ._write import WriteError, to_bytes


class Messages:
    """Where messages start."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def publish(
        self,
        subject: str,
        payload: bytes | str = b"",
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        effect: str | None = None,
        business_effect: tuple[str, str] | None = None,
        on_unknown: OnUnknown | str = OnUnknown.PROVIDER_DEFAULT,
    ) -> Published:
        """Publishes one message to the deployment's server and waits until the server keeps it, or answers from the
        ledger. The message is `payload`, or `json` with a content type.

        `effect`, `business_effect` and `on_unknown` are those of HTTP; an unnamed message is known by its subject and
        its order. Raises the errors of `deedbox.errors`.
        """
        fields = list((headers or {}).items())
        content = payload.encode() if isinstance(payload, str) else bytes(payload)
        if json is not None:
            if content:
                raise ValueError("a message has one payload: give `payload` or `json`, not both")
            content = _written(json)
            if not any(name.lower() == "content-type" for name, _ in fields):
                fields.append(("Content-Type", "application/json"))
        options = Options(identity(effect, business_effect), OnUnknown(on_unknown))
        return self._host.publish(subject, content, fields, options)


def _written(json: Any) -> bytes:
    try:
        return to_bytes(json, "payload")
    except WriteError as error:
        raise errors.InvalidRequest(f"the payload is not JSON: {error}", str(error)) from None


__all__ = ["Messages", "Published"]
