"""Soundness: whether what a file holds is what its class is made from. The types of fields first, then their shapes.

Each check gets the fields of one object before that is made; what the fields hold was made, and checked, before. So
nothing is done with an array, or allocated after a number, that was not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from math import prod
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from deciban.batch import Coded, Derived, Notation, Texts
from deciban.errors import DecibanError
from deciban.late import late
from deciban.statistics.base import require, require_numbers, require_weights
from deciban.statistics.counts import is_in_order
from deciban.types import FloatArray, IntArray, Level, Levels, Names

if TYPE_CHECKING:
    from deciban.design import Design, Part
    from deciban.families import Natural
    from deciban.families.mixed import Coding
    from deciban.generative import Block
    from deciban.plans import Missing, Plan
    from deciban.schema import Schema
    from deciban.statistics import Sum
    from deciban.weighing.weights import UnknownColumns

designs = late("deciban.design")
folding = late("deciban.weighing.folds")
mixed = late("deciban.families.mixed")

MOST_TEXTS = 8  # that stand for a missing value in a column
MOST_CHARACTERS = 1 << 28  # of an array of text, whose cells are all as wide as the widest


# Types ---------------------------------------------------------------------------------------------------------------


@cache
def hints_of(annotated: Any) -> dict[str, Any]:
    return get_type_hints(annotated)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type, all the way down.

    A whole number is a float, too; a numpy scalar is what it holds; an array is a Sequence.

    >>> fits(("a", 1), tuple[str | int, ...]), fits(3, float), fits(["a"], Sequence[float])
    (True, True, False)
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, option) for option in arguments)
    if origin is Literal:
        return any(type(value) is type(option) and value == option for option in arguments)
    if hint in PLAIN:
        return isinstance(value, PLAIN[hint])
    if origin in CONTAINERS:
        return CONTAINERS[origin](value, arguments)
    wanted = origin or hint
    if getattr(wanted, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(wanted) if not name.startswith("_"))
    return isinstance(value, wanted)


def _array_fits(value: Any, arguments: tuple[Any, ...]) -> bool:
    (number,) = get_args(arguments[1])
    return isinstance(value, np.ndarray) and (number is Any or value.dtype == number)


@cache
def _by_type(hint: Any) -> bool:
    """Whether it is the type of a value alone that decides whether it fits."""
    if get_origin(hint) in (Union, UnionType):
        return all(map(_by_type, get_args(hint)))
    return hint is str or hint in PLAIN


def _tuple_fits(value: Any, arguments: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple):
        return False
    if arguments[1:] == (...,):
        # of many numbers one of each type will do
        some = {type(item): item for item in value}.values() if _by_type(arguments[0]) else value
        return all(fits(item, arguments[0]) for item in some)
    return len(value) == len(arguments) and all(map(fits, value, arguments))


def _sequence_fits(value: Any, arguments: tuple[Any, ...]) -> bool:
    return isinstance(value, (list, tuple, np.ndarray)) and all(fits(item, arguments[0]) for item in value)


def _mapping_fits(value: Any, arguments: tuple[Any, ...]) -> bool:
    key, item = arguments
    return isinstance(value, dict) and all(fits(k, key) and fits(v, item) for k, v in value.items())


def _set_fits(value: Any, arguments: tuple[Any, ...]) -> bool:
    return isinstance(value, frozenset) and all(fits(item, arguments[0]) for item in value)


PLAIN: dict[Any, Any] = {
    float: Real,
    int: Integral,
    bool: (bool, np.bool_),
    Hashable: (str, Real, np.bool_, NoneType),  # a Level
    NoneType: NoneType,
}
CONTAINERS: dict[Any, Callable[[Any, tuple[Any, ...]], bool]] = {
    np.ndarray: _array_fits,
    tuple: _tuple_fits,
    Sequence: _sequence_fits,
    dict: _mapping_fits,
    Mapping: _mapping_fits,
    frozenset: _set_fits,
}


def require_narrow(words: Sequence[Any]) -> None:
    """That words make an array of text of a bearable size."""
    widest = max((len(word) for word in words if isinstance(word, str)), default=0)
    require(widest * len(words) <= MOST_CHARACTERS, "one of many words is too long")


# Generative models ---------------------------------------------------------------------------------------------------


def notation(style: str, missing: tuple[str, ...] = ()) -> None:
    require(len(missing) <= MOST_TEXTS, f"{len(missing)} texts are missing values")


def derived(part: str, columns: tuple[int, ...]) -> None:
    wanted = 2 if part == "gap" else 1
    require(len({*columns}) == len(columns) == wanted, f"a {part} of {len(columns)} columns")


def schema(
    names: Names,
    kinds: tuple[str, ...],
    notations: tuple[Notation | None, ...] = (),
    derived: tuple[Derived, ...] = (),
) -> None:
    require(not notations or len(notations) == len(kinds), f"{len(notations)} notations of {len(kinds)} columns")
    for kind, how in zip(kinds, notations, strict=False):
        require(how is None or how.kind == kind, f"a column of kind {kind} is read as another")
    dates = {j for j, kind in enumerate(kinds) if kind == "date"}
    require(all(dates >= {*found.columns} for found in derived), "a part of a date is derived from what is none")
    require(len({*derived}) == len(derived), "a part of a date is there twice")
    require(len(names) == len(kinds), f"{len(names)} columns of {len(kinds)} kinds")
    if isinstance(names, range):
        require(names == range(len(kinds)), "columns do not count from 0")
    else:
        require(len(set(names)) == len(names), "two columns have one name")


def classes_in_order(classes: Levels) -> None:
    require(all(isinstance(label, (str, int)) for label in classes), "a class is neither text nor a whole number")
    require(is_in_order(classes), "classes are not in order, or twice there")
    require_narrow(classes)


def labels(classes: Levels, array: NDArray[Any], scores: int) -> None:
    """That an array holds just these classes, one for each score."""
    classes_in_order(classes)
    require(array.ndim == 1 and array.tolist() == list(classes), "classes_ are other classes")
    require(len(classes) == scores, f"{len(classes)} classes for {scores} scores")


def plan(family: Any, columns: tuple[int, ...], presence: bool = False, lenient: bool = False) -> None:
    require(columns and min(columns) >= 0, "a block without columns")
    require(len(set(columns)) == len(columns), "a column is twice in a block")
    require(not presence or family.reads != "codes", "whether a cell is there is no category")


def block(plan: Plan, statistic: Any) -> None:
    family = plan.family
    collected = hints_of(type(family).collect)["return"]
    require(isinstance(statistic, collected), f"{type(family).__name__} collects no {type(statistic).__name__}")
    if hasattr(statistic, "shared") and hasattr(family, "covariance"):
        require(statistic.shared == (family.covariance == "shared"), "a scatter of another kind of covariance")
    if family.reads == "mixed":
        read = len(family.reading.levels)  # type: ignore[attr-defined]
        require(read == len(plan.columns), f"{read} columns are read instead of {len(plan.columns)}")
    for name in ("cap", "bits"):
        if hasattr(statistic, name) and hasattr(family, name):
            mine, wanted = getattr(statistic, name), getattr(family, name)
            require(mine == wanted, f"a histogram with a {name} of {mine} instead of {wanted}")


def generative(
    schema: Schema, classes: Levels, counts: Sum, blocks: tuple[Block, ...], missing: Missing = "skip"
) -> None:
    classes_in_order(classes)
    require_weights("counts", counts, (len(classes),))
    require((counts.value > 0).all(), "a class has no rows")
    for place, found in enumerate(blocks):
        columns = found.plan.columns
        require(max(columns) < len(schema.all_kinds), f"block {place} reads a column that is not there")
        try:
            found.statistic.check(len(classes), found.plan.family.width(len(columns)))
        except DecibanError as error:
            raise DecibanError(f"block {place}, {type(found.plan.family).__name__}: {error}") from None


def column_evidence(absolute: FloatArray, signed: FloatArray, weight: float) -> None:
    require(absolute.ndim == 1 and absolute.shape == signed.shape, "evidence of other columns")
    require(not (np.isnan(absolute).any() or np.isnan(signed).any()), "evidence of a column is not a number")
    require((absolute >= np.abs(signed) * (1 - 1e-9)).all(), "evidence of a column is below its mean")
    require(0 < weight < np.inf, f"evidence from rows of weight {weight}")


# Weighed evidence ----------------------------------------------------------------------------------------------------


def coding(cuts: tuple[Any, ...], levels: tuple[Any, ...]) -> None:
    require(len(cuts) == len(levels) > 0, f"cuts of {len(cuts)} columns, values of {len(levels)}")
    for cut, values in zip(cuts, levels, strict=True):
        require((cut is None) != (values is None), "a column has both cuts and values, or neither")
        size = 2 + len(values if cut is None else cut)
        require(size <= mixed.MOST_CODES, f"a column has {size} codes")
        if cut is not None:
            require(np.isfinite(cut).all() and (np.diff(cut) > 0).all(), "cuts do not ascend")
        else:
            require(len(set(values)) == len(values), "a value is twice there")


def encoding(
    middle: tuple[Any, ...],
    spread: tuple[Any, ...],
    range: tuple[Any, ...],
    levels: tuple[Any, ...],
    baseline: tuple[bool, ...] = (),
) -> None:
    require(len(baseline) in (0, len(levels)), f"baselines of {len(baseline)} columns")
    require(len(middle) == len(spread) == len(range) == len(levels) > 0, "numbers and values of different columns")
    for m, s, ends, values in zip(middle, spread, range, levels, strict=True):
        alike = (m is None) == (s is None) == (ends is None)
        require(alike and (m is None) != (values is None), "a column is both a number and a category, or neither")
        if values is None:
            require(np.isfinite([m, s, *ends]).all() and s > 0 and ends[0] <= ends[1], "a spread is not above 0")
        else:
            require(len(set(values)) == len(values) > 0, "a value is twice there, or none is")
    for values, first in zip(levels, baseline, strict=bool(baseline)):
        require(not first or (values is not None and len(values) > 1), "a baseline is the only value")


def paired(reading: Coding, pairs: tuple[tuple[int, int], ...] = (), least: float = 0.0) -> None:
    require(0 <= least < np.inf, f"a gain of {least}")
    d = len(reading.cuts)
    require(
        pairs and all(0 <= a < d and 0 <= b < d and a != b for a, b in pairs), "pairs of columns that are not there"
    )


def forest(reading: Coding, starts: Any, column: Any, code: Any, left: Any, seed: int) -> None:
    require(starts.ndim == 1 and len(starts) > 1 and starts[0] == 0, "trees do not begin at 0")
    require(
        (np.diff(starts) > 0).all() and column.shape == code.shape == left.shape == (starts[-1],), "nodes are lacking"
    )
    require(column.min() >= -1 and column.max() < len(reading.cuts), "a node asks for a column that is not there")
    require(0 <= seed < 1 << 63, f"a seed of {seed}")
    tree = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    place = np.arange(starts[-1]) - starts[tree]
    inner, left = column >= 0, left.astype(np.int64)
    require(
        (left[inner] > place[inner]).all() and (left[inner] + 1 < np.diff(starts)[tree[inner]]).all(), "a node is lost"
    )
    leaves = np.cumsum(~inner) - 1
    before = np.concatenate([[0], np.cumsum(~inner)])[starts[:-1]]
    require((left[~inner] == (leaves - before[tree])[~inner]).all(), "leaves are not counted in order")


def weights(
    classes: Levels,
    kinds: tuple[str, ...],
    columns: tuple[Levels, ...],
    values: FloatArray,
    bias: FloatArray,
    fold_values: FloatArray,
    fold_bias: FloatArray,
    prior_share: float,
    shares: dict[str, float],
    rows: int,
    unknown: UnknownColumns,
) -> None:
    require(unknown.values.shape[1:] == (len(kinds), len(classes)), "changes of other weights")
    require(len(set(classes)) == len(classes), "a class is twice there")
    require(0 <= prior_share <= 1, f"a share of the prior of {prior_share}")
    require(all(0 <= share <= 1 for share in shares.values()), "a share of a candidate is not from 0 to 1")
    folds = len(fold_bias)
    require(folds in (0, folding.FOLDS), f"weights of {folds} folds")
    require_numbers("fold_values", fold_values, (folds, len(kinds), len(classes)))
    require((fold_values >= 0).all(), "a weight is below 0")
    require_numbers("fold_bias", fold_bias, (folds, len(classes)))
    require(len(kinds) == len(columns) == len(values), f"{len(values)} weights of {len(kinds)} pieces")
    require_numbers("weights", values, (len(kinds), len(classes)))
    require((values >= 0).all(), "a weight is below 0")
    require_numbers("bias", bias, (len(classes),))


def unknown_columns(
    names: Levels,
    informative: tuple[bool, ...],
    values: FloatArray,
    bias: FloatArray,
    fold_values: FloatArray,
    fold_bias: FloatArray,
) -> None:
    require(len(set(names)) == len(names) == len(informative), "a column that may be unknown is twice there")
    require(values.ndim == 3 and bias.ndim == 2, "changes of weights are no tables")
    require_numbers("changes", values, (len(names), *values.shape[1:]))
    require_numbers("changes of the bias", bias, (len(names), values.shape[2]))
    folds = len(fold_bias)
    require(folds in (0, folding.FOLDS), f"changes of weights for {folds} folds")
    require_numbers("changes by folds", fold_values, (folds, *values.shape))
    require_numbers("changes of the bias by folds", fold_bias, (folds, *bias.shape))


def column_facts(repeats: tuple[tuple[Level, Level], ...], identifiers: tuple[tuple[Level, float], ...]) -> None:
    require(all(a != b for a, b in repeats), "a column repeats itself")
    require(len({a for a, _ in repeats}) == len(repeats), "a column repeats two others")
    require(all(0 < share <= 1 for _, share in identifiers), "a share of cells is not from 0 to 1")


def choice(value: float, other: float, decibans: float) -> None:
    require(0 <= value <= 1, f"a shrinkage of {value}")


# Linear models -------------------------------------------------------------------------------------------------------


def numbers(labels: tuple[Level, ...], fill: FloatArray, share: FloatArray, spread: FloatArray | None = None) -> None:
    for name, values in {"fill": fill, "share": share, "spread": spread}.items():
        if values is not None:
            require_numbers(name, values, (len(labels),))
    require(((share >= 0) & (share <= 1)).all(), "a share of rows is not from 0 to 1")


def indicators(labels: tuple[Level, ...], levels: tuple[Levels, ...], origin: FloatArray) -> None:
    require(len(labels) == len(levels), f"values of {len(levels)} columns instead of {len(labels)}")
    require(all(map(is_in_order, levels)), "values of a column are not in order, or twice there")
    require_numbers("origin", origin, (sum(max(0, len(values) - 1) for values in levels),))


def natural(
    names: tuple[str, ...],
    columns: tuple[int, ...],
    eta: FloatArray,
    presence: Any,
    constant: FloatArray,
    absence: Any = None,
) -> None:
    m = len(names)
    require_numbers("constant", constant, (constant.size,))
    require_numbers("eta", eta, (len(constant), m))
    require(len(columns) == m and min(columns, default=0) >= 0, f"{len(columns)} owners of {m} entries")
    require(presence.shape == (m,), f"presence has shape {presence.shape} instead of {(m,)}")
    require(absence is None or absence.shape == (m,), f"absence is not of shape {(m,)}")


def sufficient(plan: Plan, params: Any, natural: Natural, levels: tuple[Levels, ...] | None, missing: Missing) -> None:
    """Parameters are tried on no rows at all: that takes all shapes that rows would."""
    family, d = plan.family, len(plan.columns)
    require(plan.columns == tuple(range(d)), "the columns of a feature do not count from 0")
    require(max(natural.columns, default=0) < d, "a feature of a column that is not there")
    require((levels is None) == (family.reads != "codes"), "values of numbers, or none of categories")
    require(levels is None or (len(levels) == d and all(map(is_in_order, levels))), "values of other columns")
    wanted = hints_of(type(family).estimate)["return"]
    require(isinstance(params, wanted), f"{type(family).__name__} has no {type(params).__name__}")
    for name, (array, shape) in shapes(params, len(natural.constant), d).items():
        require(array.shape == shape, f"{name} has shape {array.shape} instead of {shape}")
    require(getattr(params, "levels", levels) == levels, "parameters of other values")
    rows: Any = np.zeros((0, d)) if levels is None else Coded(np.zeros((0, d), np.int32), levels)
    if family.reads == "texts":
        rows = Texts((), np.zeros((0, d, 3), np.int64))
    with np.errstate(all="ignore"):
        width = family.sufficient(params, rows).shape[1]
    require(width == len(natural.names), f"{len(natural.names)} natural parameters of {width} statistics")


def shapes(params: Any, k: int, d: int) -> dict[str, tuple[NDArray[Any], tuple[int, ...]]]:
    """The arrays among the parameters of k classes in d columns, each with the shape that it should have."""
    wanted: dict[str, tuple[int, ...]] = {}
    match type(params).__name__:
        case "BernoulliParams":
            wanted = {"log_p": (k, d, 2), "informative": (d,)}
        case "GaussianParams":
            wanted = {"mean": (k, d), "variance": (k, d), "informative": (d,)}
        case "RateParams":
            wanted = {"rate": (k, d), "informative": (d,)}
        case "TextParams":
            v = len(params.terms)
            wanted = {"log_p": (k, v), "absent": (k,), "table": (v, -(-k // 4) * 4)}
        case "MultinomialParams":
            wanted = {"log_p": (k, d)}
        case "MultivariateGaussianParams":
            m = 1 if len(params.covariance) == 1 else k
            wanted = {"mean": (k, d), "skipped": (k,), "constant": (m,), "covariance": (m, d, d), "whiten": (m, d, d)}
        case "CategoricalParams":
            sizes = [len(values) + params.reserve for values in params.levels]
            return {f"log_p {j}": (table, (k, sizes[j])) for j, table in enumerate(params.log_p)}
        case "BinnedParams":
            cuts = {f"cuts {j}": (cut, (cut.size,)) for j, cut in enumerate(params.cuts)}
            return cuts | {f"log_p {j}": (p, (k, 1 + params.cuts[j].size)) for j, p in enumerate(params.log_p)}
    return {name: (getattr(params, name), shape) for name, shape in wanted.items()}


def part(columns: tuple[int, ...], encoder: Any) -> None:
    require(columns and min(columns) >= 0, "features of no column")
    width = len(encoder.plan.columns) if isinstance(encoder, designs.Sufficient) else len(encoder.labels)
    require(width == len(columns), f"features of {width} columns instead of {len(columns)}")


def design(schema: Schema, parts: tuple[Part, ...]) -> None:
    for found in parts:
        require(max(found.columns) < len(schema.names), "features of a column that is not there")
        if isinstance(found.encoder, (designs.Numbers, designs.Indicators)):
            names = tuple(schema.names[j] for j in found.columns)
            require(found.encoder.labels == names, "features have the names of other columns")


def predictor(design: Design, coefficients: FloatArray, constant: FloatArray, origin: FloatArray) -> None:
    p = len(design.names)
    require_numbers("constant", constant, (constant.size,))
    require_numbers("coefficients", coefficients, (len(constant), p))
    require_numbers("origin", origin, (p,))


def inference(estimates: FloatArray, covariance: FloatArray, undetermined: tuple[int, ...], **others: float) -> None:
    require(estimates.ndim == 2, "estimates are no matrix")
    size = prod(estimates.shape)
    require(covariance.shape == (size, size), f"a covariance of shape {covariance.shape} for {size} coefficients")
    require(all(0 <= place < estimates.shape[1] for place in undetermined), "an undetermined place is not there")


def certificate(rows: IntArray, multipliers: FloatArray) -> None:
    require(rows.ndim == 1, "rows are no list")
    require_numbers("multipliers", multipliers, rows.shape)


def table(title: str, header: tuple[str, ...], rows: tuple[tuple[Any, ...], ...], note: str = "") -> None:
    require(all(len(row) == len(header) for row in rows), "a row is not as long as the header")


# by the name of the class in a file
CHECKS: dict[str, Callable[..., None]] = {
    "Notation": notation,
    "Derived": derived,
    "Schema": schema,
    "Plan": plan,
    "Block": block,
    "Generative": generative,
    "Choice": choice,
    "ColumnEvidence": column_evidence,
    "Coding": coding,
    "Encoding": encoding,
    "families.Pairs": paired,
    "families.Forest": forest,
    "UnknownColumns": unknown_columns,
    "Weights": weights,
    "ColumnFacts": column_facts,
    "Numbers": numbers,
    "Indicators": indicators,
    "Natural": natural,
    "Sufficient": sufficient,
    "Part": part,
    "Design": design,
    "Predictor": predictor,
    "Inference": inference,
    "Certificate": certificate,
    "Table": table,
}
