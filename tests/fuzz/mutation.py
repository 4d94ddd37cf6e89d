"""Mutations of bytes that know nothing of a format."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

MAX_BYTES = 1 << 16
NUMBERS = (0, 1, -1, 2, 7, 8, 16, 32, 64, 127, 128, 255, 256, 1023, 32767, 65535, 65536, 1 << 24, 1 << 31, 1 << 40)
BYTES = b"\0\1\x7f\x80\xff \t\r\n\"'`,;|{}[]<>()=-+*/\\%@:.0129aAeExXzZ\xef\xbb\xbf\xc3\xed\xa0"


def mutated(data: bytes, random: Random, others: Sequence[bytes] = ()) -> bytes:
    """A few random changes; pieces of the other inputs are inserted as well."""
    changed = bytearray(data)
    for _ in range(1 << random.randrange(4)):
        random.choice(_CHANGES)(changed, random, others)
    return bytes(changed[:MAX_BYTES])


def _span(data: bytearray, random: Random) -> slice:
    start = random.randrange(len(data) + 1)
    return slice(start, min(len(data), start + random.choice((1, 1, 2, 4, 8, random.randrange(1, 65)))))


def _flip(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _set(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] = random.choice((random.randrange(256), random.choice(BYTES)))


def _insert(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    start = random.randrange(len(data) + 1)
    data[start:start] = bytes(random.choice(BYTES) for _ in range(random.choice((1, 1, 2, 3, 16))))


def _delete(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    del data[_span(data, random)]


def _repeat(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    span = _span(data, random)
    data[span.start : span.start] = data[span] * random.choice((1, 1, 2, 10, 100))


def _truncate(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    if random.random() < 0.2:
        del data[random.randrange(len(data) + 1) :]


def _number(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    width, value = random.choice((1, 2, 4, 8)), random.choice(NUMBERS) * random.choice((1, -1))
    number = (value % (1 << 8 * width)).to_bytes(width, random.choice(("little", "big")))
    start = random.randrange(max(1, len(data) - width + 1))
    start -= start % width if random.random() < 0.5 else 0
    data[start : start + width] = number


def _splice(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    if others:
        other = bytearray(random.choice(others))
        data[_span(data, random)] = other[_span(other, random)]


def _join(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    if others and random.random() < 0.2:
        other = random.choice(others)
        data[random.randrange(len(data) + 1) :] = other[random.randrange(len(other) + 1) :]


_CHANGES = (_flip, _set, _insert, _delete, _repeat, _truncate, _number, _splice, _join)
