"""The laws of evidence, said once. Every statistic and every family is held to all of them (see test_laws.py).

A test file of a statistic or a family lists its SUBJECTS: what to collect, from which values, and when two results
count as equal. A law draws rows and compares; it knows nothing of what is collected.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deciban.batch import Coded
from deciban.errors import NegativeEvidence, NotInvertible
from deciban.families import Context
from deciban.statistics import Statistic


@dataclass(frozen=True)
class Rows:
    """Values (a matrix, sparse rows or Coded) with labels and weights."""

    values: Any
    labels: np.ndarray
    weights: np.ndarray | None
    classes: int

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, index: np.ndarray) -> Rows:
        weights = None if self.weights is None else self.weights[index]
        return Rows(rows_of(self.values, index), self.labels[index], weights, self.classes)

    def weighing(self, weights: np.ndarray | None) -> Rows:
        return replace(self, weights=weights)


def rows_of(values: Any, index: np.ndarray) -> Any:
    return Coded(values.codes[index], values.levels) if isinstance(values, Coded) else values[index]


def columns_of(values: Any, index: list[int]) -> Any:
    if isinstance(values, Coded):
        return Coded(values.codes[:, index], tuple(values.levels[j] for j in index))
    return values[:, index]


@dataclass(frozen=True)
class Subject:
    """Something that the laws hold for."""

    kind: type  # the statistic or family
    name: str
    collect: Callable[[Any, np.ndarray, np.ndarray | None, int], Statistic]  # values, labels, weights, classes
    values: Callable[[int, int], st.SearchStrategy[Any]]  # of (rows, columns)
    agree: Callable[[Statistic, Statistic, Rows], None]  # asserts; the rows are all that were in play
    forgets: bool = True
    as_forgotten: Callable[[Statistic, Statistic], Statistic] = lambda expected, actual: expected
    joint: bool = False  # a hole in one column leaves out the row in all
    fixed: bool = False  # all columns together make its cells, so that none can be chosen
    width: Callable[[int], int] = lambda columns: columns  # what a statistic has for so many columns
    apart: bool = True  # each class has its own, so that one with rows can be dropped
    least: int = 0  # rows in each part, where fewer make no estimate
    family: Any = None  # with its settings: what makes the estimates that are compared
    settings: dict[str, Any] = field(default_factory=dict)

    def of(self, rows: Rows) -> Statistic:
        return self.collect(rows.values, rows.labels, rows.weights, rows.classes)

    def __str__(self) -> str:
        return self.name


# ---- values -----------------------------------------------------------------------------------------------------

# Any double whose square neither overflows nor underflows, and small numbers that will repeat.
positive = st.floats(1e-140, 1e140) | st.sampled_from([1.0, 2.0, 2.5, 3.0]) | st.floats(1e8 - 1, 1e8 + 1)
wild = positive | positive.map(lambda x: -x) | st.sampled_from([0.0, -0.0])
tame = st.floats(-100, 100).map(lambda x: round(x, 3))
holes = st.just(np.nan)
dyadic = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 7.25])  # weights whose products with a double stay exact


def matrices(cells: st.SearchStrategy[float]) -> Callable[[int, int], st.SearchStrategy[Any]]:
    return lambda n, d: hnp.arrays(np.float64, (n, d), elements=cells, fill=st.nothing())


@st.composite
def rows(draw: st.DrawFn, subject: Subject, weights: bool = True) -> Rows:
    """A few rows, with or without weights."""
    classes, columns = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    n = draw(st.integers(0, 9)) + 3 * subject.least
    values = draw(subject.values(n, columns))
    labels = draw(hnp.arrays(np.int32, n, elements=st.integers(0, classes - 1), fill=st.nothing()))
    weigh = weights and not subject.least and draw(st.booleans())
    return Rows(values, labels, draw(hnp.arrays(np.float64, n, elements=dyadic)) if weigh else None, classes)


def thirds(data: st.DataObject, subject: Subject, all_rows: Rows) -> list[Rows]:
    """Every row in one of three parts, in any order."""
    order = np.array(data.draw(st.permutations(range(len(all_rows)))), dtype=np.intp)
    cuts = sorted(data.draw(st.integers(0, len(order) - 3 * subject.least)) for _ in range(2))
    ends = [0, cuts[0] + subject.least, cuts[1] + 2 * subject.least, len(order)]
    return [all_rows.take(order[a:b]) for a, b in pairwise(ends)]


# ---- when two results are equal ---------------------------------------------------------------------------------


def assert_same_bits(actual: dict[str, Any], expected: dict[str, Any]) -> None:
    assert actual.keys() == expected.keys()
    for key in expected:
        a, b = np.asarray(actual[key]), np.asarray(expected[key])
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), f"{key}: {a} is not {b}"


def same_evidence(actual: Statistic, expected: Statistic, _: Rows) -> None:
    assert_same_bits(actual.to_arrays(), expected.to_arrays())


def flattened(params: Any, name: str = "") -> dict[str, Any]:
    """The arrays in a family's parameters, by name."""
    if is_dataclass(params):
        found = {f.name: getattr(params, f.name) for f in fields(params) if f.compare}
    elif isinstance(params, tuple):
        found = {str(i): value for i, value in enumerate(params)}
    else:
        return {name: params if isinstance(params, np.ndarray) else np.array(repr(params))}
    return {k: v for key, value in found.items() for k, v in flattened(value, f"{name}.{key}").items()}


