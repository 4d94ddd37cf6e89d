"""LevelCombinations: cells for single levels and for the combinations of them that are listed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deciban.data import frame_of
from deciban.errors import DecibanError
from deciban.evidence.back_off import codes_of, keys_of
from deciban.evidence.level_combinations import LevelCodes, LevelCombinations
from tests.laws import family_subject, rows

READING = LevelCodes((("u", "v"), ("a", "b", "c"), ("x", "y")))
PAIRS = LevelCombinations(READING, ((0, 1),), (True,), np.array([0, 3]), np.array([5, 7, 10]))


def all_of(reading, combined, selected=None):
    """With every combination that a key has room for, except the last of each."""
    keys = []
    for features in combined:
        sizes = reading.sizes[list(features)]
        codes = np.stack(np.meshgrid(*(np.arange(1, size) for size in sizes), indexing="ij"), axis=-1)
        keys.append(keys_of(codes.reshape(-1, len(features)), sizes)[:-1])
    starts = np.cumsum([0, *map(len, keys)], dtype=np.int64)
    return LevelCombinations(reading, combined, selected or (True,) * len(combined), starts, np.concatenate(keys))


TRIPLE = all_of(READING, ((0, 1), (0, 2), (1, 2), (0, 1, 2)), (True, False, False, True))


def codes(n, _):
    """Of three columns, whatever the number that is asked for: a reading is of so many."""
    return hnp.arrays(np.int32, (n, 3), elements=st.integers(0, 2), fill=st.nothing())


SUBJECTS = [
    replace(family_subject(family, codes, joint=True, fixed=True, width=family.width), name=name)
    for name, family in (("LevelCombinations of two", PAIRS), ("LevelCombinations of three", TRIPLE))
]


@given(rows(SUBJECTS[1]))
def test_cells_are_those_of_levels_and_of_listed_combinations(drawn):
    counts = TRIPLE.collect(drawn.values, drawn.labels, drawn.weights, drawn.classes).sum_x.value
    weights = np.ones(len(drawn)) if drawn.weights is None else drawn.weights
    tables = dict(zip(TRIPLE.partitions, np.split(counts, TRIPLE.offsets[1:-1], axis=1), strict=True))
    for features, table in tables.items():
        expected = np.zeros_like(table)
        sizes = READING.sizes[list(features)]
        listed = np.arange(1, sizes[0]) if len(features) == 1 else TRIPLE.keys[slice(*_span(features))]
        known = {tuple(row): i + 1 for i, row in enumerate(codes_of(listed, sizes).tolist())}
        for row, label, weight in zip(drawn.values.tolist(), drawn.labels, weights, strict=True):
            expected[label, known.get(tuple(row[j] for j in features), 0)] += weight
        np.testing.assert_array_equal(table, expected)


def _span(features):
    place = TRIPLE.combined.index(features)
    return TRIPLE.starts[place : place + 2]


def test_a_missing_or_an_unlisted_level_is_unknown():
    frame = frame_of([["u", "c", "x"], ["w", "a", "y"], [None, "b", "y"]])
    assert READING.of(frame, [0, 1, 2]).tolist() == [[1, 3, 1], [0, 1, 2], [0, 2, 2]]
    assert TRIPLE.cells(READING.of(frame, [0, 1, 2]))[1:, 3].tolist() == [0, 0]


def test_families_are_equal_by_what_they_list():
    assert replace(PAIRS, keys=PAIRS.keys.copy()) == PAIRS
    assert hash(replace(PAIRS, keys=PAIRS.keys.copy())) == hash(PAIRS)
    assert replace(PAIRS, keys=np.array([5, 7, 11])) != PAIRS
    assert replace(PAIRS, least=1.0) != PAIRS
    assert PAIRS != TRIPLE


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"keys": np.array([5, 5, 10])}, "keys do not ascend"),
        ({"keys": np.array([5, 7, 12])}, "keys do not ascend"),
        ({"keys": np.array([5, 8, 10])}, "a combination of no levels"),
        ({"keys": np.array([5, 7])}, "keys are missing"),
        ({"starts": np.array([1, 3])}, "combinations do not begin at 0"),
        ({"selected": ()}, "combinations are missing"),
        ({"combined": ((1, 0),)}, "unordered columns"),
        ({"combined": ((0, 3),)}, "a combination of unknown columns"),
        ({"combined": ((0, 1, 2),)}, "a combination of unknown columns"),
        ({"least": np.nan}, "the least gain is nan"),
    ],
)
def test_forged_fields_are_refused(change, says):
    PAIRS.check_fields()
    TRIPLE.check_fields()
    with pytest.raises(DecibanError, match=says):
        replace(PAIRS, **change).check_fields()


def test_levels_may_not_repeat():
    with pytest.raises(DecibanError, match="a value is repeated"):
        LevelCodes((("u", "u"),)).check_fields()
