"""Weights that were fitted when a model had far fewer training rows than it has now."""

from __future__ import annotations

from deciban.errors import warn

TIMES = 4  # as many rows as the weights were fitted with: then they are out of date
ENOUGH = 200_000  # rows: weights that were fitted with so many hardly change with more


def is_outdated(now: float, fitted_with: float) -> bool:
    """Whether weights fitted when a model had `fitted_with` training rows should be refitted.

    Weights depend on how reliable the evidence is, and so on the number of training rows; not on how many of them the
    weights were fitted on, which for a large table is a sample of bounded size.

    >>> is_outdated(1200, 300), is_outdated(1201, 300), is_outdated(10_000_000, 1_000_000)
    (False, True, False)
    """
    return now > TIMES * fitted_with and fitted_with < ENOUGH


def warn_of_outdated(now: float, fitted_with: float) -> None:
    warn(
        f"the model has learned {now:,.0f} rows, and its weights were fitted when it had learned {fitted_with:,.0f}: "
        "refit them with model.refit_weights(X, y), or `deciban refit-weights MODEL ROWS`, on rows that it has learned"
    )


def merged(rows: tuple[float, float], fitted_with: tuple[float, float]) -> float:
    """How many training rows the mean weights of two models were fitted with, averaged over the rows of both.

    Ten models of 100 rows each add up to one of 1,000 rows, with weights that suit the evidence of 100.

    >>> merged((100.0, 900.0), (100.0, 100.0)), merged((10.0, 30.0), (10.0, 30.0))
    (100.0, 25.0)
    """
    total = sum(rows)
    if not total or fitted_with[0] == fitted_with[1]:
        return max(fitted_with)
    return sum(n * with_rows for n, with_rows in zip(rows, fitted_with, strict=True)) / total
