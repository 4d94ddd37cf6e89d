"""Dask: DataFrames and arrays, learned from where their partitions are; needs `pip install deciban[dask]`.

Whatever scheduler Dask uses does the work: threads, or the cluster that a `dask.distributed.Client` speaks for.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from deciban.engines.parts import Collection, Columns, Outcome, add, columns_of, fitted, located
from deciban.errors import DecibanError
from deciban.late import late
from deciban.schema import Schema
from deciban.sources import Labelled, frame_of
from deciban.sources.arrow import table_frame

try:
    import dask.array as da
    import dask.dataframe as dd
    from dask.delayed import Delayed
except ImportError as error:
    raise ImportError(f"deciban.engines.dask needs Dask: pip install deciban[dask] ({error})") from error

if TYPE_CHECKING:
    from deciban.engines.answers import Answers
    from deciban.evaluation import Evaluation

sp = late("scipy.sparse")
# not needed where partitions are collected
answering = late("deciban.engines.answers")
judging = late("deciban.evaluation.judging")

T = TypeVar("T")

ADDED = 8  # outcomes that one task adds up

__all__ = ["cross_validate", "evaluate", "fit", "predict", "predict_proba", "rows"]


def fit(model: Any, collection: Any, label: Any, sample_weight: Any = None) -> Any:
    """Σ over partitions: what `model.fit` would learn from all rows at once; the model, fitted.

    - `model`: a generative model, an EvidenceClassifier, a LogisticRegression or a SoftmaxRegression.
    - `collection`: a dask DataFrame, and label the name of a column; or a dask array, and label an array.
    - `sample_weight`: in the same way.

    Every pass reads the collection once: generative models take one, an EvidenceClassifier two, Newton one a step. What
    is read again and again is best persisted.

    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> import deciban as db
    >>> from deciban.engines import dask
    >>> people = pd.DataFrame({"income": [125, 100, 70, 95, 85, 90], "evade": ["no", "no", "no", "yes", "yes", "yes"]})
    >>> model = dask.fit(db.NaiveBayes(), dd.from_pandas(people, npartitions=3), "evade")
    >>> model.class_count_
    array([3., 3.])
    """
    return fitted(model, rows(collection, label, sample_weight))


def evaluate(model: Any, collection: Any, label: Any, sample_weight: Any = None) -> Evaluation:
    """How good a fitted model's probabilities are: `deciban.evaluate`, partition by partition, added up."""
    found: Evaluation = judging.evaluate(model, rows(collection, label, sample_weight), None)
    return found


def cross_validate(
    model: Any,
    collection: Any,
    label: Any,
    cv: int | str = 10,
    *,
    random_state: int | None = 0,
    sample_weight: Any = None,
) -> Evaluation:
    """Every row judged by a model that has learned the other folds: `deciban.cross_validate`.

    - `cv`: how many folds, or the name of a column that holds the fold of each row. Rows are dealt by what they hold:
      equal rows are in one fold, wherever they are.

    Generative models take two passes, whatever the number of folds; others are fitted once for each.
    """
    found: Evaluation = judging.cross_validate(
        model, rows(collection, label, sample_weight), None, cv, random_state=random_state
    )
    return found


def predict(model: Any, collection: Any, *, probabilities: bool = True) -> Any:
    """A dask DataFrame with the columns `prediction` and `proba_CLASS` beside its own; of a dask array, one of labels.

    Lazy: nothing is computed until the result is asked for.
    """
    if isinstance(collection, da.Array):
        dtype = np.asarray(model.classes_).dtype
        return _by_rows(collection).map_blocks(
            partial(_labels, model), dtype=dtype, drop_axis=1, meta=np.empty(0, dtype)
        )
    _require_frame(collection)
    answers = answering.Answers(model, probabilities)
    return collection.map_partitions(partial(_answered, answers), meta=_answered(answers, collection._meta))


