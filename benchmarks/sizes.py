"""The sizes of all jobs, in one place."""

from __future__ import annotations

from dataclasses import dataclass, replace

SEED = 20240229
MISSING = 0.05  # fraction of missing cells, in jobs with missing values
HEAD = 1_000  # rows on which predictions are compared with the peer's
READ_THREADS = 2  # threads of the plain read that bounds a fit
QUICK = 20  # --quick divides the rows by this


@dataclass(frozen=True)
class Size:
    rows: int
    columns: int
    classes: int

    def shrunk(self, by: int) -> Size:
        return replace(self, rows=self.rows // by)

    def __str__(self) -> str:
        return f"{short(self.rows)}×{short(self.columns)}"


def short(n: int) -> str:
    if n >= 1_000_000:
        return f"{n / 1_000_000:g}M"
    return f"{n / 1_000:g}k" if n >= 1_000 else str(n)


GAUSSIAN = Size(2_000_000, 50, 10)
WIDE = Size(200_000, 500, 100)
CODES = Size(2_000_000, 20, 5)
CODE_VALUES = 10
COUNTS = Size(500_000, 50_000, 10)
COUNTS_PER_ROW = 100
DISCRIMINANT = Size(500_000, 100, 5)
LOGISTIC = Size(500_000, 100, 2)
SOFTMAX = Size(500_000, 100, 5)
GRID = 28  # pixels along each side of a digit
DIGITS = Size(60_000, GRID**2, 10)
TEXT = Size(200_000, 100_000, 2)
WORDS_PER_ROW = 50
LEFT_OUT = Size(1_000_000, 50, 2)
FOLDS = Size(500_000, 50, 2)
FOLD_COUNT = 10
SCORES = Size(10_000_000, 1, 2)
TABLE = Size(1_000_000, 20, 4)
TABLE_LEVELS = 12
FILES = Size(5_000_000, 12, 3)
PREDICTED = Size(2_000_000, 12, 3)
LONG_CSV = Size(10_000_000, 12, 3)
EVIDENCE = Size(1_000_000, 30, 2)
EVIDENCE_LIMIT_MB = 800.0
BOOSTED = Size(160_000, 30, 2)  # rows of mixed columns, for boosting libraries too
MANY_BOOSTED = Size(800_000, 30, 2)
BOOSTED_PREDICT = Size(200_000, 30, 2)
JUDGED = 20_000  # further rows, for the log-loss
SINGLE_ROWS = 300  # predictions of one row, for a median
EVIDENCE_TIMES = 100.0  # limit: time / that of NaiveBayes
EXPLAIN = Size(100_000, 14, 2)
EXPLAIN_TIMES = 2.0  # limit: time / that of predict_proba
DOCUMENTS = Size(100_000, 50_000, 2)  # of about 700 bytes; columns are words
WORDS_PER_DOCUMENT = 108
MAILS = 1_000
MEMORY_LIMIT_MB = 100.0
