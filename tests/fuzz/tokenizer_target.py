"""Terms of texts: the kernel against plain Python, for any bytes."""

from __future__ import annotations

import unicodedata
from typing import Any

from deciban.families import Text
from tests.kernels.test_text_kernels import KINDS, MAKER, VERSION, arrow_of, counted, decoded, expected_counts

CUTS: list[dict[str, Any]] = [  # the first byte of the input selects one
    {},
    {"words": (2, 3)},
    {"words": None, "characters": (1, 4)},
    {"words": (1, 2), "characters": (2, 3), "shapes": True},
    {"shapes": True},
]
TEXTS = [
    "Don't pay $1,000.50 for a Straße! \u00adsoft\u00ad 中文 😀👍🏽 e\u0301 ΣΊΣΥΦΟΣ ﬁn",
    "See HTTPS://www.Example.com/a?b=1, www.x.org, me.too+1@mail.example.com",
    "x" * 127 + " " + "y" * 128 + " " + "z" * 129 + " é" * 40,
    "\u0130stanbul \u1e9e \u2019quoted\u2019 1.2.3,4 ٣٤ \u200d\ufe0f a_b-c",
]


def seeds() -> list[bytes]:
    return [bytes([i]) + text.encode() for i in range(len(CUTS)) for text in TEXTS] + [b"\0a\xff\xc3 b\xed\xa0\x80c\0d"]


def run(data: bytes) -> None:
    cut = CUTS[data[0] % len(CUTS)] if data else {}
    if any(
        unicodedata.unidata_version != VERSION and MAKER.kind_of(ord(c)) != KINDS[ord(c)] for c in decoded(data[1:])
    ):
        return  # a character that Python's version of Unicode has otherwise
    documents = data[1:].split(b"\n")
    labels = [i % 2 for i in range(len(documents))]
    result = counted(arrow_of(documents), Text(**cut).cut, _codes(labels), 2)
    expected = expected_counts(documents, cut, labels, 2)
    if result != expected:
        raise AssertionError(f"the kernel gives {result}, and Python gives {expected}")


def _codes(labels: list[int]) -> Any:
    import numpy as np

    return np.array(labels, np.int32)
