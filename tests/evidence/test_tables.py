"""Evidence from counts: leave-one-out equals a refit, and shares of features sum to the evidence."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.special import log_softmax

from deciban.data.batch import UNSEEN, Coded
from deciban.evidence.back_off import GRID
from deciban.evidence.block_evidence import Rows
from deciban.evidence.forest import Forest
from deciban.evidence.forest_leaves import ForestLeaves
from deciban.evidence.mixed_columns import Coding
from deciban.evidence.pair_tables import PairTables
from deciban.evidence.partition_counts import Pairs
from deciban.evidence.tables import (
    MANY_LEVELS,
    MANY_ROWS,
    RARE,
    SCALES,
    VIRTUAL_ROWS,
    BinTables,
    LevelTables,
    MissingnessTable,
    rare_below,
)
from deciban.families import Bernoulli, Binned, Categorical
from deciban.families.labelled_values import LabelledValues
from deciban.statistics import Sum
from deciban.statistics.cell_counts import Cells
from tests.evidence.reference import (
    alike_in_pair,
    alike_in_tree,
    class_rows,
    coded,
    of_cells,
    of_rows_alike,
    unknown_of,
)

N = 60
RNG = np.random.default_rng(5)
NOT_RARE = int(np.ceil(RARE))
weighted = pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
classes = pytest.mark.parametrize("K", [2, 3])


def labels_of(K, n=N, seed=0):
    return np.random.default_rng(seed).integers(0, K, n).astype(np.int32)


def weights_of(weighted, n=N):
    """Of 1 and less, and of 2 and 3: of those one row is left out at a time."""
    return np.random.default_rng(1).choice([0.25, 1.0, 2.0, 3.0], n) if weighted else None


def left(weights):
    """What is left out of each row."""
    return None if weights is None else np.minimum(weights, 1.0)


def assert_left_out_is_unlearned(family, values, make, labels, weights, K):
    """Leave-one-out evidence of all n rows equals that of tables that have never seen the row.

    The latter has fewer rows, and so its s virtual rows are s·(n − w)/n, in proportion.
    """
    whole, rows = family.collect(values, labels, weights, K), class_rows(labels, weights, K)
    source = make(whole, rows)
    actual = source.evidence(Rows(values, labels, left(weights)))
    for i in range(len(labels)):
        row = Coded(values.codes[[i]], values.levels) if isinstance(values, Coded) else values[[i]]
        once = None if weights is None else np.minimum(weights[[i]], 1.0)
        rest = whole - family.collect(row, labels[[i]], once, K)
        if isinstance(values, Coded):
            row = Coded(family.coded_for(rest, row).codes, rest.levels)
        refitted = make(rest, rows - class_rows(labels[[i]], once, K))
        refitted.virtual_rows = source.virtual_rows * refitted.rows.sum() / rows.sum()
        np.testing.assert_allclose(actual[i], refitted.evidence(Rows(row))[0], rtol=1e-10, atol=1e-12)


def letters(n=N, seed=2, missing=0.1):
    """Frequent values of a feature, and missing ones."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < missing, None, rng.choice(list("uvw"), n)).tolist()


# Values --------------------------------------------------------------------------------------------------------------


@weighted
@classes
def test_levels_leave_one_out_equals_a_refit(K, weighted):
    values = coded([letters(), letters(seed=3, missing=0)], [("u", "v", "w", None), ("u", "v", "w")])
    assert_left_out_is_unlearned(
        Categorical(), values, lambda s, rows: LevelTables((0, 1), s, rows), labels_of(K), weights_of(weighted), K
    )


@weighted
@classes
def test_values_are_counted_with_virtual_rows(K, weighted):
    labels, weights = labels_of(K), weights_of(weighted)
    values = coded([letters()], [("u", "v", "w", None)])
    rows = class_rows(labels, weights, K)
    source = LevelTables((4,), Categorical().collect(values, labels, weights, K), rows)
    for given, left_out in ((Rows(values), False), (Rows(values, labels, left(weights)), True)):
        expected = of_cells(values.codes[:, 0], labels, weights, rows, VIRTUAL_ROWS, left_out=left_out)
        np.testing.assert_allclose(source.evidence(given)[:, 0], expected, rtol=1e-10, atol=1e-12)


