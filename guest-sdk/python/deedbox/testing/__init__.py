"""Running an activity in a unit test, without a host: `FakeContext`.

It answers requests from a script and remembers what was sent. It opens no socket, and it hands out only keys that a
host would derive from the run id that the test gave: never a random one.
"""

from .answer import Answer
from .context import FakeContext
from .fake import Sent, SentMessage, WrittenFile

__all__ = ["Answer", "FakeContext", "Sent", "SentMessage", "WrittenFile"]
