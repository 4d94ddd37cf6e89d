"""Structure: which columns are read together, and how. Chosen once, from some of the rows; then rows only add."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.batch import NUMERIC
from deciban.families import Binned, Categorical, Gaussian, Multinomial, Text
from deciban.families.celled import Pairs
from deciban.families.cuts import cut_values, equal_frequency
from deciban.families.forest import Forest
from deciban.families.mixed import MOST_CODES, Codes, Coding, Encoding
from deciban.families.normals import Normals
from deciban.families.priors import Background
from deciban.generative import Block, Generative
from deciban.plans import Plan, with_presence
from deciban.schema import Schema
from deciban.sources import Sample
from deciban.sources.sampling import Keys, row_keys
from deciban.statistics import Counts, Histogram, Moments
from deciban.types import FloatArray, Levels
from deciban.weighing.folds import FOLDS, MOST_ROWS, deal
from deciban.weighing.tables import MOST_PAIRS, best_pairs, by_rows_and_values, pair_gains, rare_below

FINE = 253  # cuts of a column of numbers, for trees, at most
MOST_CUTS = 1 << 18  # of all columns, for trees
MOST_BITS = 5 << 23  # that the values of all columns of numbers may take: 5 MB
LEAST_BITS = 1 << 10  # of a column; up to 320 columns take as many as they need
COARSE = 5  # for pairs
LISTED = 16  # values of a category that a joint normal has entries for
WIDEST = 256  # entries of a joint normal
PRODUCTS = 1 << 23  # numbers in its scatter
PAIRED = 64  # columns of which all pairs are tried
# what a document says, and what it does not; 300 virtual documents, spread as all are, hold back words that are rare
TEXTS = (Text(shapes=True), Text("bernoulli", shapes=True, prior=Background(300.0, 0.01)))
WORDS = 3  # that a cell of text has in the mean, at least; fewer are a name
DIFFERENT = 1 / 3  # of the cells of text, at least
IDEOGRAPHS = "\u2e80"  # and all that follow
CHANCE = 3.0  # nats that a pair must say beyond what it takes to name it
LOOKED_AT = 2000  # different cells, at least, whose words are counted


def first_plans(schema: Schema, *, sparse: bool, text: Collection[int] = ()) -> tuple[Plan, ...]:
    """How columns are read one by one: numbers in a histogram and as moments, categories by their values, and text."""
    if sparse:
        return (Plan(Multinomial(), tuple(range(len(schema.names)))),)
    kinds = schema.all_kinds
    numbers = tuple(j for j, kind in enumerate(kinds) if kind in NUMERIC)
    texts = [j for j, kind in enumerate(kinds) if kind == "text" or j in text]
    others = tuple(j for j, kind in enumerate(kinds) if kind not in NUMERIC and j not in texts)
    plans = [Plan(_histograms(len(kinds)), numbers), Plan(Categorical(), others), Plan(Gaussian(), numbers)]
    plans += [Plan(family, (j,)) for j in texts for family in TEXTS]
    return tuple(with_presence([plan for plan in plans if plan.columns]))


def _histograms(columns: int) -> Binned:
    """Of tables with many columns, values are counted with fewer bits: models of them stay small."""
    full = 64 * Binned().cap
    bits = max(LEAST_BITS, MOST_BITS // max(columns, 1))
    return Binned() if bits >= full else Binned(bits=bits)


def with_text(evidence: Generative, rows: int) -> tuple[Generative, tuple[Plan, ...]]:
    """Without the columns of categories that are texts, and how these are to be read.

    A text is a cell that is seldom there twice among so many rows, and has some words.
    """
    coded = [block for block in evidence.blocks if isinstance(block.statistic, Counts)]
    one = float(evidence.counts.value.sum()) / max(rows, 1)  # the weight of a row
    found = [
        j
        for block in coded
        for i, j in enumerate(block.plan.columns)
        if _is_text(block.statistic.columns([i]), one)  # type: ignore[arg-type]
    ]
    if not found:
        return evidence, ()
    blocks = []
    for block in evidence.blocks:
        gone = found if block in coded else []
        kept = [i for i, j in enumerate(block.plan.columns) if j not in gone]
        if kept:
            plan = replace(block.plan, columns=tuple(block.plan.columns[i] for i in kept))
            blocks.append(Block(plan, block.statistic.columns(kept)) if plan != block.plan else block)
    plans = [Plan(family, (j,)) for j in found for family in TEXTS]
    return replace(evidence, blocks=tuple(blocks)), tuple(with_presence(plans))


def _is_text(counts: Counts, one: float) -> bool:
    there = sum(w for w, level in zip(counts.table.value.sum(axis=0).tolist(), counts.levels[0], strict=True) if level)
    texts = [level for level in counts.levels[0] if isinstance(level, str)]
    if len(texts) * one < DIFFERENT * there:
        return False
    some = texts[:: max(1, len(texts) // LOOKED_AT)]
    return bool(some) and sum(map(_words, some)) >= WORDS * len(some)


def _words(text: str) -> int:
    """Between spaces; where none are written, ideographs."""
    return len(text.split()) if text.isascii() else max(len(text.split()), sum(c >= IDEOGRAPHS for c in text))


def joint_plans(evidence: Generative, sample: Sample, pairs: int | None, trees: int, seed: int) -> tuple[Plan, ...]:
    """Columns that are read together, in the light of what is known of each and of some of the rows.

    A column that repeats another in all of these rows is left to the other.
    """
    plans = []
    places = evidence.schema.places(sample.frame)
    columns, encoding = _encoding(evidence)
    if len(columns):
        entries = np.round(encoding.of(sample.frame, [places[j] for j in columns]), 9)
        kept = _different([entries[:, encoding.owner == i] for i in range(len(columns))])
        plans.append(Plan(Normals(encoding.some(kept)), tuple(columns[i] for i in kept)))
    columns, coding = _coding(evidence, min(FINE, max(2 * COARSE, MOST_CUTS // len(evidence.schema.names))))
    codes = coding.of(sample.frame, [places[j] for j in columns])
    kept = _different(list(codes.T))
    if len(kept) < 2 or len(sample.labels.classes) < 2:
        return tuple(plans)
    columns, coding, codes = tuple(columns[i] for i in kept), coding.some(kept), np.asfortranarray(codes[:, kept])
    if pairs != 0:
        among, coarse = _coding(evidence, COARSE)
        kept = [i for i, j in enumerate(among) if j in columns]
        among, coarse = tuple(among[i] for i in kept), coarse.some(kept)
        keys = row_keys(sample.frame, places, seed)
        chosen, least = _pairs(coarse, coarse.of(sample.frame, [places[j] for j in among]), sample, keys, pairs)
        if chosen:
            used = sorted({i for pair in chosen for i in pair})
            family = Pairs(coarse.some(used), tuple((used.index(a), used.index(b)) for a, b in chosen), least)
            plans.append(Plan(family, tuple(among[i] for i in used)))
    if trees:
        classes = len(sample.labels.classes)
        forest = Forest.grown(coding, codes, sample.labels.codes, sample.weights, classes, trees, seed)
        plans.append(Plan(forest, columns))
    return tuple(plans)


def _different(columns: Sequence[NDArray[Any]]) -> list[int]:
    """The places of columns that repeat none before them."""
    first: dict[bytes, int] = {}
    for i, column in enumerate(columns):
        first.setdefault(column.tobytes(), i)
    return list(first.values())


def _blocks(evidence: Generative) -> tuple[Block | None, Block | None, Block | None]:
    """The histograms, the moments and the values, where there are such columns."""
    plain = [block for block in evidence.blocks if not block.plan.presence]

    def of(family: type) -> Block | None:
        return next((block for block in plain if type(block.plan.family) is family), None)

    return of(Binned), of(Gaussian), of(Categorical)


def _listed(counts: Counts, most: int) -> list[tuple[Levels, FloatArray]]:
    """Of each column the values that are not rare, the most frequent first, and how often each is there."""
    found = []
    total = counts.table.value.sum(axis=0)
    for j, levels in enumerate(counts.levels):
        sizes = total[counts.offsets[j] : counts.offsets[j + 1]]
        least = rare_below(float(sizes.sum()))
        order = [i for i in np.argsort(-sizes, kind="stable") if sizes[i] >= least and levels[i] is not None][:most]
        found.append((tuple(levels[i] for i in order), sizes[order]))
    return found


def _coding(evidence: Generative, bins: int) -> tuple[tuple[int, ...], Coding]:
    """The columns that vary, and codes for them: bins of equal frequency, and the values that are not rare."""
    histograms, _, values = _blocks(evidence)
    found: dict[int, tuple[tuple[float, ...] | None, Levels | None]] = {}
    if histograms is not None:
        statistic = histograms.statistic
        assert isinstance(statistic, Histogram)
        for i, j in enumerate(histograms.plan.columns):
            counts = statistic.table(i).value.sum(axis=0)
            if len(counts) < 2:
                continue
            sizes = by_rows_and_values(counts) if bins > COARSE else counts
            after = equal_frequency(sizes, bins + 1)
            if len(after):
                found[j] = tuple(cut_values(statistic.lower(i), statistic.upper(i), after).tolist()), None
    if values is not None:
        assert isinstance(values.statistic, Counts)
        for j, (levels, _) in zip(values.plan.columns, _listed(values.statistic, MOST_CODES - 2), strict=True):
            if levels:
                found[j] = None, levels
    columns = tuple(sorted(found))
    return columns, Coding(tuple(found[j][0] for j in columns), tuple(found[j][1] for j in columns))


def _encoding(evidence: Generative) -> tuple[tuple[int, ...], Encoding]:
    """Columns for a joint normal: all, or the numbers alone, or none, as is not too wide.

    Derived columns are left to tables and trees: a gap is linear in two dates, and calendars are wide.
    """
    histograms, moments, values = _blocks(evidence)
    own = len(evidence.schema.names)
    numbers: dict[int, tuple[float, float]] = {}
    ranges: dict[int, tuple[float, float]] = {}
    if moments is not None and histograms is not None:
        assert isinstance(histograms.statistic, Histogram)
        for i, j in enumerate(histograms.plan.columns):
            if len(histograms.statistic.keys[i]):
                ranges[j] = float(histograms.statistic.lower(i)[0]), float(histograms.statistic.upper(i)[-1])
        assert isinstance(moments.statistic, Moments)
        pooled = moments.statistic.pooled()
        spread = np.sqrt(pooled.squares[0] / np.maximum(pooled.count.value[0], 1.0))
        for i, j in enumerate(moments.plan.columns):
            if spread[i] > 0 and j < own:
                numbers[j] = float(pooled.mean[0, i]), float(spread[i])
    others: dict[int, tuple[Levels, bool]] = {}  # and whether the first is the baseline
    if values is not None:
        assert isinstance(values.statistic, Counts)
        for j, (levels, sizes) in zip(values.plan.columns, _listed(values.statistic, LISTED), strict=True):
            whole = sizes.sum() >= evidence.counts.value.sum()  # then the entries of all but one tell the last
            if j < own and len(levels) > (1 if whole else 0):
                others[j] = levels, bool(whole)
    classes = len(evidence.classes)

    def fits(width: int) -> bool:
        return 0 < width <= WIDEST and classes * width**2 <= PRODUCTS

    if not fits(len(numbers) + sum(len(levels) - whole for levels, whole in others.values())):
        others = {}
    if not others and not fits(len(numbers)):
        numbers = {}
    columns = tuple(sorted([*numbers, *others]))
    middle, spread_of = ([numbers[j][i] if j in numbers else None for j in columns] for i in (0, 1))
    within = tuple(ranges[j] if j in numbers else None for j in columns)
    lists, baseline = (
        tuple(others[j][of] if j in others else other for j in columns) for of, other in enumerate((None, False))
    )
    return columns, Encoding(tuple(middle), tuple(spread_of), within, lists, baseline)  # type: ignore[arg-type]


def _pairs(
    coding: Coding, codes: Codes, sample: Sample, keys: Keys, pairs: int | None
) -> tuple[list[tuple[int, int]], float]:
    """The pairs that say most more than their columns one by one, and how many nats they had to.

    They are chosen by the labels, so rows may not judge the pairs that they have helped to choose: where rows are few,
    those that each fold's other rows would choose are counted too, for the rows of that fold.
    """
    chosen, least = _chosen_pairs(coding, codes, sample, pairs)
    if pairs is not None or len(keys) > MOST_ROWS:
        return chosen, least
    rows, folds, weights = deal(keys, sample.labels.codes, sample.weights)
    for f in range(FOLDS):
        outside = folds != f
        if not outside.all():
            others = sample.take(rows[outside])
            others = replace(others, weights=None if weights is None else weights[outside])
            chosen += _chosen_pairs(coding, codes[rows[outside]], others, pairs)[0]
    return list(dict.fromkeys(chosen)), least


def _chosen_pairs(
    coding: Coding, codes: Codes, sample: Sample, pairs: int | None
) -> tuple[list[tuple[int, int]], float]:
    classes = len(sample.labels.classes)
    columns = _telling(coding, codes, sample)[:PAIRED]
    sizes = coding.sizes.astype(np.int64)
    most = 0.5 * (len(codes) if sample.weights is None else sample.weights.sum())  # cells
    small = [(a, b) for a, b in combinations(sorted(columns), 2) if sizes[a] * sizes[b] <= most]
    if not small or classes < 2:
        return [], 0.0
    gains = pair_gains(coding, codes, sample.labels.codes, sample.weights, classes, np.array(small, np.int32))
    # to name one of so many takes log(so many) nats: less, and a little more, could be chance
    least, wanted = (float(np.log(len(small))) + CHANCE, MOST_PAIRS) if pairs is None else (0.0, pairs)
    return [small[i] for i in best_pairs(gains, 2.0 * most, least, wanted)], least


def _telling(coding: Coding, codes: Codes, sample: Sample) -> list[int]:
    """The columns in order of what they tell of the class by themselves: their mutual information, less its bias."""
    if codes.shape[1] <= PAIRED:
        return list(range(codes.shape[1]))
    found = []
    for j, size in enumerate(coding.sizes.tolist()):
        table = np.zeros((len(sample.labels.classes), size))
        np.add.at(table, (sample.labels.codes, codes[:, j]), 1.0 if sample.weights is None else sample.weights)
        expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
        some = table > 0
        bits = (table[some] * np.log(table[some] / expected[some])).sum()
        found.append(bits - 0.5 * (len(table) - 1) * ((table.sum(axis=0) > 0).sum() - 1))
    return [int(j) for j in np.argsort(-np.array(found), kind="stable")]