def test_rare_values_are_one_and_a_value_never_seen_is_none_of_them():
    frequent = ["u"] * (4 * NOT_RARE) + ["v"] * NOT_RARE
    rare = [f"rare {i}" for i in range(6)] + [None]
    column = [*frequent, *rare]
    levels = (*sorted({*column} - {None}), None)
    values = coded([column], [levels])
    labels = labels_of(2, len(column))
    source = LevelTables((0,), Categorical().collect(values, labels, None, 2), class_rows(labels))
    pooled = ["rare" if str(value).startswith("rare") else value for value in column]
    together = coded([pooled], [("rare", "u", "v", None)]).codes[:, 0]
    expected = of_cells(together, labels, None, class_rows(labels), VIRTUAL_ROWS, left_out=True)
    np.testing.assert_allclose(source.evidence(Rows(values, labels))[:, 0], expected, rtol=1e-10, atol=1e-12)
    some_rare = Coded(np.array([[levels.index("rare 0")], [levels.index("rare 5")]], np.int32), (levels,))
    one, other = source.evidence(Rows(some_rare))
    np.testing.assert_array_equal(one, other)
    assert np.abs(one).max() > 0
    assert not source.evidence(Rows(Coded(np.array([[UNSEEN]], np.int32), (levels,)))).any()


def test_one_rare_value_is_what_it_is():
    """And the only row of a value, left out, has no evidence."""
    column = ["u"] * 20 + ["v"] * 20 + ["once"]
    values, labels = coded([column], [("once", "u", "v")]), labels_of(2, 41)
    source = LevelTables((0,), Categorical().collect(values, labels, None, 2), class_rows(labels))
    assert len(source.counts) == 3
    for code in (UNSEEN, -1):  # no other is like it
        assert not source.evidence(Rows(Coded(np.array([[code]], np.int32), values.levels))).any()
    assert (source.evidence(Rows(values, labels))[-1] == 0).all()
    assert np.abs(source.evidence(Rows(values))[-1]).max() > 0.1


