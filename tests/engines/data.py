"""What the engines are tested on: columns of every kind, models of every family, and what makes two models equal."""

import random
from functools import cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import deciban as db
from deciban.statistics import Scatter
from tests.laws import flattened

f = db.families
EPS = float(np.finfo(np.float64).eps)
ULPS = 16  # of covariances; random partitions gave up to 5


def mixed(rows=340, seed=0):
    """Numbers, integers, booleans and text, all with missing values; weights, some of them 0; a rare class and city."""
    lot = random.Random(seed)

    def with_missing(values):
        return [None if lot.random() < 0.1 else value for value in values]

    shift = {"no": 0, "perhaps": 1, "yes": 2, "rare": 3}
    classes = ["rare" if 60 <= i < 64 else lot.choice(["no", "perhaps", "yes"]) for i in range(rows)]
    words = ["buy", "now", "cheap", "hello", "meeting", "Ünïcode", "tomorrow"]
    return pa.table(
        {
            "height": with_missing(lot.gauss(170 + 5 * shift[c], 10) for c in classes),
            "tiny": with_missing(lot.gauss(shift[c], 1) * 1e-100 for c in classes),
            "age": pa.array(with_missing(lot.randrange(18, 90 + shift[c]) for c in classes), pa.int64()),
            "smoker": with_missing(lot.random() < 0.2 + 0.2 * shift[c] for c in classes),
            "city": [*with_missing(lot.choice(["Köln", 'a "b", c', "two\nlines", "007"]) for _ in classes[1:]), "Ulm"],
            "visits": pa.array(with_missing(lot.randrange(6 + shift[c]) for c in classes), pa.int64()),
            "wait": with_missing(lot.expovariate(1 + shift[c]) + 1e-9 for c in classes),
            "note": with_missing(" ".join(lot.choices(words[shift[c] :], k=lot.randrange(1, 9))) for c in classes),
            "weight": [lot.choice([0.0, 0.1, 1.0, 2.5]) * (not 95 <= i < 110) for i in range(rows)],
            "fold": pa.array([lot.randrange(4) for _ in classes], pa.int64()),
            "class": classes,
        }
    )


TABLE = mixed()
# Uneven: the fourth is empty, the class "rare" is in the third only, and in the sixth all weights are 0.
CUTS = (0, 1, 41, 70, 70, 95, 110, 250, 340)


def cut(table, cuts=CUTS):
    """The parts of a table."""
    return [table.slice(start, stop - start) for start, stop in pairwise(cuts)]


NUMBERS, CELLS = ("height", "tiny", "age", "visits", "wait"), ("smoker", "city")
ALL = (*NUMBERS, *CELLS)
MODELS = {  # what makes each, and the columns that it reads
    "Gaussian, Categorical, Bernoulli": (lambda: db.NaiveBayes(), ALL),
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
    "missing as a category": (lambda: db.NaiveBayes(missing="category"), ALL),
    "selected smoothing": (lambda: db.NaiveBayes(smoothing="auto"), CELLS),
    "selected families": (lambda: db.NaiveBayes("auto"), ("height", "visits", *CELLS)),
    "diagonal": (lambda: db.GaussianDiscriminant("diagonal"), NUMBERS),
}
JOINT = {
    "shared": (lambda: db.GaussianDiscriminant(), ("height", "age", "wait")),
    "per-class": (lambda: db.GaussianDiscriminant("per-class", shrinkage=0.1), ("height", "age", "wait")),
    "selected shrinkage": (lambda: db.GaussianDiscriminant(shrinkage="auto"), ("height", "age", "wait")),
    "a joint normal among others": (
        lambda: db.NaiveBayes({("height", "age"): f.MultivariateGaussian()}),
        ("height", "age", *CELLS),
    ),
}
SEVERAL = {  # several families in one model, for engines that take a second for each
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
        (*ALL, "note"),
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
    "complement, and selected smoothing": (
        lambda: db.NaiveBayes({"note": f.Text("complement")}, smoothing="auto"),
        ("note", *CELLS),
    ),
}
KINDS = MODELS | JOINT | SEVERAL


