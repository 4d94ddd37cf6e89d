"""The laws of sufficient statistics. Every statistic and every family is tested for all of them (see test_laws.py).

The test file of a statistic or family lists its SUBJECTS: what to collect, from which values, and when two results
count as equal. A law compares results from rows that were drawn; it knows nothing about what is collected.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deciban import evidence, families
from deciban.data.batch import Coded
from deciban.errors import NegativeEvidence, NotInvertible
from deciban.families import Context
from deciban.persist.codec import Codec
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

    def weighted(self, weights: np.ndarray | None) -> Rows:
        return replace(self, weights=weights)


def rows_of(values: Any, index: np.ndarray) -> Any:
    return Coded(values.codes[index], values.levels) if isinstance(values, Coded) else values[index]


def columns_of(values: Any, index: list[int]) -> Any:
    if isinstance(values, Coded):
        return Coded(values.codes[:, index], tuple(values.levels[j] for j in index))
    return values[:, index]


@dataclass(frozen=True)
class Subject:
    """A statistic or family that the laws hold for."""

    kind: type  # the statistic or family
    name: str
    collect: Callable[[Any, np.ndarray, np.ndarray | None, int], Statistic]  # values, labels, weights, classes
    values: Callable[[int, int], st.SearchStrategy[Any]]  # of (rows, columns)
    agree: Callable[[Statistic, Statistic, Rows], None]  # asserts; the rows are all that were drawn
    subtracts: bool = True
    after_subtraction: Callable[[Statistic, Statistic], Statistic] = lambda expected, actual: expected
    joint: bool = False  # a missing value in one column drops the row in all
    fixed: bool = False  # a statistic of all columns together, of which none can be selected
    width: Callable[[int], int] = lambda columns: columns  # columns of the statistic, for so many columns of values
    independent_classes: bool = True  # a class with rows can be dropped
    least: int = 0  # rows in each part: fewer have no estimate
    family: Any = None  # whose estimates are compared
    settings: dict[str, Any] = field(default_factory=dict)

    def of(self, rows: Rows) -> Statistic:
        return self.collect(rows.values, rows.labels, rows.weights, rows.classes)

    def __str__(self) -> str:
        return self.name


# ---- values -----------------------------------------------------------------------------------------------------

# Doubles whose squares neither overflow nor underflow, and small numbers that will repeat.
positive = st.floats(1e-140, 1e140) | st.sampled_from([1.0, 2.0, 2.5, 3.0]) | st.floats(1e8 - 1, 1e8 + 1)
wild = positive | positive.map(lambda x: -x) | st.sampled_from([0.0, -0.0])
tame = st.floats(-100, 100).map(lambda x: round(x, 3))
nans = st.just(np.nan)
dyadic = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 7.25])  # weights whose products with a double stay exact


def matrices(cells: st.SearchStrategy[float]) -> Callable[[int, int], st.SearchStrategy[Any]]:
    return lambda n, d: hnp.arrays(np.float64, (n, d), elements=cells, fill=st.nothing())


@st.composite
def rows(draw: st.DrawFn, subject: Subject) -> Rows:
    """A few rows, with or without weights."""
    classes, columns = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    n = draw(st.integers(0, 9)) + 3 * subject.least
    values = draw(subject.values(n, columns))
    labels = draw(hnp.arrays(np.int32, n, elements=st.integers(0, classes - 1), fill=st.nothing()))
    weighted = not subject.least and draw(st.booleans())
    return Rows(values, labels, draw(hnp.arrays(np.float64, n, elements=dyadic)) if weighted else None, classes)


def split_in_three(subject: Subject, all_rows: Rows, rng: np.random.Generator) -> list[Statistic]:
    """Statistics of three parts, in random order; every row is in one of them."""
    order = rng.permutation(len(all_rows))
    cuts = sorted(rng.integers(0, len(order) - 3 * subject.least, 2, endpoint=True))
    ends = [0, cuts[0] + subject.least, cuts[1] + 2 * subject.least, len(order)]
    return [subject.of(all_rows.take(order[a:b])) for a, b in pairwise(ends)]


# ---- when two results are equal ---------------------------------------------------------------------------------


def assert_same_bits(actual: dict[str, Any], expected: dict[str, Any]) -> None:
    assert actual.keys() == expected.keys()
    for key in expected:
        a, b = np.asarray(actual[key]), np.asarray(expected[key])
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), f"{key}: {a} is not {b}"


def equal_statistics(actual: Statistic, expected: Statistic, _: Rows) -> None:
    assert_same_bits(flattened(actual), flattened(expected))


def flattened(params: Any, name: str = "") -> dict[str, Any]:
    """The arrays in a statistic or in the parameters of a family, by name."""
    if is_dataclass(params):
        parts = {f.name: getattr(params, f.name) for f in fields(params) if f.compare}
    elif isinstance(params, tuple):
        parts = {str(i): value for i, value in enumerate(params)}
    else:
        return {name: params if isinstance(params, np.ndarray) else np.array(repr(params))}
    return {k: v for key, value in parts.items() for k, v in flattened(value, f"{name}.{key}").items()}


def context(rows: Rows, **settings: Any) -> Context:
    return Context(tuple(range(rows.classes)), tuple(range(rows.values.shape[1])), **settings)


def equal_estimates(
    family: Any, agree: Callable[[dict[str, Any], dict[str, Any]], None] = assert_same_bits, **settings: Any
) -> Callable[[Statistic, Statistic, Rows], None]:
    """Statistics are equal if the estimates made from them are: bit for bit, or as `agree` says."""

    def compare(actual: Statistic, expected: Statistic, rows: Rows) -> None:
        setting = context(rows, **settings)
        agree(*(flattened(family.estimate(statistic, setting)) for statistic in (actual, expected)))

    return compare


def family_subject(
    family: Any, values: Callable[[int, int], st.SearchStrategy[Any]], note: str = "", *, close: Any = None, **more: Any
) -> Subject:
    """A family, tested for equal estimates."""
    agree = equal_estimates(family, close or assert_same_bits, **more.get("settings", {}))
    return Subject(type(family), f"{family}{note}", family.collect, values, agree, family=family, **more)


# ---- the laws ---------------------------------------------------------------------------------------------------

Law = Callable[[Subject, Rows, np.random.Generator], None]


def zero_is_neutral(subject: Subject, all_rows: Rows, rng: np.random.Generator) -> None:
    a, zero = subject.of(all_rows), subject.of(all_rows.take(np.zeros(0, np.intp)))
    subject.agree(a + zero, a, all_rows)
    subject.agree(zero + a, a, all_rows)


def parts_add_up_in_any_order(subject: Subject, all_rows: Rows, rng: np.random.Generator) -> None:
    a, b, c = split_in_three(subject, all_rows, rng)
    subject.agree(a + b, b + a, all_rows)
    subject.agree((a + b) + c, a + (b + c), all_rows)
    subject.agree(b + c + a, subject.of(all_rows), all_rows)


def one_row_at_a_time_is_one_batch(subject: Subject, all_rows: Rows, rng: np.random.Generator) -> None:
    total = subject.of(all_rows.take(np.zeros(0, np.intp)))
    for i in range(len(all_rows)):
        total = total + subject.of(all_rows.take(np.array([i])))
    subject.agree(total, subject.of(all_rows), all_rows)


def subtraction_undoes_addition(subject: Subject, all_rows: Rows, rng: np.random.Generator) -> None:
    a, b, _ = split_in_three(subject, all_rows, rng)
    both = a + b
    if not subject.subtracts:
        with pytest.raises(NotInvertible):
            both - b
        return
    rest = both - b
    subject.agree(rest, subject.after_subtraction(a, rest), all_rows)


def subtracting_unseen_rows_raises(subject: Subject, all_rows: Rows, rng: np.random.Generator) -> None:
    a = subject.of(all_rows)
    twice = a + a
    if all(np.array_equal(x, y) for x, y in zip(flattened(a).values(), flattened(twice).values(), strict=True)):
        return  # there are no rows
    with pytest.raises(NegativeEvidence if subject.subtracts else NotInvertible):
        a - twice


def operands_are_unchanged(subject: Subject, all_rows: Rows, rng: np.random.Generator) -> None:
    a, b, _ = split_in_three(subject, all_rows, rng)
    before = [{key: array.copy() for key, array in flattened(s).items()} for s in (a, b)]
    both = a + b
    if subject.subtracts:
        both - a
    for statistic, arrays in zip((a, b), before, strict=True):
        assert_same_bits(flattened(statistic), arrays)


def weights_are_repetitions(subject: Subject, all_rows: Rows, rng: np.random.Generator) -> None:
    """A row of weight 1 is a row, one of weight 2 is two rows, and one of weight 0 is none."""
    plain = all_rows.weighted(None)
    subject.agree(subject.of(plain.weighted(np.ones(len(plain)))), subject.of(plain), plain)
    again = rng.random(len(plain)) < 0.5
    twice = plain.take(np.concatenate([np.arange(len(plain)), np.flatnonzero(again)]))
    subject.agree(subject.of(plain.weighted(np.where(again, 2.0, 1.0))), subject.of(twice), twice)
    kept = rng.random(len(plain)) < 0.5
    if kept.sum() >= subject.least:
        rest = subject.of(plain.take(np.flatnonzero(kept)))
        subject.agree(subject.of(plain.weighted(kept.astype(np.float64))), rest, plain)


def classes_can_be_reindexed(subject: Subject, all_rows: Rows, rng: np.random.Generator) -> None:
    index = rng.permutation(all_rows.classes + 1)[: all_rows.classes].tolist()
    moved = replace(all_rows, labels=np.array(index, np.int32)[all_rows.labels], classes=all_rows.classes + 1)
    reindexed = subject.of(all_rows).reindex_classes(index, moved.classes)
    subject.agree(reindexed, subject.of(moved), moved)
    subject.agree(reindexed.take(index), subject.of(all_rows), all_rows)


def classes_can_be_dropped(subject: Subject, all_rows: Rows, rng: np.random.Generator) -> None:
    dropped = rng.integers(0, all_rows.classes, endpoint=True)
    # one class more; it has no rows unless classes are independent
    labels = all_rows.labels + (all_rows.labels >= dropped).astype(np.int32)
    moved = (rng.random(len(all_rows)) < 0.5) & (subject.independent_classes and not subject.least)
    everything = replace(
        all_rows, labels=np.where(moved, dropped, labels).astype(np.int32), classes=all_rows.classes + 1
    )
    kept = np.delete(np.arange(everything.classes), dropped)
    taken, expected = subject.of(everything).take(kept), subject.of(all_rows.take(np.flatnonzero(~moved)))
    subject.agree(taken, subject.after_subtraction(expected, taken), all_rows)


def columns_can_be_chosen(subject: Subject, all_rows: Rows, rng: np.random.Generator) -> None:
    order = rng.permutation(all_rows.values.shape[1]).tolist()
    if subject.fixed:
        statistic = subject.of(all_rows)
        subject.agree(statistic.columns(order), statistic, all_rows)
        return
    if subject.joint:
        all_rows = all_rows.take(np.flatnonzero(~np.isnan(all_rows.values).any(axis=1)))
    index = order[: rng.integers(1, len(order), endpoint=True)]
    chosen = replace(all_rows, values=columns_of(all_rows.values, index))
    subject.agree(subject.of(all_rows).columns(index), subject.of(chosen), chosen)


def columns_can_be_concatenated(subject: Subject, all_rows: Rows, rng: np.random.Generator) -> None:
    statistic = subject.of(all_rows)
    order = rng.permutation(all_rows.values.shape[1]).tolist()
    cut = rng.integers(0, len(order), endpoint=True)
    parts = [statistic.columns(order[:cut]), statistic.columns(order[cut:])]
    if subject.joint:
        with pytest.raises(TypeError, match="is a joint statistic of its columns"):
            type(statistic).concat_columns(parts)
        return
    moved = replace(all_rows, values=columns_of(all_rows.values, order))
    subject.agree(type(statistic).concat_columns(parts), subject.of(moved), moved)


def saved_is_loaded(subject: Subject, all_rows: Rows, rng: np.random.Generator) -> None:
    statistic = subject.of(all_rows)
    loaded = saved_and_loaded(statistic)
    equal_statistics(loaded, statistic, all_rows)
    subject.agree(loaded, statistic, all_rows)


def saved_and_loaded(statistic: Statistic) -> Statistic:
    codec, arrays = Codec(), dict[str, Any]()
    tree = json.loads(json.dumps(codec.encode(statistic, "statistic", arrays)))
    return codec.decode(tree, "statistic", arrays)


LAWS: list[Law] = [
    zero_is_neutral,
    parts_add_up_in_any_order,
    one_row_at_a_time_is_one_batch,
    subtraction_undoes_addition,
    subtracting_unseen_rows_raises,
    operands_are_unchanged,
    weights_are_repetitions,
    classes_can_be_reindexed,
    classes_can_be_dropped,
    columns_can_be_chosen,
    saved_is_loaded,
]


def assert_laws(subject: Subject, laws: Sequence[Law], examples: int) -> None:
    """All laws hold for each of so many examples of rows."""

    @settings(max_examples=examples)
    @given(all_rows=rows(subject), seed=st.integers(0, 2**32 - 1))
    def hold(all_rows: Rows, seed: int) -> None:
        for law in laws:
            law(subject, all_rows, np.random.default_rng(seed))

    hold()


# ---- subjects ---------------------------------------------------------------------------------------------------


def modules(package: ModuleType, *, besides: set[str]) -> list[str]:
    """The names of a package's files."""
    return sorted(file.name for file in pkgutil.iter_modules(package.__path__) if file.name not in besides)


def members(package: ModuleType, base: type) -> dict[type, str]:
    """Each concrete subclass of `base` defined in the package, and the file it lives in."""
    classes = {}
    for name in modules(package, besides=set()):
        module = importlib.import_module(f"{package.__name__}.{name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__:
                classes[value] = name
    return {member: name for member, name in classes.items() if not getattr(member, "__abstractmethods__", None)}


def subjects(package: ModuleType, base: type, tests: str) -> list[Subject]:
    """The SUBJECTS of the test files of a package's members."""
    files = [f"{tests}.test_{name}" for name in sorted(set(members(package, base).values()))]
    modules = [importlib.import_module(file) for file in files if importlib.util.find_spec(file) is not None]
    return [subject for module in modules for subject in getattr(module, "SUBJECTS", [])]


def all_families() -> dict[type, str]:
    """Public families, and those of weighted evidence."""
    return members(families, families.Family) | members(evidence, families.Family)


def family_subjects() -> list[Subject]:
    return subjects(families, families.Family, "tests.families") + subjects(evidence, families.Family, "tests.evidence")
