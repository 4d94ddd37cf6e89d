"""Scales of numbers with long tails: when they bend, where they are marked, and that charts follow them."""

import numpy as np
import pytest

import deciban as db
from deciban.report import report_of
from deciban.report.axis_scales import MOST_TICKS, NARROW, bins_between, bins_of_rows, scale_of, spread


def symlog(x, constant):
    return np.sign(x) * np.log1p(np.abs(x) / constant)


@pytest.mark.parametrize(
    "x",
    [
        np.zeros(50),
        np.full(50, 7.0),
        np.linspace(-5, 5, 50),
        np.random.default_rng(0).normal(size=500),
        np.random.default_rng(0).normal(1e6, 1.0, size=500),
        np.array([0.0] * 40 + [1.0] * 10),
    ],
    ids=["zeros", "constant", "even", "normal", "far from 0", "few ones"],
)
def test_an_even_scale_will_do(x):
    assert scale_of(x) is None


@pytest.mark.parametrize(
    "x",
    [
        np.random.default_rng(1).lognormal(0, 3, 500),
        -np.random.default_rng(1).lognormal(0, 3, 500),
        np.random.default_rng(2).standard_cauchy(2000) * 1e-9,
        np.array([0.0] * 900 + list(np.geomspace(1, 1e5, 100))),
        np.array([1.0] * 50 + [1e9]),
    ],
    ids=["amounts", "debts", "both sides", "mostly 0", "one far away"],
)
def test_a_long_tail_is_bent(x):
    scale = scale_of(x)
    ticks = np.array(scale["ticks"])
    assert 1 < len(ticks) <= MOST_TICKS
    assert (np.diff(ticks) > 0).all()
    assert x.min() <= ticks[0]
    assert ticks[-1] <= x.max()
    powers = np.log10(np.abs(ticks[ticks != 0]))
    np.testing.assert_allclose(powers, np.round(powers), atol=1e-12)
    asked = spread(x.min(), x.max(), 65, scale)
    assert (asked[0], asked[-1]) == (x.min(), x.max())
    apart = np.diff(symlog(asked, scale["constant"]))
    np.testing.assert_allclose(apart[1:-1], apart[1], rtol=1e-6)  # as far from one another, on the scale


@pytest.mark.parametrize("x", [[1e-320, 1e300], [-1.7e308, 1.0, 1.7e308], [5e-324] * 20 + [1.0]])
def test_numbers_at_the_ends_of_what_there_is(x):
    x = np.array(x)
    scale = scale_of(x)
    assert scale is None or np.isfinite([scale["constant"], *scale["ticks"]]).all()
    assert np.isfinite(spread(x.min(), x.max(), 9, scale)).all()


def test_a_number_that_many_rows_have_is_a_bin_of_its_own():
    rng = np.random.default_rng(5)
    x = np.where(rng.random(2000) < 0.8, 0.0, rng.uniform(10, 100, 2000))
    edges = bins_of_rows(x, np.ones(2000), None)
    rows = np.bincount(bins_between(edges, x))
    assert rows[0] == (x == 0).sum()
    assert len(rows) == len(edges) - 1
    others = rows[1:-1]  # equally many, as near as a row
    assert others.min() >= (2000 - rows[0]) / 19
    assert others.max() <= (2000 - rows[0]) / 19 + 2


def test_no_bin_is_too_narrow_to_be_seen():
    x = np.append(np.random.default_rng(6).normal(0, 0.01, 1000), [-10.0, 10.0])
    edges = bins_of_rows(x, np.ones(1002), None)
    assert np.diff(edges).min() > 20 / NARROW / 2  # between the middles of gaps
    assert (np.diff(edges) > 0).all()


@pytest.mark.parametrize("x", [[], [3.0], [3.0, 3.0], [1.0, 2.0], [-1.7e308, 1.7e308]])
def test_few_numbers_have_bins(x):
    edges = bins_of_rows(np.array(x), np.ones(len(x)), None)
    assert len(bins_between(edges, np.array(x))) == len(x)
    assert (edges[0], edges[-1]) == ((x[0], x[-1]) if x else (0, 0))


@pytest.fixture(scope="module")
def amounts():
    """Money: most have none, a few have very much."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 800)
    money = np.where(rng.random(800) < 0.5, 0.0, rng.lognormal(3 + y, 2.5).round(2))
    return np.column_stack([money, rng.normal(y, 1.0)]), y


@pytest.mark.parametrize(
    "family", [db.families.Gaussian(), db.families.Binned("equal-frequency")], ids=["numbers", "steps"]
)
def test_charts_are_drawn_on_the_scale_of_their_column(amounts, family):
    X, y = amounts
    report = report_of(db.NaiveBayes(family).fit(X, y), X, y)
    bent, even = sorted(report.figures["evidence"]["columns"], key=lambda column: column["name"])
    assert even["scale"] is None
    scales = {name: {str(scale.get("type")) for scale in scales_of(report, name)} for name in ("0", "1")}
    assert scales == {"0": {"symlog"}, "1": {"None"}}
    assert {scale["constant"] for scale in scales_of(report, "0")} == {bent["scale"]["constant"]}


def scales_of(report, name):
    """Of the numbers, in all layers of a column's chart."""
    spec = report.plot_column(name).to_dict()
    layers = [spec, *inner(spec)]
    return [layer["encoding"]["x"]["scale"] for layer in layers if "scale" in layer.get("encoding", {}).get("x", {})]


def inner(spec):
    for layer in [*spec.get("layer", ()), *spec.get("vconcat", ())]:
        yield layer
        yield from inner(layer)