def context(rows: Rows, **settings: Any) -> Context:
    return Context(tuple(range(rows.classes)), tuple(range(rows.values.shape[1])), **settings)


def same_estimates(
    family: Any, agree: Callable[[dict[str, Any], dict[str, Any]], None] = assert_same_bits, **settings: Any
) -> Callable[[Statistic, Statistic, Rows], None]:
    """Evidence is equal where the estimates made from it are: bit for bit, or as `agree` says."""

    def compare(actual: Statistic, expected: Statistic, rows: Rows) -> None:
        setting = context(rows, **settings)
        agree(*(flattened(family.estimate(statistic, setting)) for statistic in (actual, expected)))

    return compare


def family_subject(
    family: Any, values: Callable[[int, int], st.SearchStrategy[Any]], note: str = "", *, close: Any = None, **more: Any
) -> Subject:
    """A family, held to equal estimates."""
    agree = same_estimates(family, close or assert_same_bits, **more.get("settings", {}))
    return Subject(type(family), f"{family}{note}", family.collect, values, agree, family=family, **more)


# ---- the laws ---------------------------------------------------------------------------------------------------


def nothing_adds_nothing(subject: Subject, data: st.DataObject) -> None:
    all_rows = data.draw(rows(subject))
    a, zero = subject.of(all_rows), subject.of(all_rows.take(np.zeros(0, np.intp)))
    subject.agree(a + zero, a, all_rows)
    subject.agree(zero + a, a, all_rows)


def order_does_not_matter(subject: Subject, data: st.DataObject) -> None:
    all_rows = data.draw(rows(subject))
    a, b, _ = (subject.of(part) for part in thirds(data, subject, all_rows))
    subject.agree(a + b, b + a, all_rows)


def brackets_do_not_matter(subject: Subject, data: st.DataObject) -> None:
    all_rows = data.draw(rows(subject))
    a, b, c = (subject.of(part) for part in thirds(data, subject, all_rows))
    subject.agree((a + b) + c, a + (b + c), all_rows)


def batches_do_not_matter(subject: Subject, data: st.DataObject) -> None:
    all_rows = data.draw(rows(subject))
    a, b, c = (subject.of(part) for part in thirds(data, subject, all_rows))
    subject.agree(b + c + a, subject.of(all_rows), all_rows)


