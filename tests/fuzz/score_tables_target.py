"""Score tables of a mail filter: bytes that are damaged raise a ValueError, or score texts."""

from __future__ import annotations

import math

from deciban import _kernels
from tests.kernels.test_mail_kernels import EXAMPLE, tables

TEXTS = ("Buy lunch, buy it now", "", None, "\ud800 lunch")


def seeds() -> list[bytes]:
    shares = tables([[-1.0, 2.0], [0.5, -0.25]], [[0.0, 0.0], [0.0, 0.0]], share=0.01, needed=(1,), column=1)
    return [EXAMPLE, shares]


def run(data: bytes) -> None:
    try:
        scorer = _kernels.TermScorer(data)
        columns, classes = scorer.columns, scorer.classes  # names that are not UTF-8 are a ValueError too
    except ValueError:
        return
    for best in scorer.best([dict.fromkeys(columns, text) for text in TEXTS]):
        if best is not None and not (best[0] < len(classes) and (0 <= best[1] <= 1 or math.isnan(best[1]))):
            raise AssertionError(f"{best} is no class with a probability")
