"""What an activity is handed: the run's keys, what is known about the run, and the ways out.

Nothing in here makes up a key: they come from the host, the same in every attempt.
"""

from __future__ import annotations

from ._host import Host, Run
from .checkpoint import Checkpoint
from .files import Files
from .http import Client
from .messaging import Messages
from .signals import Signals


class Context:
    """The run that an activity serves."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.http = Client(host)
        """HTTP through the ledger."""
        self.messages = Messages(host)
        """Messages through the ledger."""
        self.files = Files(host)
        """Files through the ledger."""
        self.signals = Signals(host)
        """Messages to this run."""
        self.checkpoint = Checkpoint(host)
        """The note from one attempt to the next."""

    def idempotency_key(self) -> str:
        """The run key: the same in every attempt of this run, and in no other run. A lower-case hyphenated UUID."""
        return self._host.idempotency_key()

    def subkey(self, name: str) -> str:
        """A key for one of several effects of this run. The same name always gives the same key, another name another
        key. Raises InvalidName when the name is empty or longer than 256 bytes.
        """
        return self._host.subkey(name)

    def run(self) -> Run:
        """What is known about the run. The host is asked each time."""
        return self._host.run_info()

    def cancelled(self) -> bool:
        """True once this attempt was asked to stop. Return soon: the host stops it otherwise."""
        return self._host.cancelled()