def one_row_at_a_time_is_one_batch(subject: Subject, data: st.DataObject) -> None:
    all_rows = data.draw(rows(subject))
    total = subject.of(all_rows.take(np.zeros(0, np.intp)))
    for i in range(len(all_rows)):
        total = total + subject.of(all_rows.take(np.array([i])))
    subject.agree(total, subject.of(all_rows), all_rows)


def what_was_added_can_be_forgotten(subject: Subject, data: st.DataObject) -> None:
    all_rows = data.draw(rows(subject))
    a, b, _ = (subject.of(part) for part in thirds(data, subject, all_rows))
    both = a + b
    if not subject.forgets:
        with pytest.raises(NotInvertible):
            both - b
        return
    left = both - b
    subject.agree(left, subject.as_forgotten(a, left), all_rows)


def what_was_never_learned_cannot_be_forgotten(subject: Subject, data: st.DataObject) -> None:
    a = subject.of(data.draw(rows(subject)))
    twice = a + a
    assume(
        any(not np.array_equal(x, y) for x, y in zip(a.to_arrays().values(), twice.to_arrays().values(), strict=True))
    )
    with pytest.raises(NegativeEvidence if subject.forgets else NotInvertible):
        a - twice


def operands_stay_as_they_were(subject: Subject, data: st.DataObject) -> None:
    all_rows = data.draw(rows(subject))
    a, b, _ = (subject.of(part) for part in thirds(data, subject, all_rows))
    before = [{key: array.copy() for key, array in s.to_arrays().items()} for s in (a, b)]
    both = a + b
    if subject.forgets:
        both - a
    for statistic, arrays in zip((a, b), before, strict=True):
        assert_same_bits(statistic.to_arrays(), arrays)


def weight_one_is_no_weight(subject: Subject, data: st.DataObject) -> None:
    plain = data.draw(rows(subject, weights=False))
    subject.agree(subject.of(plain.weighing(np.ones(len(plain)))), subject.of(plain), plain)


def weight_two_is_the_row_twice(subject: Subject, data: st.DataObject) -> None:
    plain = data.draw(rows(subject, weights=False))
    again = data.draw(hnp.arrays(np.bool_, len(plain)))
    twice = plain.take(np.concatenate([np.arange(len(plain)), np.flatnonzero(again)]))
    subject.agree(subject.of(plain.weighing(np.where(again, 2.0, 1.0))), subject.of(twice), twice)


def weight_zero_is_no_row(subject: Subject, data: st.DataObject) -> None:
    plain = data.draw(rows(subject, weights=False))
    kept = data.draw(hnp.arrays(np.bool_, len(plain)))
    assume(kept.sum() >= subject.least)
    absent = plain.take(np.flatnonzero(kept))
    subject.agree(subject.of(plain.weighing(kept.astype(np.float64))), subject.of(absent), plain)


def classes_can_move(subject: Subject, data: st.DataObject) -> None:
    all_rows = data.draw(rows(subject))
    place = data.draw(st.permutations(range(all_rows.classes + 1)))[: all_rows.classes]
    moved = replace(all_rows, labels=np.array(place, np.int32)[all_rows.labels], classes=all_rows.classes + 1)
    aligned = subject.of(all_rows).align(place, moved.classes)
    subject.agree(aligned, subject.of(moved), moved)
    subject.agree(aligned.take(place), subject.of(all_rows), all_rows)


def classes_can_be_dropped(subject: Subject, data: st.DataObject) -> None:
    all_rows = data.draw(rows(subject))
    dropped = data.draw(st.integers(0, all_rows.classes))
    # one class more; where the classes are not kept apart, it is without rows
    labels = all_rows.labels + (all_rows.labels >= dropped).astype(np.int32)
    strangers = data.draw(hnp.arrays(np.bool_, len(all_rows))) & (subject.apart and not subject.least)
    everybody = replace(
        all_rows, labels=np.where(strangers, dropped, labels).astype(np.int32), classes=all_rows.classes + 1
    )
    kept = np.delete(np.arange(everybody.classes), dropped)
    taken, expected = subject.of(everybody).take(kept), subject.of(all_rows.take(np.flatnonzero(~strangers)))
    subject.agree(taken, subject.as_forgotten(expected, taken), all_rows)


