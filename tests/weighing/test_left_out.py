"""Rows that are left out: what all pieces say of them, and which rows can be judged so."""

import numpy as np
import pytest

from deciban.errors import DecibanError, NegativeEvidence
from deciban.sources.sampling import row_keys
from deciban.weighing import left_out
from deciban.weighing.left_out import LeftOut, places_of
from deciban.weighing.readers import readers_of
from tests.weighing.made import collected, gathered, learned, mixed, sampled, together


def keys_of(model, sample):
    return row_keys(sample.frame, model.schema.places(sample.frame), 0)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("known", [True, False])
def test_evidence_is_gathered_piece_by_piece(classes, known):
    model, sample = learned(classes=classes)
    rows = LeftOut.of(model, sample, 0, learned=known)
    evidence, pieces, keys = gathered(model, sample, learned=known)
    np.testing.assert_array_equal(keys, keys_of(model, sample))
    assert len({(piece.kind, piece.columns) for piece in pieces}) == len(pieces)
    assert {"value", "pair", "forest", "linear", "quadratic", "normal", "present"} <= {piece.kind for piece in pieces}
    at = 0
    for block, reader in readers_of(model):
        ((first, found),) = rows.parts(block, reader)
        assert first == 0
        for p in range(len(reader.pieces)):
            if classes == 2:
                np.testing.assert_array_equal(evidence.values[0, :, at + p], found[:, p, 1] - found[:, p, 0])
            else:
                np.testing.assert_array_equal(evidence.values[:, :, at + p].T, found[:, p])
        at += len(reader.pieces)
    assert at == len(pieces)
    expected = np.empty((len(keys), classes))
    for i, y in enumerate(sample.labels.codes):
        counts = np.bincount(sample.labels.codes) - (np.arange(classes) == y if known else 0)
        expected[i] = np.log(counts / counts.sum())
    offset = expected[:, 1:] - expected[:, :1] if classes == 2 else expected
    np.testing.assert_allclose(evidence.offset, offset, rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("hidden", [{"code"}, {"width"}, {"left", "width"}])
def test_hidden_columns_are_read_as_unknown_cells(hidden, classes):
    """Of new rows: as values never seen, and as missing numbers of a column in which none was missing."""
    model, _ = learned(classes=classes)
    X, y = mixed(seed=1, classes=classes)
    readers, names = readers_of(model), model.schema.names
    rows = LeftOut.of(model, sampled(X, y), 0, learned=False)
    whole, pieces, _ = rows.evidence(readers)
    columns = frozenset(names.index(name) for name in hidden)
    found = rows.hiding(whole, readers, columns)
    unknown = X.assign(**{name: np.nan if name == "width" else "never seen" for name in hidden})
    expected = LeftOut.of(model, sampled(unknown, y), 0, learned=False).evidence(readers)[0]
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(found.labels, whole.labels)
    about = np.array([not columns.isdisjoint(piece.columns) for piece in pieces])
    np.testing.assert_array_equal(found.values[:, :, ~about], whole.values[:, :, ~about])


@pytest.mark.parametrize("name", ["code", "height"])
def test_training_rows_are_left_out_of_what_hidden_columns_leave(name):
    """Each row is counted with all of its cells, and a missing cell of a hidden column is no evidence either."""
    model, sample = learned()
    readers, hidden = readers_of(model), frozenset({model.schema.names.index(name)})
    rows = LeftOut.of(model, sample, 0)
    whole, pieces, _ = rows.evidence(readers)
    found = rows.hiding(whole, readers, hidden).values
    at = 0
    for block, reader in readers:
        ((_, expected),) = rows.parts(block, reader, hidden)
        for p, piece in enumerate(reader.pieces):
            values = found[:, :, at + p].T
            if piece.columns == tuple(hidden):
                assert not values.any()
            elif hidden.isdisjoint(piece.columns):
                np.testing.assert_array_equal(values, whole.values[:, :, at + p].T)
            else:
                np.testing.assert_array_equal(values, expected[:, p])
        at += len(reader.pieces)
    assert at == len(pieces)


def test_missing_cells_are_known_by_column():
    model, sample = learned()
    X, _ = mixed()
    found = LeftOut.of(model, sample, 0).missing(readers_of(model))
    assert found.keys() == set(range(len(X.columns)))
    for j, mask in found.items():
        np.testing.assert_array_equal(mask, X.iloc[:, j].isna())


def test_rows_in_portions_give_the_same_evidence(monkeypatch):
    model, sample = learned()
    expected = gathered(model, sample)[0].values
    monkeypatch.setattr(left_out, "CELLS", 300)
    np.testing.assert_array_equal(gathered(model, sample)[0].values, expected)


def test_of_too_many_rows_those_with_the_lowest_keys_are_weighed(monkeypatch):
    model, sample = learned()
    whole, pieces, _ = gathered(model, sample)
    monkeypatch.setattr(left_out, "MOST_CELLS", 3 * len(pieces) * 50)
    few, _, keys = gathered(model, sample)
    rows = np.argsort(keys_of(model, sample))[:50]  # no two rows are equal here
    assert len(rows) == 50
    np.testing.assert_array_equal(keys, keys_of(model, sample)[rows])
    np.testing.assert_array_equal(few.labels, whole.labels[rows])
    np.testing.assert_array_equal(few.values, whole.values[:, rows])


def test_rows_without_weight_and_of_unknown_classes_are_left_out():
    model, _ = learned()
    X, y = mixed()
    y = y.astype(object)
    y[:3] = "another"
    weights = np.ones(len(y))
    weights[2:5] = 0.0
    with pytest.raises(NegativeEvidence, match=r"a class that was never learned.*held_out=True"):
        LeftOut.of(model, sampled(X, y, weights), 0)
    new = LeftOut.of(model, sampled(X, y, weights), 0, learned=False)
    assert new.sample.numbers.tolist() == list(range(5, len(y)))
    weights[:2] = 0.0
    kept = LeftOut.of(model, sampled(X, y, weights), 0)
    assert kept.sample.numbers.tolist() == list(range(5, len(y)))
    np.testing.assert_array_equal(places_of(model.classes, sampled(X, y))[:5] < 0, [True] * 3 + [False] * 2)


@pytest.mark.parametrize("weight", [None, 0.5, 1.0, 2.0])
def test_the_only_row_of_a_class_has_no_evidence(weight):
    """Without it nothing is known of its class. A row of weight 2 is two rows, so one is left."""
    X, y = mixed(60)
    y = np.where(np.arange(60) == 7, "once", y)
    weights = None if weight is None else np.where(np.arange(60) == 7, weight, 1.0)
    sample = sampled(X, y, weights)
    model = collected(sample, together)
    rows = LeftOut.of(model, sample, 0)
    assert np.flatnonzero(rows.alone).tolist() == ([] if weight == 2.0 else [7])
    evidence = gathered(model, sample)[0]
    assert np.isfinite(evidence.values).all()
    assert np.isfinite(evidence.offset).all()
    assert evidence.values[:, 7].any() == (weight == 2.0)
    once = model.classes.index("once")
    assert rows.prior(0.0)[7, once] == (1.0 / 60.0 if weight == 2.0 else 0.0)
    assert (np.delete(rows.prior(0.0)[:, once], 7) > 0).all()


def test_infinite_cells_are_named_with_their_rows():
    model, _ = learned()
    X, y = mixed()
    X.loc[17, "width"] = np.inf
    weights = np.where(np.arange(len(y)) < 5, 0.0, 1.0)
    for given in (None, weights):
        with pytest.raises(DecibanError, match="column 'width', row 17: inf is infinite"):
            gathered(model, sampled(X, y, given))


@pytest.mark.parametrize(("column", "value"), [("width", 99.0), ("code", "strange"), ("height", -99.0)])
def test_a_row_that_was_never_learned_is_named(column, value):
    """Were it left out, counts would fall below zero."""
    model, _ = learned()
    X, y = mixed()
    X.loc[17, column] = value
    with pytest.raises(NegativeEvidence, match="row 17"):
        gathered(model, sampled(X, y))
    new = gathered(model, sampled(X, y), learned=False)[0]
    assert np.isfinite(new.values).all()
