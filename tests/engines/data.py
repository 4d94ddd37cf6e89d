"""What the engines are tried on: columns of every kind, models of every family, and what makes two of them equal."""

import random
from itertools import pairwise

import numpy as np
import pyarrow as pa

import deciban as db
from deciban.statistics import Scatter
from tests.laws import flattened

f = db.families
EPS = float(np.finfo(np.float64).eps)
ULPS = 16  # of covariances; up to 5 were met over random cuts


def mixed(rows=340, seed=0):
    """Numbers, integers, booleans and text, all with holes; weights, some of them 0; a class and a city of a few."""
    lot = random.Random(seed)

    def holes(values):
        return [None if lot.random() < 0.1 else value for value in values]

    shift = {"no": 0, "perhaps": 1, "yes": 2, "rare": 3}
    classes = ["rare" if 60 <= i < 64 else lot.choice(["no", "perhaps", "yes"]) for i in range(rows)]
    words = ["buy", "now", "cheap", "hello", "meeting", "Ünïcode", "tomorrow"]
    return pa.table(
        {
            "height": holes(lot.gauss(170 + 5 * shift[c], 10) for c in classes),
            "tiny": holes(lot.gauss(shift[c], 1) * 1e-100 for c in classes),
            "age": pa.array(holes(lot.randrange(18, 90 + shift[c]) for c in classes), pa.int64()),
            "smoker": holes(lot.random() < 0.2 + 0.2 * shift[c] for c in classes),
            "city": [*holes(lot.choice(["Köln", 'a "b", c', "two\nlines", "007"]) for _ in classes[1:]), "Ulm"],
            "visits": pa.array(holes(lot.randrange(6 + shift[c]) for c in classes), pa.int64()),
            "wait": holes(lot.expovariate(1 + shift[c]) + 1e-9 for c in classes),
            "note": holes(" ".join(lot.choices(words[shift[c] :], k=lot.randrange(1, 9))) for c in classes),
            "weight": [float(lot.choice([0, 0.1, 1, 2.5])) for _ in classes],
            "fold": pa.array([lot.randrange(4) for _ in classes], pa.int64()),
            "class": classes,
        }
    )


TABLE = mixed()
# One part is empty, the class "rare" is in one only, and in another all weights are 0.
CUTS = (0, 1, 20, 41, 70, 70, 95, 110, 140, 150, 160, 180, 200, 230, 250, 280, 300, 340)


def _weightless(table, start, stop):
    weights = table["weight"].to_numpy().copy()
    weights[start:stop] = 0
    return table.set_column(table.schema.get_field_index("weight"), "weight", pa.array(weights))


TABLE = _weightless(TABLE, 95, 110)


def cut(table, cuts=CUTS):
    """The parts of a table."""
    return [table.slice(start, stop - start) for start, stop in pairwise(cuts)]


NUMBERS, CELLS = ("height", "tiny", "age", "visits", "wait"), ("smoker", "city")
MODELS = {  # what makes each, and the columns that it reads
    "Gaussian, Categorical, Bernoulli": (lambda: db.NaiveBayes(), (*NUMBERS, *CELLS)),
    "Poisson": (lambda: db.NaiveBayes(f.Poisson()), ("visits", "age")),
    "Exponential": (lambda: db.NaiveBayes(f.Exponential()), ("wait",)),
    "Uniform": (lambda: db.NaiveBayes(f.Uniform()), ("height", "tiny")),
    "Binned, supervised": (lambda: db.NaiveBayes(f.Binned()), ("height", "age", "tiny")),
    "Binned, equal-width": (lambda: db.NaiveBayes(f.Binned("equal-width")), ("height", "age", "tiny")),
    "Binned, equal-frequency": (lambda: db.NaiveBayes(f.Binned("equal-frequency", cap=64)), ("height", "age")),
    "Categorical numbers": (lambda: db.NaiveBayes(f.Categorical()), ("age", "visits", "smoker", "city")),
    "Multinomial": (lambda: db.NaiveBayes({("age", "visits"): f.Multinomial()}), ("age", "visits")),
    "Bernoulli numbers": (lambda: db.NaiveBayes(f.Bernoulli(threshold=2.5)), ("visits", "wait")),
    "Text, multinomial": (lambda: db.NaiveBayes(f.Text()), ("note",)),
    "Text, bernoulli": (lambda: db.NaiveBayes(f.Text("bernoulli", characters=(2, 3))), ("note",)),
    "Text, complement": (lambda: db.NaiveBayes(f.Text("complement", words=(1, 2), hash_bits=10)), ("note",)),
    "missing as a category": (lambda: db.NaiveBayes(missing="category"), (*NUMBERS, *CELLS)),
    "smoothing by the data": (lambda: db.NaiveBayes(smoothing="auto"), CELLS),
    "families by the data": (lambda: db.NaiveBayes("auto"), ("height", "visits", *CELLS)),
    "diagonal": (lambda: db.GaussianDiscriminant("diagonal"), NUMBERS),
}
JOINT = {
    "shared": (lambda: db.GaussianDiscriminant(), ("height", "age", "wait")),
    "per-class": (lambda: db.GaussianDiscriminant("per-class", shrinkage=0.1), ("height", "age", "wait")),
    "shrinkage by the data": (lambda: db.GaussianDiscriminant(shrinkage="auto"), ("height", "age", "wait")),
    "a joint normal among others": (
        lambda: db.NaiveBayes({("height", "age"): f.MultivariateGaussian()}),
        ("height", "age", *CELLS),
    ),
}


