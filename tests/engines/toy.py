"""A third engine, to show what one takes: parts are tables in this process, and all that travels is pickled."""

import pickle
import random
from dataclasses import dataclass
from functools import reduce

from deciban.data.arrow import table_frame
from deciban.data.schema import Schema
from deciban.engines.partitions import EngineRows, column_roles, sum_results


@dataclass(frozen=True)
class Toy(EngineRows):
    """Tables, worked on in any order and some of them twice, as engines do; a part may come in several tables."""

    parts: tuple
    seed: int = 0

    def map_sum(self, work):
        sent, results, lot = pickle.dumps(work), {}, random.Random(self.seed)
        order = [*range(len(self.parts)), *lot.sample(range(len(self.parts)), len(self.parts) // 3)]
        for number in lot.sample(order, len(order)):
            results[number] = pickle.dumps(pickle.loads(sent)(number, iter(self.parts[number])))
        return sum_results(pickle.loads(results[number]) for number in sorted(results))

    def __reduce__(self):
        raise TypeError("work travels to the rows, and not the rows with the work")


def rows(parts, label, sample_weight=None, seed=0):
    """Parts as X; each is a list of tables."""
    schema = reduce(Schema.merge, (Schema.of(table_frame(table)) for part in parts for table in part))
    columns = column_roles(schema, label, sample_weight)
    return Toy(columns, columns.table, tuple(map(tuple, parts)), seed)