def columns_can_be_chosen(subject: Subject, data: st.DataObject) -> None:
    all_rows = data.draw(rows(subject))
    if subject.fixed:
        statistic, order = subject.of(all_rows), data.draw(st.permutations(range(all_rows.values.shape[1])))
        subject.agree(statistic.columns(order), statistic, all_rows)
        return
    if subject.joint:
        all_rows = all_rows.take(np.flatnonzero(~np.isnan(all_rows.values).any(axis=1)))
    order = data.draw(st.permutations(range(all_rows.values.shape[1])))
    index = list(order[: data.draw(st.integers(1, len(order)))])
    chosen = replace(all_rows, values=columns_of(all_rows.values, index))
    subject.agree(subject.of(all_rows).columns(index), subject.of(chosen), chosen)


def columns_can_stand_side_by_side(subject: Subject, data: st.DataObject) -> None:
    all_rows = data.draw(rows(subject))
    statistic = subject.of(all_rows)
    order = data.draw(st.permutations(range(all_rows.values.shape[1])))
    cut = data.draw(st.integers(0, len(order)))
    parts = [statistic.columns(order[:cut]), statistic.columns(order[cut:])]
    if subject.joint:
        with pytest.raises(TypeError, match="what its columns have to do with each other"):
            type(statistic).beside(parts)
        return
    moved = replace(all_rows, values=columns_of(all_rows.values, order))
    subject.agree(type(statistic).beside(parts), subject.of(moved), moved)


def saved_is_loaded(subject: Subject, data: st.DataObject) -> None:
    all_rows = data.draw(rows(subject))
    statistic = subject.of(all_rows)
    file = io.BytesIO()
    np.savez(file, **statistic.to_arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        loaded = type(statistic).from_arrays(dict(arrays))
    assert_same_bits(loaded.to_arrays(), statistic.to_arrays())
    subject.agree(loaded, statistic, all_rows)


LAWS = [
    nothing_adds_nothing,
    order_does_not_matter,
    brackets_do_not_matter,
    batches_do_not_matter,
    one_row_at_a_time_is_one_batch,
    what_was_added_can_be_forgotten,
    what_was_never_learned_cannot_be_forgotten,
    operands_stay_as_they_were,
    weight_one_is_no_weight,
    weight_two_is_the_row_twice,
    weight_zero_is_no_row,
    classes_can_move,
    classes_can_be_dropped,
    columns_can_be_chosen,
    saved_is_loaded,
]


# ---- who is held to them ----------------------------------------------------------------------------------------


def modules(package: ModuleType, *, besides: set[str]) -> list[str]:
    """The names of a package's files."""
    return sorted(found.name for found in pkgutil.iter_modules(package.__path__) if found.name not in besides)


def members(package: ModuleType, base: type) -> dict[type, str]:
    """Each concrete subclass of `base` defined in the package, and the file it lives in."""
    found = {}
    for name in modules(package, besides=set()):
        module = importlib.import_module(f"{package.__name__}.{name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__:
                found[value] = name
    return {member: name for member, name in found.items() if not getattr(member, "__abstractmethods__", None)}


def subjects(package: ModuleType, base: type, tests: str) -> list[Subject]:
    """What the test files of a package's members want to be held to the laws."""
    files = sorted(set(members(package, base).values()))
    found = []
    for name in files:
        file = f"{tests}.test_{name}"
        if importlib.util.find_spec(file) is not None:
            found += getattr(importlib.import_module(file), "SUBJECTS", [])
    return found
