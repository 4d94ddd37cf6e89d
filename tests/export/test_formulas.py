"""Formulas: how they are numbered and owned. What they score is held against their families by the tests of reports."""

from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from deciban.data.batch import MISSING, UNSEEN
from deciban.data.terms import Terms
from deciban.export import formulas
from deciban.export.formulas import (
    Always,
    Bag,
    Code,
    Combinations,
    Curve,
    Joint,
    Listed,
    Lookup,
    Mixed,
    Products,
    Scaled,
    Symmetric,
    Trees,
    Weighted,
    Whitened,
    owners_of,
    placed,
    rows_of_triangle,
)

NONE = np.zeros(0)
WHITENED = Whitened(NONE, NONE, NONE)
CUT = (1, 1, 0, 0, False, 0)
MADE = {
    "lookup": Lookup((1,), (Code(1, 2), Code(0, 3)), np.zeros((6, 2))),
    "combinations": Combinations((0, 2), (Code(0, 2), Code(2, 3)), NONE, np.zeros((0, 2))),
    "curve": Curve((0, 2)),
    "joint": Joint((1, 2), NONE, WHITENED, NONE),
    "mixed": Mixed((0, 1), (Scaled(0, 0, 0, 1, 0, 1, 9), Listed(Code(1, 2), 1, 2)), NONE, NONE, WHITENED, 1.0),
    "trees": Trees((0, 2), (Code(0, 2), Code(2, 2)), NONE, 1, *[NONE] * 4, virtual=1.0),
    "symmetric": Symmetric((0, 2), (Code(0, 2), Code(2, 2)), *[NONE] * 6, factor=0.2),
    "terms": Bag((), Terms.of([]), CUT, False, np.zeros((0, 2))),
    "words": Bag((), Terms.of([]), CUT, False, np.zeros((0, 2)), owner=(0, 1, 2)),
    "products": Products((0, 1), NONE, NONE),
    "always": Always((2,), np.zeros(2)),
    "weighted": Weighted(Lookup((1,), (Code(1, 2),), np.zeros((2, 2))), np.ones(2), np.zeros((3, 2)), 1),
}
OWNERS = {
    "lookup": [(8,)],
    "combinations": [(7,), (9,)],
    "curve": [(7,), (9,)],
    "joint": [(8,), (9,)],
    "mixed": [(7,), (8,)],
    "trees": [(7,), (9,)],
    "symmetric": [(7,), (9,)],
    "terms": [],
    "words": [(7, 8, 9)],
    "products": [(7,), (8,)],
    "always": [(9,)],
    "weighted": [(8,)],
}


def test_there_is_one_of_each_kind():
    assert {type(formula) for formula in MADE.values()} == set(formulas.Formula.__args__)


@pytest.mark.parametrize("name", MADE)
def test_columns_of_the_block_become_those_of_the_table(name):
    moved = placed(MADE[name], (7, 8, 9))
    assert owners_of(moved) == OWNERS[name]
    assert set(columns_in(moved)) <= {7, 8, 9}
    if name in ("terms", "words"):
        assert moved.columns == (7, 8, 9)  # texts are read in all of a block's columns
    if name == "weighted":
        assert moved.column == 1  # a place among the columns that may be unknown


def columns_in(value):
    """Every number of a column, however deep."""
    for field in fields(value):
        inner = getattr(value, field.name)
        if field.name == "column" and not isinstance(value, Weighted):
            yield inner
        elif field.name == "columns":
            yield from inner
        for part in inner if isinstance(inner, tuple) else (inner,):
            if is_dataclass(part):
                yield from columns_in(part)


def test_a_missing_cell_is_the_value_none_or_one_never_seen():
    known = Code(0, 2, levels=("a", None))
    assert (known.missing, known.counting_missing().missing) == (MISSING, 1)
    assert Code(0, 1, levels=("a",)).counting_missing().missing == UNSEEN
    assert Code(0, 3, levels=("a", None), places=np.array([2, 0])).counting_missing().missing == 0
    assert Code(0, 2, cuts=np.array([1.0])).counting_missing().missing == MISSING


def test_presence_asks_only_whether_a_cell_is_there():
    code = Code(0, 3, cuts=np.array([1.0, 2.0]), domains=("positive",)).present()
    assert (len(code.cuts), code.missing, code.domains) == (0, 1, ())


def test_triangles_are_put_together_again():
    matrices = np.tril(np.arange(18.0).reshape(2, 3, 3))
    rows = rows_of_triangle(matrices)
    again = np.zeros_like(matrices)
    again[(slice(None), *np.tril_indices(3))] = rows
    np.testing.assert_array_equal(again, matrices)
