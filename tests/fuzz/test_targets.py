"""Every fuzz target holds for its seeds, for inputs that once failed, and for a few mutations: see `make fuzz`."""

from random import Random

import pytest

from tests.fuzz import targets

MUTATIONS = {"cli": 3}  # fits models


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", targets.names())
def test_seeds_corpus_and_mutations(name):
    target, random = targets.load(name), Random(name)
    for data in target.inputs:
        target.run(data)
    for _ in range(MUTATIONS.get(name, 10)):
        target.run(target.mutation(random))
