"""The keys of a fake run, derived as the host derives them, so that a test can state them as text. Nothing here may be
random: an unstable key in a test hides the bug that the test is for.
"""

import uuid
from struct import pack

from .. import errors
from .blake3 import derive_key

_RUN_KEY = "deedbox 2026 run key"
_SUBKEY = "deedbox 2026 subkey"
_MAX_NAME_BYTES = 256


class Keys:
    """The keys of one run. Raises ValueError when its id is no lower-case hyphenated UUID."""

    def __init__(self, tenant: str, run_id: str) -> None:
        if not run_id:
            raise ValueError("a test context needs a run id, for its keys come from it: write a UUID into the test")
        if not _is_uuid(run_id):
            raise ValueError(f"{run_id!r} is not a run id: write a lower-case hyphenated UUID into the test")
        self._run_key = _hash(_RUN_KEY, tenant.encode(), run_id.encode())

    def run_key(self) -> str:
        return _text(self._run_key)

    def subkey(self, name: str) -> str:
        if not 1 <= len(name.encode()) <= _MAX_NAME_BYTES:
            raise errors.InvalidName()
        return _text(_hash(_SUBKEY, self._run_key, name.encode()))


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _hash(context: str, *fields: bytes) -> bytes:
    return derive_key(context, b"".join(pack("<I", len(field)) + field for field in fields))


def _text(key: bytes) -> str:
    half = bytearray(key[:16])
    half[6] = half[6] & 0x0F | 0x80
    half[8] = half[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(half)))