# Several families in one model, for engines that take a second for each.
SEVERAL = {
    "each column another": (
        lambda: db.NaiveBayes(
            {
                "visits": f.Poisson(),
                "wait": f.Exponential(),
                "tiny": f.Uniform(),
                "age": f.Binned(),
                "height": f.Gaussian(),
                "smoker": f.Bernoulli(),
                "city": f.Categorical(),
                "note": f.Text(),
            }
        ),
        (*NUMBERS, *CELLS, "note"),
    ),
    "others, and missing as a category": (
        lambda: db.NaiveBayes(
            {
                ("age", "visits"): f.Multinomial(),
                "height": f.Binned("equal-frequency", cap=64),
                "note": f.Text("bernoulli", characters=(2, 3)),
            },
            missing="category",
        ),
        ("height", "age", "visits", "smoker", "city", "note"),
    ),
    "complement, and smoothing by the data": (
        lambda: db.NaiveBayes({"note": f.Text("complement")}, smoothing="auto"),
        ("note", *CELLS),
    ),
    "families by the data": (lambda: db.NaiveBayes("auto"), ("height", "visits", "city")),
}


def of(columns, table=TABLE, *more):
    """Some of the columns, with label and weight."""
    return table.select([*columns, *more, "weight", "class"])


def evidence(model, exact=False):
    """All that was learned, to the last bit; or all but sums of products, which are rounded."""
    found = model.generative_
    blocks = [b for b in found.blocks if not (exact and isinstance(b.statistic, Scatter))]
    arrays = [found.counts.words, *(a for b in blocks for a in flattened(b.statistic).values())]
    return (
        found.schema,
        found.classes,
        [b.plan for b in blocks],
        [(a.shape, a.tobytes()) for a in map(np.asarray, arrays)],
    )


def close_scatters(model, expected):
    """Of joint normals: counts are exact; means and covariances agree to some rounding of what they are made of."""
    pairs = [[b.statistic for b in m.generative_.blocks if isinstance(b.statistic, Scatter)] for m in (model, expected)]
    for a, b in zip(*pairs, strict=True):
        assert a.count.words.tobytes() == b.count.words.tobytes()
        assert a.skipped.words.tobytes() == b.skipped.words.tobytes()
        size = np.sqrt(np.diagonal(b.within, axis1=1, axis2=2))
        assert (np.abs(a.mean - b.mean) <= EPS * (np.abs(b.mean) + size)).all()
        assert (np.abs(a.within - b.within) <= ULPS * EPS * size[:, :, np.newaxis] * size[:, np.newaxis, :]).all()


def rounding(kind):
    """Of probabilities: 2e-15 was met, and 4e-12 where a search for the shrinkage ends at another digit."""
    return 1e-10 if kind == "shrinkage by the data" else 1e-13


def same_probabilities(p, q, tolerance):
    np.testing.assert_allclose(p, q, rtol=tolerance, atol=tolerance)


def spoiled(parts, number, column, row, value):
    """The parts, with one bad cell."""
    parts, part = list(parts), parts[number]
    cells, place = part[column].to_pylist(), part.schema.get_field_index(column)
    cells[row] = value
    parts[number] = part.set_column(place, column, pa.array(cells, part.schema.field(column).type))
    return parts