def of(columns, table=TABLE, *more):
    """Some of the columns, with label and weight."""
    return table.select([*columns, *more, "weight", "class"])


def two_classes(columns, *more):
    """150 rows of two classes, for models that take long, and where they are cut."""
    table = of(columns, TABLE, *more)
    return table.filter(pc.is_in(table["class"], pa.array(["no", "yes"]))).slice(0, 150), (0, 1, 41, 41, 95, 150)


def selected(kind, weighted=True):
    """What makes a model, the table that it reads, and the name of the weights."""
    make, columns = KINDS[kind]
    return (make, of(columns), "weight") if weighted else (make, of(columns).drop(["weight"]), None)


@cache
def in_memory(kind, weighted=True):
    """The model of all rows in one place, which no test changes."""
    make, table, weight = selected(kind, weighted)
    return make().fit(table, "class", sample_weight=weight)


PLAIN = "Gaussian, Categorical, Bernoulli"  # of all columns but text


def evidence(model, exact=False):
    """All sufficient statistics, to the last bit; with `exact` those that are not rounded."""
    generative = model.generative_
    blocks = [b for b in generative.blocks if not (exact and isinstance(b.statistic, Scatter))]
    arrays = [generative.counts.words, *(a for b in blocks for a in flattened(b.statistic).values())]
    return (
        generative.schema,
        generative.classes,
        [b.plan for b in blocks],
        [(a.shape, a.tobytes()) for a in map(np.asarray, arrays)],
    )


def assert_same_bits(model, expected, table):
    assert evidence(model) == evidence(expected)
    assert model.predict_proba(table).tobytes() == expected.predict_proba(table).tobytes()
    assert model.classes_.dtype == expected.classes_.dtype


def assert_close(model, expected, table, tolerance):
    """Of models with joint normals: all else is exact, and so are the predicted classes."""
    assert evidence(model, exact=True) == evidence(expected, exact=True)
    close_scatters(model, expected)
    same_probabilities(model.predict_proba(table), expected.predict_proba(table), tolerance)
    assert model.predict(table).tolist() == expected.predict(table).tolist()


def close_scatters(model, expected):
    """Of joint normals: counts are exact; means and covariances agree to the rounding of their terms."""
    pairs = [[b.statistic for b in m.generative_.blocks if isinstance(b.statistic, Scatter)] for m in (model, expected)]
    for a, b in zip(*pairs, strict=True):
        assert a.count.words.tobytes() == b.count.words.tobytes()
        assert a.skipped.words.tobytes() == b.skipped.words.tobytes()
        size = np.sqrt(np.diagonal(b.within, axis1=1, axis2=2))
        assert (np.abs(a.mean - b.mean) <= EPS * (np.abs(b.mean) + size)).all()
        assert (np.abs(a.within - b.within) <= ULPS * EPS * size[:, :, np.newaxis] * size[:, np.newaxis, :]).all()


def rounding(kind):
    """Of probabilities: 2e-15 was seen, and 4e-12 where the search for the shrinkage ends at another digit."""
    return 1e-10 if kind == "selected shrinkage" else 1e-13


def same_probabilities(p, q, tolerance):
    np.testing.assert_allclose(p, q, rtol=tolerance, atol=tolerance)


def replace_cell(parts, number, column, row, value):
    """The parts, with another value in one cell."""
    parts, part = list(parts), parts[number]
    cells, place = part[column].to_pylist(), part.schema.get_field_index(column)
    cells[row] = value
    parts[number] = part.set_column(place, column, pa.array(cells, part.schema.field(column).type))
    return parts


def impossible_rows():
    """A uniform model, and rows of which 3 (in three of five parts) are outside of its range."""
    table = pa.table({"x": [float(i % 10) for i in range(60)], "class": ["a", "b"] * 30})
    model = db.NaiveBayes(f.Uniform()).fit(table, "class")
    x = [50.0 if i in (12, 25, 47) else float(i % 10) for i in range(60)]
    return model, cut(table.set_column(0, "x", pa.array(x)), (0, 10, 20, 30, 40, 60))
