"""Readers: every block of a model has one, and no other has."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from deciban.errors import DecibanError
from deciban.families import Poisson
from deciban.plans import Plan
from deciban.weighing.densities import Jointly, Normal
from deciban.weighing.readers import readers_of
from deciban.weighing.tables import Leaves, Paired, Present, Scales, Values
from deciban.weighing.words import Words
from tests.weighing.made import collected, learned, mixed, sampled


def test_every_block_is_read():
    model, _ = learned()
    found = readers_of(model)
    assert [block for block, _ in found] == [*model.blocks]
    assert {type(reader) for _, reader in found} == {Values, Present, Scales, Paired, Leaves, Normal, Jointly}
    words = collected(sampled(sp.csr_array(np.eye(4)), [0, 1, 0, 1]))
    assert [type(reader) for _, reader in readers_of(words)] == [Words]


def test_numbers_count_up_to_the_ends_of_what_was_seen():
    model, _ = learned()
    X, _ = mixed()
    normal = next(reader for _, reader in readers_of(model) if isinstance(reader, Normal))
    names = [X.columns[piece.columns[0]] for piece in normal.pieces]
    assert names == ["height", "width"]
    np.testing.assert_array_equal(normal.low, X[names].min())
    np.testing.assert_array_equal(normal.high, X[names].max())


def test_a_family_that_is_not_weighed_is_refused():
    model, _ = learned()
    block = replace(model.blocks[-1], plan=Plan(Poisson(), (0,)))
    with pytest.raises(DecibanError, match="no evidence is weighed of a Poisson"):
        readers_of(replace(model, blocks=(block,)))