def predict_proba(model: Any, collection: Any) -> Any:
    """(n, K) p(c|x) of a dask array, as one; lazy."""
    if not isinstance(collection, da.Array):
        raise DecibanError("predict_proba takes a dask array; of a DataFrame, predict adds columns of probabilities")
    classes = len(model.classes_)
    whole = _by_rows(collection)
    return whole.map_blocks(
        partial(_probabilities, model), dtype=np.float64, chunks=(whole.chunks[0], (classes,)), meta=np.empty((0, 0))
    )


def rows(collection: Any, label: Any, sample_weight: Any = None) -> Collection:
    """A collection as X, for every method that learns rows or judges by them: `model.partial_fit(rows(more, "y"))`.

    >>> import dask.array as da
    >>> import numpy as np
    >>> import deciban as db
    >>> x, y = da.from_array(np.arange(8.0).reshape(8, 1), chunks=3), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> model = fit(db.NaiveBayes(), x, y)
    >>> model.forget(rows(x[:2], y[:2])).class_count_
    array([2., 4.])
    """
    if isinstance(collection, da.Array):
        return _of_array(collection, label, sample_weight)
    _require_frame(collection)
    return _of_frame(collection, label, sample_weight)


# How Dask maps and adds ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Partitions(Collection):
    """Delayed partitions: a table each, or the blocks of rows, labels and weights."""

    parts: tuple[Any, ...]
    label_dtype: Any = None

    def _mapped_and_added(self, work: Callable[[int, Any], Outcome[T]]) -> Outcome[T]:
        """Partitions are read, and eight outcomes at a time added up, where they are; what comes here is one.

        The graph is written out, since thousands of delayed calls are slow to merge, and so that work is in it once.
        """
        if not self.parts:
            return Outcome()
        mark = uuid.uuid4().hex
        collect, adds, given = (f"deciban-{what}-{mark}" for what in ("collect", "add", "work"))
        graph: dict[Any, Any] = {given: (_itself, work)}
        graphs = {id(part.dask): part.dask for part in _delayed(self.parts)}
        for each in graphs.values():
            graph.update(each)
        layer: list[Any] = []
        for number, part in enumerate(self.parts):
            layer.append((collect, number))  # the dashboard shows deciban-collect
            graph[layer[-1]] = (_collected, given, number, _keys(part))
        depth = 0
        while len(layer) > 1:
            depth, below = depth + 1, layer
            layer = [(adds, depth, i) for i in range(0, len(below), ADDED)]
            graph |= {key: (add, below[key[2] : key[2] + ADDED]) for key in layer}
        total: Outcome[T] = Delayed(layer[0], graph).compute()
        return total


def _itself(work: T) -> T:
    return work


def _collected(work: Callable[[int, Any], Outcome[T]], number: int, part: Any) -> Outcome[T]:
    return work(number, part)


def _delayed(parts: Any) -> Iterator[Any]:
    """What a part, or one of several things, is still to be made of."""
    for part in parts:
        if isinstance(part, tuple):
            yield from _delayed(part)
        elif isinstance(part, Delayed):
            yield part


def _keys(part: Any) -> Any:
    """A part as a graph refers to it."""
    if isinstance(part, tuple):
        return [_keys(each) for each in part]
    return part.key if isinstance(part, Delayed) else part


def _table(columns: Columns, number: int, table: Any) -> Labelled:
    return columns.table(number, [table])


def _block(columns: Columns, number: int, arrays: Any) -> Labelled:
    return columns.block(*arrays)


# DataFrames ----------------------------------------------------------------------------------------------------------


def _require_frame(collection: Any) -> None:
    if not isinstance(collection, dd.DataFrame):
        kind = f"{type(collection).__module__.partition('.')[0]}'s {type(collection).__name__}"
        raise DecibanError(f"collection is {kind}: pass a dask DataFrame or a dask array of two dimensions")


def _of_frame(frame: Any, label: Any, weight: Any) -> Partitions:
    parts = tuple(frame.to_delayed())
    columns = columns_of(_schema(frame), label, weight)
    return Partitions(columns, partial(_table, columns), parts)


