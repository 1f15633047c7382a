"""BLAKE3 in `derive_key` mode, for one chunk: all that the keys of a fake run need. It follows the paper, and is held
to the vectors of the keys. It is slow, and for tests only.
"""

from struct import pack, unpack

_CHUNK_BYTES = 1024
_BLOCK_BYTES = 64
_WORD = 0xFFFF_FFFF
_CHUNK_START, _CHUNK_END, _ROOT = 1, 2, 8
_DERIVE_KEY_CONTEXT, _DERIVE_KEY_MATERIAL = 32, 64
_IV = (
    *(0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A),
    *(0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19),
)
_PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
_COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))


def derive_key(context: str, material: bytes) -> bytes:
    """32 bytes. Raises ValueError for more than 1024 bytes of either."""
    key = _hash(_IV, context.encode(), _DERIVE_KEY_CONTEXT)
    return pack("<8I", *_hash(key, material, _DERIVE_KEY_MATERIAL))


def _hash(key: tuple[int, ...], data: bytes, mode: int) -> tuple[int, ...]:
    if len(data) > _CHUNK_BYTES:
        raise ValueError(f"at most {_CHUNK_BYTES} bytes: a test needs no more")
    blocks = [data[at : at + _BLOCK_BYTES] for at in range(0, len(data), _BLOCK_BYTES)] or [b""]
    chain = key
    for i, block in enumerate(blocks):
        flags = mode | (_CHUNK_START if i == 0 else 0) | (_CHUNK_END | _ROOT if i == len(blocks) - 1 else 0)
        chain = _compress(chain, block, flags)
    return chain


def _compress(chain: tuple[int, ...], block: bytes, flags: int) -> tuple[int, ...]:
    words = list(unpack("<16I", block.ljust(_BLOCK_BYTES, b"\0")))
    state = [*chain, *_IV[:4], 0, 0, len(block), flags]
    for _ in range(7):
        for i, (a, b, c, d) in enumerate(_COLUMNS + _DIAGONALS):
            _mix(state, a, b, c, d, words[2 * i], words[2 * i + 1])
        words = [words[i] for i in _PERMUTATION]
    return tuple(state[i] ^ state[i + 8] for i in range(8))


def _mix(state: list[int], a: int, b: int, c: int, d: int, x: int, y: int) -> None:
    for word, first, second in ((x, 16, 12), (y, 8, 7)):
        state[a] = (state[a] + state[b] + word) & _WORD
        state[d] = _rotated(state[d] ^ state[a], first)
        state[c] = (state[c] + state[d]) & _WORD
        state[b] = _rotated(state[b] ^ state[c], second)


def _rotated(word: int, bits: int) -> int:
    return (word >> bits | word << (32 - bits)) & _WORD
