"""A third engine, to show what one takes: parts are tables in this process, and all that travels is pickled."""

import pickle
import random
from dataclasses import dataclass
from functools import reduce

from deciban.engines.parts import Collection, add, columns_of
from deciban.schema import Schema
from deciban.sources.arrow import table_frame


@dataclass(frozen=True)
class Toy(Collection):
    """Tables, worked on in any order and some of them twice, as engines do; a part may come in several tables."""

    parts: tuple
    seed: int = 0

    def _mapped_and_added(self, work):
        sent, found, lot = pickle.dumps(work), {}, random.Random(self.seed)
        order = [*range(len(self.parts)), *lot.sample(range(len(self.parts)), len(self.parts) // 3)]
        for number in lot.sample(order, len(order)):
            found[number] = pickle.dumps(pickle.loads(sent)(number, iter(self.parts[number])))
        return add(pickle.loads(found[number]) for number in sorted(found))

    def __reduce__(self):
        raise TypeError("work travels to the rows, and not the rows with the work")


def rows(parts, label, sample_weight=None, seed=0):
    """Parts as X; each is a list of tables."""
    schema = reduce(Schema.widened, (Schema.of(table_frame(table)) for part in parts for table in part))
    columns = columns_of(schema, label, sample_weight)
    return Toy(columns, columns.table, tuple(map(tuple, parts)), seed)
