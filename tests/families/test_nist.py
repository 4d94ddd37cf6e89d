"""NIST StRD univariate summary statistics: certified means and standard deviations, through the Gaussian family.

https://www.itl.nist.gov/div898/strd/univ/homepage.html. Two demands on each: as many digits of the certified value as a
double can hold (what the exact answer from the parsed doubles has, less one), and the exact answer from the parsed
doubles itself, but for rounding.
"""

import os
from pathlib import Path

import mpmath
import numpy as np
import pytest

from deciban.families import Context, Gaussian
from tests.exact import mean_and_squares

CERTIFIED = {  # mean, standard deviation (n − 1)
    "Lottery": ("518.958715596330", "291.699727470969"),
    "Lew": ("-177.435000000000", "277.332168044316"),
    "Mavro": ("2.00185600000000", "0.000429123454003053"),
    "Michelso": ("299.852400000000", "0.0790105478190518"),
    "NumAcc1": ("10000002", "1"),
    "NumAcc2": ("1.2", "0.1"),
    "NumAcc3": ("1000000.2", "0.1"),
    "NumAcc4": ("10000000.2", "0.1"),
}


def around(middle):
    """`middle`, then one tenth below and above it, 500 times; as decimals, parsed."""
    return [float(f"{middle}.2"), *[float(f"{middle}.{tenth}") for _ in range(500) for tenth in (1, 3)]]


GENERATED = {
    "NumAcc1": [10000001.0, 10000003.0, 10000002.0],
    "NumAcc2": around(1),
    "NumAcc3": around(1000000),
    "NumAcc4": around(10000000),
}


def read(name):
    folder = os.environ.get("DECIBAN_DATA")
    if folder is None:
        pytest.skip("DECIBAN_DATA does not say where the data sets are")
    return [float(line) for line in (Path(folder) / "nist" / f"{name}.csv").read_text().split()[1:]]


FAMILY, CONTEXT = Gaussian(ddof=1), Context(("all",), ("y",))


def collect(values):
    x = np.array(values, dtype=np.float64).reshape(-1, 1)
    return FAMILY.collect(x, np.zeros(len(x), np.int32), None, 1)


def at_once(values):
    return collect(values)


def one_row_at_a_time(values):
    total = collect([])
    for value in values:
        total = total + collect([value])
    return total


def from_seven_parts(values):
    total = collect(values[3::7])
    for i in (6, 0, 2, 5, 1, 4):
        total = collect(values[i::7]) + total
    return total


def after_forgetting_others(values):
    others = 1e8 + np.random.default_rng(0).uniform(-1, 1, 1000)
    return (collect(values) + collect(others)) - collect(others)


def forgetting_row_by_row(values):
    others = 1e8 + np.random.default_rng(1).uniform(-1, 1, 100)
    total = collect([*values, *others])
    for other in others[::-1]:
        total = total - collect([other])
    return total


WAYS = [at_once, one_row_at_a_time, from_seven_parts, after_forgetting_others, forgetting_row_by_row]


def digits(result, certified):
    """The log relative error: how many leading digits agree."""
    error = abs((mpmath.mpf(result) - certified) / certified)
    return float("inf") if error == 0 else float(-mpmath.log10(error))


def check(name, values, way):
    params = FAMILY.estimate(way(values), CONTEXT)
    with mpmath.workdps(60):
        mean, squares = (mpmath.mpf(f.numerator) / f.denominator for f in mean_and_squares(values))
        exact = mean, mpmath.sqrt(squares / (len(values) - 1))
        result = params.mean.item(), np.sqrt(params.variance).item()
        for ours, best, certified in zip(result, exact, map(mpmath.mpf, CERTIFIED[name]), strict=True):
            assert abs(mpmath.mpf(ours) - best) <= 1e-15 * abs(best)
            assert digits(ours, certified) >= min(15.0, digits(best, certified)) - 1


@pytest.mark.parametrize("name", CERTIFIED)
def test_certified_values(name):
    for way in WAYS:
        check(name, GENERATED.get(name) or read(name), way)


@pytest.mark.parametrize("name", GENERATED)
def test_generated_data_are_the_data(name):
    assert read(name) == GENERATED[name]
