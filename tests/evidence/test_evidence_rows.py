"""EvidenceRows: the evidence of all pieces, leave-one-out for training rows."""

import numpy as np
import pytest

from deciban.data.sampling import row_keys
from deciban.errors import DecibanError, NegativeEvidence
from deciban.evidence import evidence_rows
from deciban.evidence.evidence_by_block import evidence_by_block
from deciban.evidence.evidence_rows import EvidenceRows
from tests.evidence.reference import collected, gathered, learned, mixed, sampled, together


def keys_of(model, sample):
    return row_keys(sample.frame, model.schema.column_refs(sample.frame), 0)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("known", [True, False])
def test_evidence_is_gathered_piece_by_piece(classes, known):
    model, sample = learned(classes=classes)
    rows = (EvidenceRows.of_training if known else EvidenceRows.held_out)(model, sample, 0)
    evidence, pieces, keys = gathered(model, sample, held_out=not known)
    np.testing.assert_array_equal(keys, keys_of(model, sample))
    assert len({(piece.kind, piece.columns) for piece in pieces}) == len(pieces)
    assert {"value", "pair", "forest", "linear", "quadratic", "normal", "present"} <= {piece.kind for piece in pieces}
    at = 0
    for block, source in evidence_by_block(model):
        ((first, actual),) = rows.evidence_batches(block, source)
        assert first == 0
        for p in range(len(source.pieces)):
            if classes == 2:
                np.testing.assert_array_equal(evidence.values[0, :, at + p], actual[:, p, 1] - actual[:, p, 0])
            else:
                np.testing.assert_array_equal(evidence.values[:, :, at + p].T, actual[:, p])
        at += len(source.pieces)
    assert at == len(pieces)
    expected = np.empty((len(keys), classes))
    for i, y in enumerate(sample.labels.codes):
        counts = np.bincount(sample.labels.codes) - (np.arange(classes) == y if known else 0)
        expected[i] = np.log(counts / counts.sum())
    offset = expected[:, 1:] - expected[:, :1] if classes == 2 else expected
    np.testing.assert_allclose(evidence.offset, offset, rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("hidden", [{"code"}, {"width"}, {"left", "width"}])
def test_hidden_features_are_read_as_unknown_values(hidden, classes):
    """Of new rows: as values never seen, and as missing numbers of a column in which none was missing."""
    model, _ = learned(classes=classes)
    X, y = mixed(seed=1, classes=classes)
    sources, names = evidence_by_block(model), model.schema.names
    rows = EvidenceRows.held_out(model, sampled(X, y), 0)
    whole, pieces, _ = rows.evidence(sources)
    columns = frozenset(names.index(name) for name in hidden)
    actual = rows.evidence_hiding(whole, sources, columns)
    unknown = X.assign(**{name: np.nan if name == "width" else "never seen" for name in hidden})
    expected = EvidenceRows.held_out(model, sampled(unknown, y), 0).evidence(sources)[0]
    np.testing.assert_allclose(actual.values, expected.values, rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(actual.labels, whole.labels)
    about = np.array([not columns.isdisjoint(piece.columns) for piece in pieces])
    np.testing.assert_array_equal(actual.values[:, :, ~about], whole.values[:, :, ~about])


@pytest.mark.parametrize("name", ["code", "height"])
def test_training_rows_are_left_out_where_features_are_hidden(name):
    """Each row is counted with all of its values, and a missing value of a hidden feature is no evidence either."""
    model, sample = learned()
    sources, hidden = evidence_by_block(model), frozenset({model.schema.names.index(name)})
    rows = EvidenceRows.of_training(model, sample, 0)
    whole, pieces, _ = rows.evidence(sources)
    actual = rows.evidence_hiding(whole, sources, hidden).values
    at = 0
    for block, source in sources:
        ((_, expected),) = rows.evidence_batches(block, source, hidden)
        for p, piece in enumerate(source.pieces):
            values = actual[:, :, at + p].T
            if piece.columns == tuple(hidden):
                assert not values.any()
            elif hidden.isdisjoint(piece.columns):
                np.testing.assert_array_equal(values, whole.values[:, :, at + p].T)
            else:
                np.testing.assert_array_equal(values, expected[:, p])
        at += len(source.pieces)
    assert at == len(pieces)


def test_missing_values_are_known_by_feature():
    model, sample = learned()
    X, _ = mixed()
    actual = EvidenceRows.of_training(model, sample, 0).missing(evidence_by_block(model))
    assert actual.keys() == set(range(len(X.columns)))
    for j, mask in actual.items():
        np.testing.assert_array_equal(mask, X.iloc[:, j].isna())


def test_rows_in_portions_give_the_same_evidence(monkeypatch):
    model, sample = learned()
    expected = gathered(model, sample)[0].values
    monkeypatch.setattr(evidence_rows, "BATCH_CELLS", 300)
    np.testing.assert_array_equal(gathered(model, sample)[0].values, expected)


def test_too_many_rows_are_subsampled_by_the_lowest_keys(monkeypatch):
    model, sample = learned()
    whole, pieces, _ = gathered(model, sample)
    monkeypatch.setattr(evidence_rows, "MOST_CELLS", 3 * len(pieces) * 50)
    few, _, keys = gathered(model, sample)
    rows = np.argsort(keys_of(model, sample))[:50]  # no two rows are equal here
    assert len(rows) == 50
    np.testing.assert_array_equal(keys, keys_of(model, sample)[rows])
    np.testing.assert_array_equal(few.labels, whole.labels[rows])
    np.testing.assert_array_equal(few.values, whole.values[:, rows])


def test_rows_without_weight_and_of_unknown_classes_are_dropped():
    model, _ = learned()
    X, y = mixed()
    y = y.astype(object)
    y[:3] = "another"
    weights = np.ones(len(y))
    weights[2:5] = 0.0
    with pytest.raises(NegativeEvidence, match=r"a class that the model has never seen.*held_out=True"):
        EvidenceRows.of_training(model, sampled(X, y, weights), 0)
    new = EvidenceRows.held_out(model, sampled(X, y, weights), 0)
    assert new.sample.numbers.tolist() == list(range(5, len(y)))
    weights[:2] = 0.0
    kept = EvidenceRows.of_training(model, sampled(X, y, weights), 0)
    assert kept.sample.numbers.tolist() == list(range(5, len(y)))


@pytest.mark.parametrize("weight", [None, 0.5, 1.0, 2.0])
def test_the_only_row_of_a_class_has_no_evidence(weight):
    """Without it nothing is known of its class. A row of weight 2 is two rows, so one is left."""
    X, y = mixed(60)
    y = np.where(np.arange(60) == 7, "once", y)
    weights = None if weight is None else np.where(np.arange(60) == 7, weight, 1.0)
    sample = sampled(X, y, weights)
    model = collected(sample, together)
    rows = EvidenceRows.of_training(model, sample, 0)
    assert np.flatnonzero(rows.alone).tolist() == ([] if weight == 2.0 else [7])
    evidence = gathered(model, sample)[0]
    assert np.isfinite(evidence.values).all()
    assert np.isfinite(evidence.offset).all()
    assert evidence.values[:, 7].any() == (weight == 2.0)
    once = model.classes.index("once")
    assert rows.prior(0.0)[7, once] == (1.0 / 60.0 if weight == 2.0 else 0.0)
    assert (np.delete(rows.prior(0.0)[:, once], 7) > 0).all()


def test_infinite_values_are_named_with_their_rows():
    model, _ = learned()
    X, y = mixed()
    X.loc[17, "width"] = np.inf
    weights = np.where(np.arange(len(y)) < 5, 0.0, 1.0)
    for given in (None, weights):
        with pytest.raises(DecibanError, match="column 'width', row 17: inf is infinite"):
            gathered(model, sampled(X, y, given))


def test_a_row_that_is_no_training_row_is_named():
    """Were it left out, counts would fall below zero."""
    model, _ = learned()
    for column, value in (("width", 99.0), ("code", "strange"), ("height", -99.0)):
        X, y = mixed()
        X.loc[17, column] = value
        with pytest.raises(NegativeEvidence, match="row 17"):
            gathered(model, sampled(X, y))
        assert np.isfinite(gathered(model, sampled(X, y), held_out=True)[0].values).all()