@weighted
@classes
def test_many_levels_are_not_pooled_and_have_virtual_rows_of_their_own(K, weighted):
    n = MANY_ROWS + 200
    rng = np.random.default_rng(8)
    levels = tuple(f"level {i:02}" for i in range(MANY_LEVELS + 1))
    which = np.minimum(rng.zipf(1.3, n) - 1, MANY_LEVELS)
    which[: len(levels)] = np.arange(len(levels))
    values = coded([[levels[i] for i in which], letters(n)], [levels, ("u", "v", "w", None)])
    labels, weights = labels_of(K, n), weights_of(weighted, n)
    rows = class_rows(labels, weights, K)
    source = LevelTables((0, 1), Categorical().collect(values, labels, weights, K), rows)
    few, chosen = source.smoothing[::-1]
    assert few == VIRTUAL_ROWS
    assert chosen in GRID
    for given, left_out in ((Rows(values), False), (Rows(values, labels, left(weights)), True)):
        evidence, some = source.evidence(given), np.arange(0, n, 50)
        for p, virtual in enumerate((chosen, few)):
            expected = of_cells(values.codes[:, p], labels, weights, rows, virtual, left_out=left_out)
            np.testing.assert_allclose(evidence[some, p], expected[some], rtol=1e-10, atol=1e-12)
    out = np.zeros((n, K))
    source.scorer(np.ones((2, K)))(values, out)
    np.testing.assert_allclose(out, source.evidence(Rows(values)).sum(axis=1), rtol=1e-10, atol=1e-12)
    first = np.arange(n) < 600
    some = LabelledValues(*(each[first] if each is not None else None for each in (values.codes, labels, weights)))
    some = LabelledValues(Coded(some.values, values.levels), some.labels, some.weights)
    rest = source.subtract(some, np.arange(K))
    others = None if weights is None else weights[~first]
    expected = of_cells(values.codes[~first, 0], labels[~first], others, rest.rows, rest.smoothing[0], left_out=False)
    actual = rest.evidence(Rows(Coded(values.codes[~first], values.levels)))[:, 0]
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("K", [2, 5])
def test_levels_of_one_or_two_rows_do_not_leak_the_class(times, K):
    """They are one value, which all rows have: without any row it still is what all rows of its class have."""
    labels = np.repeat(labels_of(K, 200 // times), times)  # all rows of a level are of one class
    column = [f"level {i // times}" for i in range(200)]
    values = coded([column], [tuple(sorted({*column}))])
    source = LevelTables((0,), Categorical().collect(values, labels, None, K), class_rows(labels, None, K))
    np.testing.assert_allclose(source.evidence(Rows(values, labels)), 0.0, atol=1e-12)


def test_values_are_rare_below_five_rows_or_a_twentieth_of_few():
    assert [rare_below(float(n)) for n in (1, 20, 40, 60, 80, 100, 10**6)] == [2.0, 2.0, 2.0, 3.0, 4.0, 5.0, 5.0]
    for column, sizes in (
        (["u"] * 20 + ["v"] * 16 + ["two"] * 2 + ["also two"] * 2, [2, 2, 16, 20]),  # of 40 rows
        (["u"] * 30 + ["v"] * 26 + ["two"] * 2 + ["also two"] * 2, [4, 26, 30]),  # of 60
    ):
        values, labels = coded([column], [tuple(sorted({*column}))]), labels_of(2, len(column))
        source = LevelTables((0,), Categorical().collect(values, labels, None, 2), class_rows(labels))
        assert sorted(source.counts.sum(axis=1).tolist()) == sizes


@pytest.mark.parametrize("K", [2, 5])
def test_a_cell_with_only_the_left_out_row_has_no_evidence(K):
    """Tables that pool nothing: pairs of columns, and leaves."""
    labels = labels_of(K, 200)
    family = Pairs(Coding((tuple(np.arange(0.5, 15)),) * 2, (None, None)), ((0, 1),))
    codes = 1 + np.stack(np.unravel_index(np.arange(200), (15, 15)), axis=1).astype(np.uint8)  # 0 is missing
    source = PairTables((0, 1), family, family.collect(codes, labels, None, K), class_rows(labels, None, K))
    np.testing.assert_allclose(source.evidence(Rows(codes, labels)), 0.0, atol=1e-12)
    twice = np.repeat(codes[:100], 2, axis=0)
    source = PairTables((0, 1), family, family.collect(twice, labels, None, K), class_rows(labels, None, K))
    actual = source.evidence(Rows(twice, labels))[:, 0]
    gain = log_softmax(np.log(source.prior) + actual, axis=1)[np.arange(200), labels]
    assert (gain - np.log(source.prior)[labels]).mean() <= 0.01


# Presence ------------------------------------------------------------------------------------------------------------


@weighted
@classes
def test_missingness_leave_one_out_equals_a_refit(K, weighted):
    missing = (RNG.random((N, 4)) < [0.3, 0.0, 0.6, 1.0]).astype(float)
    labels, weights = labels_of(K), weights_of(weighted)
    assert_left_out_is_unlearned(
        Bernoulli(), missing, lambda s, rows: MissingnessTable((3, 5, 7, 9), s, rows), labels, weights, K
    )
    source = MissingnessTable(
        (3, 5, 7, 9), Bernoulli().collect(missing, labels, weights, K), class_rows(labels, weights, K)
    )
    assert [piece.columns for piece in source.pieces] == [(3,), (7,)]  # the others are there always, or never
    expected = of_cells(missing[:, 2], labels, weights, source.rows, VIRTUAL_ROWS, left_out=False)
    np.testing.assert_allclose(source.evidence(Rows(missing))[:, 1], expected, rtol=1e-10, atol=1e-12)


# Bins ----------------------------------------------------------------------------------------------------------------


def binned(x, labels, weights=None, K=2):
    return BinTables(tuple(range(x.shape[1])), Binned().collect(x, labels, weights, K), class_rows(labels, weights, K))


def bins_of(x, cuts):
    return np.where(np.isnan(x), -1, np.searchsorted(cuts, x, side="right"))


@weighted
@classes
def test_bins_of_equal_frequency_left_out_count_all_the_others(K, weighted):
    labels, weights = labels_of(K), weights_of(weighted)
    x = np.column_stack([RNG.normal(labels), RNG.integers(0, 9, N)]).astype(float)
    x[RNG.random(x.shape) < 0.1] = np.nan
    source = binned(x, labels, weights, K)
    actual, new = source.evidence(Rows(x, labels, left(weights))), source.evidence(Rows(x))
    for p, (j, cuts) in enumerate(source.cuts):
        bins = bins_of(x[:, j], cuts)
        for evidence, left_out in ((new[:, p], False), (actual[:, p], True)):
            expected = of_cells(bins, labels, weights, source.rows, VIRTUAL_ROWS, left_out=left_out)
            np.testing.assert_allclose(evidence, expected, rtol=1e-9, atol=1e-12)


def test_bins_of_equal_frequency_hold_as_many_rows():
    x = RNG.permutation(np.arange(1000.0))[:, np.newaxis]
    source = binned(x, labels_of(2, 1000))
    kinds = {piece.kind: p for p, piece in enumerate(source.pieces)}
    for scale in SCALES:
        cuts = source.cuts[kinds[f"{scale} bins"]][1]
        assert np.bincount(bins_of(x[:, 0], cuts)).tolist() == [1000 // scale] * scale


def test_scales_that_cut_alike_are_one():
    """Two values are cut in one way only; a constant column in none."""
    x = np.column_stack([RNG.integers(0, 2, N), np.full(N, 7.0), np.full(N, np.nan)])
    source = binned(x, x[:, 0].astype(np.int32))
    assert [piece.columns for piece in source.pieces] == [(0,)]
    assert not binned(x[:, 1:], labels_of(2)).pieces


@pytest.mark.parametrize("n", [199, 200, 999, 1000])
def test_bins_need_ten_rows_each(n):
    x = np.arange(float(n))[:, np.newaxis]
    kinds = [piece.kind for piece in binned(x, labels_of(2, n)).pieces]
    assert kinds == [f"{bins} bins" for bins in SCALES if bins == SCALES[0] or n >= 10 * bins]


def test_the_finest_bins_are_half_by_rows_and_half_by_values():
    """Most rows are 0: bins of equal frequency have one cut, the finest part the values that few rows have."""
    x = np.concatenate([np.zeros(1900), np.arange(1.0, 101.0)])[:, np.newaxis]
    source = binned(x, labels_of(2, 2000))
    cuts = {piece.kind: cuts for piece, (_, cuts) in zip(source.pieces, source.cuts, strict=True)}
    assert len(cuts["100 bins"]) >= 45
    assert all(len(cuts[kind]) <= 2 for kind in cuts if kind != "100 bins")
    actual = source.evidence(Rows(x))[:, [piece.kind for piece in source.pieces].index("100 bins")]
    expected = of_cells(
        bins_of(x[:, 0], cuts["100 bins"]), labels_of(2, 2000), None, source.rows, VIRTUAL_ROWS, left_out=False
    )
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


def test_cuts_do_not_look_at_labels():
    x = np.random.default_rng(6).normal(size=(300, 2))
    one, other = (binned(x, labels_of(2, 300, seed)) for seed in (0, 1))
    assert one.pieces == other.pieces
    for (_, cuts), (_, same) in zip(one.cuts, other.cuts, strict=True):
        np.testing.assert_array_equal(cuts, same)


def explained(evidence, labels, prior):
    """(pieces) mean nats of a piece for the true class."""
    z = np.log(prior) + evidence
    own = np.take_along_axis(z, labels[:, np.newaxis, np.newaxis], axis=2)[:, :, 0]
    return (own - np.log(np.exp(z).sum(axis=2)) - np.log(prior)[labels][:, np.newaxis]).mean(axis=0)


@classes
def test_noise_has_no_positive_evidence_in_the_mean(K):
    """Leave-one-out: if rows were scored by themselves as well, fine bins would seem informative."""
    n, d = 300, 40
    rng = np.random.default_rng(9)
    x, labels = rng.normal(size=(n, d)), labels_of(K, n)
    source = binned(x, labels, None, K)
    honest, dishonest = (explained(source.evidence(rows), labels, source.prior) for rows in (Rows(x, labels), Rows(x)))
    kinds = np.array([piece.kind for piece in source.pieces])
    for kind in np.unique(kinds):
        assert honest[kinds == kind].mean() < 0.002, kind
    assert dishonest[kinds == "20 bins"].mean() > 0.01


# Pairs and leaves ----------------------------------------------------------------------------------------------------

CODING = Coding(((0.5, 1.5), None, (0.5, 1.5)), (None, ("u", "v"), None))


def codes_of(n=N, seed=11):
    return np.random.default_rng(seed).integers(0, 4, (n, 3)).astype(np.uint8)


@weighted
@classes
def test_pairs_leave_one_out_equals_a_refit(K, weighted):
    family = Pairs(CODING, ((0, 1), (2, 0)))
    codes, labels, weights = codes_of(), labels_of(K), weights_of(weighted)
    assert_left_out_is_unlearned(
        family, codes, lambda s, rows: PairTables((5, 6, 8), family, s, rows), labels, weights, K
    )
    source = PairTables((5, 6, 8), family, family.collect(codes, labels, weights, K), class_rows(labels, weights, K))
    assert [piece.columns for piece in source.pieces] == [(5, 6), (8, 5)]
    unknown = unknown_of(CODING, codes)
    for p, pair in enumerate(family.pairs):
        alike = alike_in_pair(codes, unknown, pair)
        for rows, left_out in ((Rows(codes), False), (Rows(codes, labels, left(weights)), True)):
            expected = of_rows_alike(alike, labels, weights, source.rows, VIRTUAL_ROWS, left_out=left_out)
            np.testing.assert_allclose(source.evidence(rows)[:, p], expected, rtol=1e-10, atol=1e-12)


def known_codes(n=N, seed=11):
    """Codes of known values."""
    return np.random.default_rng(seed).integers(1, [4, 3, 4], (n, 3)).astype(np.uint8)


def paired(codes, labels, weights, K, pairs=((0, 1), (2, 0))):
    family = Pairs(CODING, pairs)
    return PairTables((5, 6, 8), family, family.collect(codes, labels, weights, K), class_rows(labels, weights, K))


@weighted
@classes
@pytest.mark.parametrize("code", [0, 3], ids=["missing", "unlisted"])
def test_a_pair_with_one_unknown_feature_is_a_table_of_the_other(code, K, weighted):
    """Whose rows are all counted, also those in which both columns are known."""
    labels, weights, codes = labels_of(K), weights_of(weighted), known_codes()
    codes[::3, 1] = code
    rows = class_rows(labels, weights, K)
    other = coded([codes[:, 0].tolist()], [(1, 2, 3)])
    table = LevelTables((5,), Categorical().collect(other, labels, weights, K), rows)
    alone = codes[:, 1] == code
    source = paired(codes, labels, weights, K)
    for given, expected in (
        (Rows(codes), Rows(other)),
        (Rows(codes, labels, left(weights)), Rows(other, labels, left(weights))),
    ):
        actual = source.evidence(given)[alone, 0]
        np.testing.assert_allclose(actual, table.evidence(expected)[alone, 0], rtol=1e-12, atol=1e-13)
        assert np.abs(actual).max() > 0
    shares = np.zeros((N, 9, K))
    source.share_scorer()(codes, np.array([[1.0] * K, [0.0] * K]), shares)
    np.testing.assert_allclose(shares[alone, 5], source.evidence(Rows(codes))[alone, 0], rtol=1e-12, atol=1e-13)
    assert not shares[alone, 6].any()
    assert shares[~alone, 6].any()


def test_a_pair_of_two_unknown_features_has_no_evidence():
    codes, labels = known_codes(), labels_of(3)
    codes[::2, 0], codes[::4, 1], codes[2::4, 1] = 0, 0, 3
    source = paired(codes, labels, None, 3)
    for rows in (Rows(codes), Rows(codes, labels)):
        assert not source.evidence(rows)[::2, 0].any()
        assert source.evidence(rows)[1::2, 0].any()


@weighted
@classes
def test_hidden_columns_are_unknown_in_all_rows(K, weighted):
    """The rows themselves are counted by what they hold."""
    codes, labels, weights = codes_of(), labels_of(K), weights_of(weighted)
    _, forest = grown(codes, labels, weights, K, 7)
    for source, hidden, at in ((paired(codes, labels, weights, K), {5, 7}, 0), (forest, {2, 7}, 1)):
        blank = codes.copy()
        blank[:, at] = 0
        actual = source.evidence(Rows(codes, hidden=frozenset(hidden)))
        np.testing.assert_array_equal(actual, source.evidence(Rows(blank)))
        assert actual.any()
        everything = frozenset(range(9))
        for rows in (Rows(codes, hidden=everything), Rows(codes, labels, left(weights), everything)):
            np.testing.assert_allclose(source.evidence(rows), 0.0, atol=1e-12)


@weighted
@classes
def test_pairs_without_rows_are_those_of_the_others(K, weighted):
    codes, labels, weights = codes_of(), labels_of(K), weights_of(weighted)
    removed = np.arange(N) % 3 == 1
    if K == 3:
        removed |= labels == 1  # a class that is lost
    kept = np.unique(labels[~removed])
    own = [None if weights is None else weights[some] for some in (removed, ~removed)]
    actual = paired(codes, labels, weights, K).subtract(LabelledValues(codes[removed], labels[removed], own[0]), kept)
    again = np.searchsorted(kept, labels[~removed]).astype(np.int32)
    expected = paired(codes[~removed], again, own[1], len(kept))
    np.testing.assert_allclose(actual.counts, expected.counts, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(actual.rows, expected.rows, rtol=1e-12)
    np.testing.assert_allclose(actual.evidence(Rows(codes)), expected.evidence(Rows(codes)), rtol=1e-10, atol=1e-12)


def grown(codes, labels, weights, K, trees):
    forest = Forest.grown(CODING, codes, labels, weights, K, trees, seed=3)
    source = ForestLeaves((1, 2, 4), forest, forest.collect(codes, labels, weights, K), class_rows(labels, weights, K))
    return forest, source


@weighted
@pytest.mark.parametrize("trees", [1, 4])
@classes
def test_leaves_of_a_row_left_out_are_those_of_trees_that_never_saw_it(K, trees, weighted):
    codes, labels, weights = codes_of(), labels_of(K), weights_of(weighted)
    forest, source = grown(codes, labels, weights, K, trees)
    unknown, seen = unknown_of(CODING, codes), forest.seen(codes)
    assert unknown.any()
    assert seen.any()
    assert not seen.all()
    assert seen.all(axis=1).any() or trees > 1  # such a row has no evidence
    for given, skip, left_out in (
        (Rows(codes), np.zeros_like(seen), False),
        (Rows(codes, labels, left(weights)), seen, True),
    ):
        each = np.stack(
            [
                of_rows_alike(alike, labels, weights, source.rows, source.virtual_rows, left_out=left_out)
                for alike in (alike_in_tree(forest, codes, unknown, t) for t in range(trees))
            ],
            axis=1,
        )
        each[skip] = 0.0
        expected = each.sum(axis=1) / np.maximum((~skip).sum(axis=1), 1)[:, np.newaxis]
        np.testing.assert_allclose(source.evidence(given)[:, 0], expected, rtol=1e-9, atol=1e-12)


def test_trees_grown_on_noise_do_not_predict_it():
    """Grown to the last row, they know every row by heart; those that never saw it know nothing of it."""
    n = 300
    rng = np.random.default_rng(12)
    codes, labels = rng.integers(0, 60, (n, 4)).astype(np.uint8), labels_of(2, n)
    reading = Coding((tuple(np.arange(0.5, 60)),) * 4, (None,) * 4)
    forest = Forest.grown(reading, codes, labels, None, 2, 20, 0)
    source = ForestLeaves(range(4), forest, forest.collect(codes, labels, None, 2), class_rows(labels))
    assert explained(source.evidence(Rows(codes, labels)), labels, source.prior)[0] < 0.01
    assert explained(source.evidence(Rows(codes)), labels, source.prior)[0] > 0.2


# Sources of all kinds, for tests that they share --------------------------------------------------------------------


def sources():
    labels = labels_of(3)
    rows = class_rows(labels)
    values = coded([letters(), letters(seed=3)], [("u", "v", "w", None)] * 2)
    yield "values", LevelTables((0, 2), Categorical().collect(values, labels, None, 3), rows), values
    missing = (RNG.random((N, 2)) < 0.3).astype(float)
    yield "present", MissingnessTable((0, 2), Bernoulli().collect(missing, labels, None, 3), rows), missing
    x = np.where(RNG.random((N, 2)) < 0.1, np.nan, RNG.normal(labels[:, np.newaxis], size=(N, 2)))
    yield "bins", binned(x, labels, None, 3), x
    codes, family = codes_of(), Pairs(CODING, ((0, 1), (1, 2)))
    yield "pairs", PairTables((0, 2, 3), family, family.collect(codes, labels, None, 3), rows), codes
    for trees in (1, 7):
        yield f"{trees} trees", grown(codes, labels, None, 3, trees)[1], codes


CASES = {name: (source, values) for name, source, values in sources()}


def test_a_split_of_a_tree_belongs_to_its_feature():
    """Only the first feature is informative, so trees split on it and it has nearly all of their evidence."""
    codes = codes_of(400)
    labels = (codes[:, 0] > 1).astype(np.int32)
    _, source = grown(codes, labels, None, 2, 8)
    shares = np.zeros((len(codes), 5, 2))
    source.share_scorer()(codes, np.ones((1, 2)), shares)
    strength = np.abs(shares).mean(axis=(0, 2))
    assert strength[[0, 3]].tolist() == [0, 0]
    assert strength[1] > 10 * max(strength[2], strength[4]) > 0


@hypothesis.given(st.integers(0, 2**32 - 1))
def test_pairs_share_by_shapley_values(seed):
    """u's share is the mean of what it adds first, e(u), and what it adds after v, e(u, v) − e(v)."""
    rng = np.random.default_rng(seed)
    reading = Coding(((0.0,), (0.0, 1.0)), (None, None))  # 3 and 4 codes, with those of missing and unlisted values
    counts, prior = rng.integers(0, 20, (3, 4, 3)).astype(float), rng.dirichlet(np.ones(3) * 5)
    family = Pairs(reading, ((0, 1),))
    statistic = Cells(Sum.of(counts.reshape(-1, 3).T))
    source = PairTables((7, 8), family, statistic, prior)

    def evidence(table):
        nats = np.log(table + 2 * prior) - np.log(prior)
        return nats - nats.mean(axis=-1, keepdims=True)

    u, v, both = evidence(counts.sum(axis=1)), evidence(counts.sum(axis=0)), evidence(counts)
    first, second = (table for share in source.shares() for table in source.tables(share))
    for a in range(3):
        for b in range(4):
            np.testing.assert_allclose(first[a, b], (u[a] + both[a, b] - v[b]) / 2, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(second[a, b], (v[b] + both[a, b] - u[a]) / 2, rtol=1e-12, atol=1e-12)
