"""Scoring: a model as plain numbers, by which page/scoring.js scores and explains rows as the model does."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.batch import MISSING, UNSEEN
from deciban.charts.figures import cell_of
from deciban.contributions import line_title, title
from deciban.errors import DecibanError
from deciban.families.formulas import Always, Bag, Code, Curve, Formula, Lookup, Owner, Weighted, owners_of, placed
from deciban.generative import Estimate, Generative
from deciban.linear.predictor import Predictor
from deciban.plans import Plan
from deciban.schema import Schema
from deciban.statistics import Counts
from deciban.statistics.tokens import Terms
from deciban.table import numbered
from deciban.types import FloatArray, Level, Levels, Names, sorted_levels
from deciban.weighing.weighed import Weighed

LARGE = 100_000  # bytes of arrays, beyond which they are deflated
MOST = 20_000_000  # characters that they may take in a page
NONE, LAST = -1, -2  # instead of the column of a part: it has none, or is listed after the others, too
TYPES = (("u1", np.uint8), ("u2", np.uint16), ("u4", np.uint32), ("i4", np.int32))


def scoring(model: Any) -> dict[str, Any]:
    """All that page/scoring.js needs to score rows by a fitted model; or {"why": …}, if it cannot.

    >>> import deciban as db
    >>> model = db.NaiveBayes().fit([["yes", 125], ["no", 100], ["no", 70], ["no", 95]], [0, 0, 1, 1])
    >>> found = scoring(model)
    >>> found["classes"], found["parts"]
    (['0', '1'], ['prior', '0', '1'])
    >>> [(column["kind"], column["levels"]) for column in found["columns"]]
    [('category', ['no', 'yes']), ('number', None)]
    """
    try:
        corrections, inner = _uncorrected(model)
        found = _scored(inner)
    except DecibanError as error:
        return {"why": str(error)}
    return _packed_model(found, corrections)


@dataclass(frozen=True)
class Scored:
    """A model as a sum: what it starts from, and what formulas add."""

    schema: Schema
    classes: Levels
    prior: FloatArray  # (K) the answer for a row that is impossible under every class
    start: FloatArray  # (K) what the first part of an explanation has without any column
    first: str  # how that part is called
    owners: tuple[Owner, ...]  # of the other parts, in their order
    formulas: tuple[Formula, ...]
    constants: tuple[tuple[str, FloatArray], ...] = ()  # parts that belong to no column, with (K) what they add
    limit: tuple[str, float] | None = None  # the line that bounds the evidence, and the share of the prior that does so
    mean: str | None = None  # the response, where the score is that of a number
    probable: bool = True  # whether scores are logarithms of probabilities
    clocks: Mapping[int, bool] = field(default_factory=dict)  # of dates, whether they have a time of day, if known
    unknown: tuple[Code, ...] = ()  # the columns whose weights change where they are unknown, and below 0 there
    bias_changes: FloatArray | None = None  # (C, K) how the first constant changes then


def _uncorrected(model: Any) -> tuple[list[dict[str, Any]], Any]:
    """The corrections of a calibrated model, the innermost first, and the model that they correct."""
    if not hasattr(model, "model_") or not hasattr(model, "evidence_"):
        return [], model
    corrections, inner = _uncorrected(model.model_)
    classes = tuple(model.model_.classes_.tolist())
    return [*corrections, model.evidence_.formula(classes)], inner


def _scored(model: Any) -> Scored:
    if hasattr(model, "weighed_"):
        return _of_weighed(model.weighed_)
    if hasattr(model, "estimate_"):
        return _of_estimate(model.estimate_)
    if hasattr(model, "predictor_"):
        return _of_predictor(model)
    raise DecibanError(f"a {type(model).__name__} is a model of another library, which is known by its answers alone")


# Generative models ---------------------------------------------------------------------------------------------------


def _of_estimate(estimate: Estimate) -> Scored:
    """log p(c) + Σ_blocks log p(x_block|c), in the order of `Estimate.contributions`."""
    evidence, found = estimate.evidence, list[Formula]()
    for block, params in zip(evidence.blocks, estimate.params, strict=True):
        formulas = block.plan.family.formula(params)
        found += [_read_by(block.plan, formula, estimate, evidence.schema.names) for formula in formulas]
    owners = sorted({owner for formula in found for owner in owners_of(formula)})
    prior = estimate.log_prior
    return Scored(evidence.schema, evidence.classes, prior, prior, "prior", tuple(owners), tuple(found))


def _read_by(plan: Plan, formula: Formula, estimate: Estimate, names: Names) -> Formula:
    """As a plan reads cells (see `plans.read` and `Estimate.read`), in the columns of the table."""
    if isinstance(formula, Lookup):
        formula = replace(formula, codes=tuple(_read_code(plan, code, estimate) for code in formula.codes))
    elif isinstance(formula, Curve):
        formula = replace(formula, lenient=_lenient(plan, formula.domains))
    return _titled(placed(formula, plan.columns), plan.columns, names)


def _read_code(plan: Plan, code: Code, estimate: Estimate) -> Code:
    if plan.presence:
        return code.present()
    if code.levels is None:
        return replace(code, lenient=_lenient(plan, code.domains))
    code = replace(code, refused=estimate.settings.unseen == "error")
    return code.counting_missing() if estimate.evidence.missing == "category" else code


def _lenient(plan: Plan, domains: Sequence[str]) -> bool:
    """Whether a number outside of the domain is missing: an amount below 0 never is."""
    return plan.lenient and "amount" not in domains


def _titled(formula: Formula, columns: Sequence[int], names: Names) -> Formula:
    """Lines of terms are called by their columns, too."""
    return replace(formula, title=line_title(columns, names, "")) if isinstance(formula, Bag) else formula


def _of_weighed(weighed: Weighed) -> Scored:
    """log p(c) + b_c + Σ_pieces w_pc·evidence_pc, in the order of `Weighed.contributions`."""
    evidence, found = weighed.evidence, list[Formula]()
    for (block, reader, weights), (changes, alone) in zip(weighed.readers, weighed.changes, strict=True):
        for p, formula in reader.formulas():
            if not (weights[p].any() or changes[:, p].any()):
                continue
            if isinstance(formula, Lookup) and block.plan.family.reads == "codes":
                formula = replace(formula, codes=tuple(code.counting_missing() for code in formula.codes))
            columns = block.plan.columns
            formula = _titled(placed(formula, columns), columns, evidence.schema.all_names)
            column = int(np.argmax(alone[:, p])) if alone[:, p].any() else NONE
            found.append(Weighted(formula, weights[p], changes[:, p], column))
    owners = [(j,) for j in weighed.explained_columns]
    bias = (("intercept", weighed.bias),) if weighed.has_intercept else ()
    prior, share = weighed.log_prior, weighed.weights.prior_share
    return Scored(
        evidence.schema,
        evidence.classes,
        prior,
        prior,
        "prior",
        tuple(owners),
        tuple(found),
        constants=bias,
        limit=(weighed.limit_name, share) if share else None,
        clocks=_clocks(evidence),
        unknown=_unknown(weighed),
        bias_changes=weighed.weights.bias_changes_of(evidence.classes),
    )


def _unknown(weighed: Weighed) -> tuple[Code, ...]:
    """A code for each column that may be unknown in a row: below 0 where it is."""
    evidence, names = weighed.evidence, weighed.weights.unknown.names
    levels = {
        j: known
        for block in evidence.blocks
        if isinstance(block.statistic, Counts) and not block.plan.family.joint
        for j, known in zip(block.plan.columns, block.statistic.levels, strict=True)
    }
    codes = []
    for name, informative in zip(names, weighed.weights.unknown.informative, strict=True):
        j = list(evidence.schema.names).index(name)
        missing = 0 if informative else MISSING
        if j in levels:
            known = tuple(level for level in levels[j] if level is not None)
            missing = missing if None in levels[j] else MISSING
            codes.append(Code(j, len(known), levels=known, missing=missing))
        else:
            codes.append(Code(j, 1, cuts=np.zeros(0), missing=missing))
    return tuple(codes)


# Linear models -------------------------------------------------------------------------------------------------------


def _of_predictor(model: Any) -> Scored:
    """constant + Σ_columns, in the order of `Predictor.contributions`."""
    predictor: Predictor = model.predictor_
    classes = tuple(model.classes_.tolist()) if hasattr(model, "classes_") else ()
    if len(predictor.constant) < len(classes):  # scores against the first class
        w, b = predictor.coefficients, predictor.constant
        predictor = replace(predictor, coefficients=np.vstack([0.0 * w[:1], w]), constant=np.append(0.0, b))
    owners = tuple((j,) for j in sorted(set(predictor.design.owners)))
    formulas = [f for f in predictor.formula() if set(owners_of(f)) & set(owners)]
    mean = None if classes else model.response_.name
    prior, constant = predictor.log_prior, predictor.constant
    probable = hasattr(model, "predict_proba")
    return Scored(
        predictor.schema, classes, prior, constant, predictor.start, owners, tuple(formulas), (), None, mean, probable
    )


# As JSON -------------------------------------------------------------------------------------------------------------


def _packed_model(model: Scored, corrections: list[dict[str, Any]]) -> dict[str, Any]:
    place, owners = {(): 0, **{owner: 1 + i for i, owner in enumerate(model.owners)}}, model.schema.owners
    said = {owner for formula in model.formulas for owner in owners_of(formula)}
    names, first = model.schema.names, 1 + len(model.owners)
    derived = {owner: owners(owner) for owner in said - place.keys()}
    gaps = sorted({of for of in derived.values() if of not in place and all((j,) in place for j in of)})
    place |= {of: first + len(model.constants) + i for i, of in enumerate(gaps)}
    pack = Pack(_levels(model), place | {owner: place[of] for owner, of in derived.items() if of in place})
    columns = _columns(model, pack.levels)
    kind = {"kind": "intercept", "changes": model.bias_changes} if model.unknown else {"kind": "always"}
    constants = [kind | {"part": first + i, "nats": nats} for i, (_, nats) in enumerate(model.constants)]
    found = {
        "columns": columns[: len(names)],
        "derived": columns[len(names) :],
        "classes": numbered(model.classes),
        "parts": [model.first, *(title(owner, names) for owner in model.owners), *dict(model.constants)],
        "owners": [NONE, *map(_column, model.owners), *(LAST for _ in model.constants)],
        "shared": [[place[(j,)] for j in of] for of in gaps],
        "start": pack.value(model.start),
        "unknown": pack.value(model.unknown),
        "formulas": [*map(pack.formula, filter(_says, model.formulas)), *pack.value(constants)],
        "finish": {
            "prior": pack.value(model.prior),
            "limit": None if model.limit is None else dict(zip(("name", "share"), model.limit, strict=True)),
            "mean": model.mean,
            "probable": model.probable,
            "corrections": pack.value(corrections),
        },
    }
    arrays = pack.arrays()
    size = len(arrays["data"])
    return found | {"arrays": arrays} if size <= MOST else {"why": f"it would take {size / 1e6:,.0f} MB"}


def _says(formula: Formula) -> bool:
    return not isinstance(formula, Always) or bool(formula.nats.any())


def _column(owner: Owner) -> int:
    """The column whose value a part shows."""
    return owner[0] if len(owner) == 1 else NONE


def _columns(model: Scored, levels: Mapping[int, Levels]) -> list[dict[str, Any]]:
    """What people need to know to fill in a row."""
    found = []
    bags = (getattr(formula, "formula", formula) for formula in model.formulas)
    texts = {j for formula in bags if isinstance(formula, Bag) for j in formula.columns}
    schema = model.schema
    for j, (name, kind) in enumerate(zip(numbered(schema.all_names), schema.all_kinds, strict=True)):
        known = [cell_of(level) for level in levels[j]] if j in levels else None
        whole = bool(known) and all(isinstance(level, int) and not isinstance(level, bool) for level in levels[j])
        found.append({"name": name, "kind": "text" if j in texts else kind, "levels": known, "integers": whole})
        if kind == "date":
            found[-1]["clock"] = model.clocks.get(j)
        if j >= len(schema.names):
            derived = schema.derived[j - len(schema.names)]
            found[-1] |= {"part": derived.part, "columns": list(derived.columns)}
    return found


def _clocks(evidence: Generative) -> dict[int, bool]:
    """Of columns of dates, whether some were seen with a time of day."""
    own, found = len(evidence.schema.names), {}
    for block in evidence.blocks:
        for j, levels in zip(block.plan.columns, getattr(block.statistic, "levels", ()), strict=False):
            derived = evidence.schema.derived[j - own] if j >= own else None
            if derived is not None and derived.part == "hour":
                found[derived.columns[0]] = not {*levels} <= {0, None}
    return found


def _levels(model: Scored) -> dict[int, Levels]:
    """Of each column that is known by its values, all that some formula knows."""
    found: dict[int, dict[Level, None]] = {}
    for code in _codes((model.formulas, model.unknown)):
        if code.levels is not None:
            found.setdefault(code.column, {}).update(dict.fromkeys(code.levels))
    return {j: sorted_levels(level for level in levels if level is not None) for j, levels in found.items()}


def _codes(value: Any) -> Iterable[Code]:
    if isinstance(value, Code):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _codes(part)
    elif is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            yield from _codes(getattr(value, one.name))


@dataclass
class Pack:
    """Arrays end to end, each of the smallest type that holds it exactly, and where they are."""

    levels: Mapping[int, Levels]  # of each column that has such
    parts: Mapping[Owner, int]  # the place of an owner's part in an explanation
    held: list[bytes] = field(default_factory=list)
    size: int = 0

    def arrays(self) -> dict[str, Any]:
        data = b"".join(self.held)
        deflated = len(data) > LARGE
        packed = zlib.compress(data) if deflated else data
        return {"deflated": deflated, "data": b64encode(packed).decode()}

    def formula(self, formula: Formula) -> dict[str, Any]:
        if isinstance(formula, Weighted):
            held = {name: self.value(getattr(formula, name)) for name in ("weights", "changes", "column")}
            return {"kind": "weighted", "formula": self.formula(formula.formula), **held}
        return {"kind": type(formula).__name__.lower(), **self._fields(formula)}

    def _fields(self, value: Any) -> dict[str, Any]:
        """Fields that are not as most are: they are left out."""
        pairs = ((one, getattr(value, one.name)) for one in fields(value))
        found = {one.name: self.value(held) for one, held in pairs if held is not one.default and one.name != "owner"}
        if isinstance(value, (Lookup, Always, Bag)):
            found |= {} if value.owner is None else {"part": self.parts[value.owner]}
        elif hasattr(value, "columns"):
            own = owners_of(value)
            found["parts"] = self.value(np.array([self.parts[owner] for owner in own if owner]))
        if hasattr(value, "entries"):
            found["owner"] = self.value(value.owner)
        return found

    def value(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return self.array(value)
        if isinstance(value, Terms):
            return self.text(list(value))
        if isinstance(value, Code):
            return self.code(value)
        if is_dataclass(value) and not isinstance(value, type):
            return self._fields(value)
        if isinstance(value, dict):
            return {key: self.value(held) for key, held in value.items()}
        if isinstance(value, (list, tuple)):
            numbers = len(value) > 8 and all(type(held) is int for held in value)
            return self.array(np.array(value)) if numbers else [self.value(held) for held in value]
        return value

    def code(self, code: Code) -> dict[str, Any]:
        """With the places of all values of its column, in their order."""
        plain = self._fields(replace(code, levels=None, places=None))
        if code.levels is None:
            return plain
        own = code.places if code.places is not None else np.arange(len(code.levels))
        place = dict(zip(code.levels, own.tolist(), strict=True))
        places = [place.get(level, UNSEEN) for level in self.levels[code.column]]
        return plain | {"places": self.array(np.array(places, dtype=np.int64))}

    def text(self, terms: Sequence[str]) -> dict[str, Any]:
        """Terms, one in a line; none holds the end of one."""
        whole = "\n".join(terms)
        if whole.count("\n") != max(0, len(terms) - 1):
            raise DecibanError("a term holds the end of a line: its model is scored in Python alone")
        return {"type": "text", "count": len(terms)} | self._put(whole.encode())

    def array(self, array: NDArray[Any]) -> dict[str, Any]:
        """An array; where most rows of a table are there more than once, its different rows and which each is."""
        if array.ndim == 2 and len(array) > 256 and not _fits(array, np.uint32):
            rows, which = np.unique(array, axis=0, return_inverse=True)
            if 2 * len(rows) < len(array):
                return {"type": "rows", "rows": self._plain_array(rows), "which": self._plain_array(which.reshape(-1))}
        return self._plain_array(array)

    def _plain_array(self, array: NDArray[Any]) -> dict[str, Any]:
        name, kind = next(((name, kind) for name, kind in TYPES if _fits(array, kind)), ("f8", np.float64))
        little = np.ascontiguousarray(array).astype(np.dtype(kind).newbyteorder("<"))
        return {"type": name, "shape": list(array.shape)} | self._put(little.tobytes())

    def _put(self, data: bytes) -> dict[str, int]:
        """Bytes at the next place that any type may begin at."""
        place = {"at": self.size, "bytes": len(data)}
        padded = data + bytes(-len(data) % 8)
        self.held.append(padded)
        self.size += len(padded)
        return place


def _fits(array: NDArray[Any], kind: Any) -> bool:
    """Whether whole numbers of a kind hold an array exactly."""
    if not array.size or array.dtype == np.bool_:
        return True
    inside = np.iinfo(kind).min <= array.min() and array.max() <= np.iinfo(kind).max
    return bool(inside and (array.dtype.kind in "iu" or (array == np.floor(array)).all()))
