"""All kinds of evidence: shares of columns sum to what is added, and evidence is centred and the same in any batch."""

import numpy as np
import pytest

from deciban.evidence.block_evidence import Rows
from deciban.evidence.densities import MOST
from tests.evidence import test_combination_tables as combined
from tests.evidence import test_densities as densities
from tests.evidence import test_tables as tables

CASES = {name: (*case, densities.labels_of(3), (1e-9, 1e-8)) for name, case in densities.CASES.items()}
EXACT = tables.CASES | combined.CASES
CASES |= {name: (*case, tables.labels_of(3), (1e-10, 1e-10)) for name, case in EXACT.items()}


@pytest.mark.parametrize("name", CASES)
def test_shares_of_columns_sum_to_what_is_added(name):
    source, values, labels, (added, shared) = CASES[name]
    n, rng = len(labels), np.random.default_rng(13)
    weights = rng.exponential(size=(len(source.pieces), 3))
    out = np.full((n, 3), 0.5)
    source.scorer(weights)(values, out)
    expected = 0.5 + np.einsum("npk,pk->nk", source.evidence(Rows(values)), weights)
    np.testing.assert_allclose(out, expected, rtol=added, atol=added / 10)

    def shares_by(weights):
        shares = np.zeros((n, 12, 3))
        source.share_scorer()(values, weights, shares)
        return shares

    shares = shares_by(weights)
    np.testing.assert_allclose(0.5 + shares.sum(axis=1), expected, rtol=shared, atol=shared / 10)
    owned = sorted({j for piece in source.pieces for j in piece.columns})
    assert not np.delete(shares, owned, axis=1).any()
    of_rows = rng.exponential(size=(n, *weights.shape))
    each = np.stack([shares_by(of_rows[i])[i] for i in range(0, n, 5)])
    np.testing.assert_allclose(shares_by(of_rows)[::5], each, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_evidence_is_centred_and_independent_of_the_batch(name):
    source, values, labels, (tolerance, _) = CASES[name]
    exact = name in EXACT
    for rows in (Rows(values, labels), Rows(values)):
        evidence = source.evidence(rows)
        assert evidence.shape == (len(labels), len(source.pieces), 3)
        inside = np.abs(evidence).max(axis=2) < 0.999 * getattr(source, "most", MOST)  # where nothing was cut off
        assert inside.all() or not exact
        np.testing.assert_allclose(evidence.sum(axis=2)[inside], 0.0, atol=tolerance)
        assert inside.mean() > 0.5
        for i in (0, len(labels) - 1):
            alone = source.evidence(rows.take(slice(i, i + 1)))[0]
            np.testing.assert_allclose(alone, evidence[i], rtol=0 if exact else 1e-10, atol=0 if exact else 1e-12)
    assert source.n_parameters > 0