def _schema(frame: Any) -> Schema:
    """What the columns hold. Of Python objects, and of categories not known yet, the partitions have to be asked."""
    declared = Schema.of(table_frame(frame._meta))
    unsure = [place for place, kind in enumerate(declared.kinds) if kind == "empty" or _unknown(frame, place)]
    if not unsure:
        return declared
    some = frame.iloc[:, unsure]
    met = Columns(declared, None, None)
    found = Partitions(met, met.table, tuple(some.to_delayed()))._mapped_and_added(_kinds).result()
    kinds = list(declared.kinds)
    for place, kind in zip(unsure, found.schema.kinds if found else ["empty"] * len(unsure), strict=True):
        kinds[place] = kind  # type: ignore[call-overload]
    return Schema(declared.names, tuple(kinds))


def _unknown(frame: Any, place: int) -> bool:
    column = frame._meta.iloc[:, place]
    return str(column.dtype) == "category" and not dd.utils.has_known_categories(column)


@dataclass(frozen=True)
class _Kinds:
    schema: Schema

    def __add__(self, other: _Kinds) -> _Kinds:
        a, b = self.schema, other.schema
        wide = zip(a.widened(b).kinds, b.widened(a).kinds, strict=True)  # true and false are numbers, where some are
        return _Kinds(Schema(a.names, tuple("number" if x != y and "number" in (x, y) else x for x, y in wide)))


def _kinds(number: int, table: Any) -> Outcome[_Kinds]:
    return Outcome.of(number, lambda: _Kinds(Schema.of(table_frame(table))) if len(table) else None)


def _answered(answers: Answers, table: Any, partition_info: Any = None) -> Any:
    names = answers.beside([str(name) for name in table.columns])
    with located(0 if partition_info is None else partition_info["number"]):
        found = answers.columns(answers.needed(table)) if len(table) else answers.no_rows()
    return table.assign(**{name: column.to_pandas().array for name, column in zip(names, found, strict=True)})


# Arrays --------------------------------------------------------------------------------------------------------------


def _by_rows(x: Any) -> Any:
    """Chunks that hold whole rows."""
    if x.ndim != 2:
        raise DecibanError(f"X must be a dask array of two dimensions; it has the shape {x.shape}")
    return x.rechunk({1: -1}) if x.numblocks[1] > 1 else x


def _of_array(x: Any, y: Any, weights: Any) -> Partitions:
    x = _by_rows(x)
    sparse = sp.issparse(x._meta)
    like = frame_of(sp.csr_array((0, x.shape[1])) if sparse else np.empty((0, x.shape[1]), x.dtype))
    parts = zip(x.to_delayed().ravel(), _along(x, y, "y"), _along(x, weights, "sample_weight"), strict=True)
    columns = Columns(Schema.of(like), None, None, like)
    return Partitions(columns, partial(_block, columns), tuple(parts), getattr(y, "dtype", None))


def _along(x: Any, given: Any, what: str) -> list[Any]:
    """An array in the chunks that the rows have."""
    if given is None and what == "sample_weight":
        return [None] * x.numblocks[0]
    if given is None or isinstance(given, str):
        raise DecibanError(f"of an array {what} is an array too, with a value for each row; it is {given!r}")
    known = not np.isnan(x.shape[0])
    if not isinstance(given, da.Array):
        given = (
            given.to_dask_array(lengths=True) if hasattr(given, "to_dask_array") else da.from_array(np.asarray(given))
        )
    if not known or np.isnan(given.shape[0]):
        if given.numblocks[0] != x.numblocks[0]:
            raise DecibanError(f"X and {what} have chunks of unknown sizes: call compute_chunk_sizes() on both")
    elif given.shape != (x.shape[0],):
        raise DecibanError(
            f"Found input variables with inconsistent numbers of samples: {what}.shape == {given.shape}, and there are "
            f"{x.shape[0]} rows"
        )
    else:
        given = given.rechunk((x.chunks[0],))
    return list(given.to_delayed().ravel())


def _labels(model: Any, block: Any) -> Any:
    return model.predict(block) if block.shape[0] else np.asarray(model.classes_)[:0]


def _probabilities(model: Any, block: Any) -> Any:
    return model.predict_proba(block) if block.shape[0] else np.empty((0, len(model.classes_)))
