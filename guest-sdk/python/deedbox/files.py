"""Files through the ledger: whole files, in directories that the operator has granted.

The host claims each write first, and puts the file in place at once. Nothing here reads, appends or deletes.
"""

from __future__ import annotations

from ._host import Host, Written, identity


class Files:
    """Where writes start."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def write(
        self,
        path: str,
        data: bytes | str,
        *,
        effect: str | None = None,
        business_effect: tuple[str, str] | None = None,
    ) -> Written:
        """Writes a file whole, or answers from the ledger: readers see the old file or the new one, never a part. The
        first segment of the path names the granted directory: `exports/2026/orders.csv`. A text is written as UTF-8.

        `effect` and `business_effect` are those of HTTP; an unnamed write is known by its path and its order. Raises
        the errors of `deedbox.errors`.
        """
        return self._host.write(path, _bytes(data), identity(effect, business_effect))

    def append(self, path: str, data: bytes | str) -> None:
        """Always refused, with the reason: an append that is made twice writes twice. Write a file of its own for each
        run, for example one named by `Context.idempotency_key`.
        """
        self._host.append(path, _bytes(data))


def _bytes(data: bytes | str) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data)


__all__ = ["Files", "Written"]
