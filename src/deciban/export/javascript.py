"""Score formulas as JSON and packed arrays, with which page/scoring.js of a report scores rows."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.contributions import title
from deciban.data.batch import UNSEEN
from deciban.data.terms import Terms
from deciban.errors import DecibanError
from deciban.export.formulas import Code, Formula, Mixed, Owner, Weighted, owners_of
from deciban.export.score_formula import ScoreFormula
from deciban.plots.figures import cell_of
from deciban.table import numbered
from deciban.types import Levels

LARGE = 100_000  # bytes of arrays, beyond which they are deflated
MOST = 20_000_000  # characters of arrays in a page
NONE, LAST = -1, -2  # instead of the column of a part: it has none, or it is listed after all others
TYPES = (("u1", np.uint8), ("u2", np.uint16), ("u4", np.uint32), ("i4", np.int32))


def to_javascript(score: ScoreFormula, corrections: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """All that page/scoring.js needs to score and explain rows; {"why": …} if that is too large for a page.

    `corrections` are those of calibrated models, the innermost first.
    """
    position = {(): 0, **{owner: 1 + i for i, owner in enumerate(score.owners)}}
    names, first = score.schema.names, 1 + len(score.owners)
    derived = {owner: score.schema.source_columns(owner) for owner in score.formula_owners - position.keys()}
    sources = {source for source in derived.values() if source not in position}
    shared = sorted(source for source in sources if all((j,) in position for j in source))
    position |= {source: first + len(score.constants) + i for i, source in enumerate(shared)}
    position |= {owner: position[source] for owner, source in derived.items() if source in position}
    pack = Pack(score.levels(), position)
    columns = _columns(score, pack.levels)
    kind = {"kind": "intercept", "changes": score.bias_changes} if score.unknown else {"kind": "always"}
    constants = [kind | {"part": first + i, "nats": nats} for i, (_, nats) in enumerate(score.constants)]
    model = {
        "columns": columns[: len(names)],
        "derived": columns[len(names) :],
        "classes": numbered(score.classes),
        "parts": [score.first, *(title(owner, names) for owner in score.owners), *dict(score.constants)],
        "owners": [
            NONE,
            *(owner[0] if len(owner) == 1 else NONE for owner in score.owners),
            *(LAST for _ in score.constants),
        ],
        "shared": [[position[(j,)] for j in source] for source in shared],
        "start": pack.value(score.start),
        "unknown": pack.value(score.unknown),
        "formulas": [*map(pack.formula, score.active_formulas), *pack.value(constants)],
        "finish": {
            "prior": pack.value(score.prior),
            "limit": None if score.limit is None else dict(zip(("name", "share"), score.limit, strict=True)),
            "mean": score.mean,
            "probabilities": score.probabilities,
            "corrections": pack.value(list(corrections)),
        },
    }
    arrays = pack.arrays()
    size = len(arrays["data"])
    return model | {"arrays": arrays} if size <= MOST else {"why": f"it would take {size / 1e6:,.0f} MB"}


def _columns(score: ScoreFormula, levels: Mapping[int, Levels]) -> list[dict[str, Any]]:
    """What the form of a report needs to read a row; derived features follow those of the table."""
    columns, schema, texts = list[dict[str, Any]](), score.schema, score.text_columns
    for j, (name, kind) in enumerate(zip(numbered(schema.all_names), schema.all_kinds, strict=True)):
        known = [cell_of(level) for level in levels[j]] if j in levels else None
        integers = bool(known) and all(isinstance(level, int) and not isinstance(level, bool) for level in levels[j])
        columns.append({"name": name, "kind": "text" if j in texts else kind, "levels": known, "integers": integers})
        if kind == "date":
            columns[-1]["clock"] = score.clocks.get(j)
        if j >= len(schema.names):
            derived = schema.derived[j - len(schema.names)]
            columns[-1] |= {"part": derived.part, "columns": list(derived.columns)}
    return columns


@dataclass
class Pack:
    """Arrays end to end, each of the smallest type that holds it exactly; formulas refer to them by offset."""

    levels: Mapping[int, Levels]  # the known values of features that are looked up by value
    parts: Mapping[Owner, int]  # the position of an owner's part in an explanation
    chunks: list[bytes] = field(default_factory=list)
    size: int = 0

    def arrays(self) -> dict[str, Any]:
        data = b"".join(self.chunks)
        deflated = len(data) > LARGE
        packed = zlib.compress(data) if deflated else data
        return {"deflated": deflated, "data": b64encode(packed).decode()}

    def formula(self, formula: Formula) -> dict[str, Any]:
        if isinstance(formula, Weighted):
            weights = {name: self.value(getattr(formula, name)) for name in ("weights", "changes", "column")}
            return {"kind": formula.kind, "formula": self.formula(formula.formula), **weights}
        parts: dict[str, Any]
        if hasattr(formula, "owner") and not isinstance(formula, Mixed):  # one owner, or none: terms own what they add
            parts = {} if formula.owner is None else {"part": self.parts[formula.owner]}
        else:
            parts = {"parts": self.value(np.array([self.parts[owner] for owner in owners_of(formula) if owner]))}
        if isinstance(formula, Mixed):
            parts["owner"] = self.value(formula.owner)
        return {"kind": formula.kind, **self._fields(formula), **parts}

    def _fields(self, value: Any) -> dict[str, Any]:
        """Fields that differ from their defaults; owners become parts."""
        pairs = ((item, getattr(value, item.name)) for item in fields(value))
        return {item.name: self.value(v) for item, v in pairs if v is not item.default and item.name != "owner"}

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
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            integers = len(value) > 8 and all(type(item) is int for item in value)
            return self.array(np.array(value)) if integers else [self.value(item) for item in value]
        return value

    def code(self, code: Code) -> dict[str, Any]:
        """A code as JSON, with the code of each known value of its feature, in their order."""
        plain = self._fields(replace(code, levels=None, places=None))
        if code.levels is None:
            return plain
        own_places = code.places if code.places is not None else np.arange(len(code.levels))
        place_of = dict(zip(code.levels, own_places.tolist(), strict=True))
        places = [place_of.get(level, UNSEEN) for level in self.levels[code.column]]
        return plain | {"places": self.array(np.array(places, dtype=np.int64))}

    def text(self, terms: Sequence[str]) -> dict[str, Any]:
        """Terms, one on each line."""
        joined = "\n".join(terms)
        if joined.count("\n") != max(0, len(terms) - 1):
            raise DecibanError("a term holds a line break, so the model can only be scored in Python")
        return {"type": "text", "count": len(terms)} | self._put(joined.encode())

    def array(self, array: NDArray[Any]) -> dict[str, Any]:
        """An array; a table whose rows mostly repeat becomes its distinct rows and the index of each row."""
        if array.ndim == 2 and len(array) > 256 and not _fits(array, np.uint32):
            rows, index = np.unique(array, axis=0, return_inverse=True)
            if 2 * len(rows) < len(array):
                return {"type": "rows", "rows": self._plain_array(rows), "which": self._plain_array(index.reshape(-1))}
        return self._plain_array(array)

    def _plain_array(self, array: NDArray[Any]) -> dict[str, Any]:
        floats = ("f4", np.float32) if array.dtype == np.float32 else ("f8", np.float64)
        name, kind = next(((name, kind) for name, kind in TYPES if _fits(array, kind)), floats)
        little = np.ascontiguousarray(array).astype(np.dtype(kind).newbyteorder("<"))
        return {"type": name, "shape": list(array.shape)} | self._put(little.tobytes())

    def _put(self, data: bytes) -> dict[str, int]:
        """Appends data, padded to 8 bytes, so that an array of any type may follow."""
        span = {"at": self.size, "bytes": len(data)}
        padded = data + bytes(-len(data) % 8)
        self.chunks.append(padded)
        self.size += len(padded)
        return span


def _fits(array: NDArray[Any], kind: Any) -> bool:
    """Whether an integer type holds an array exactly."""
    if not array.size or array.dtype == np.bool_:
        return True
    inside = np.iinfo(kind).min <= array.min() and array.max() <= np.iinfo(kind).max
    return bool(inside and (array.dtype.kind in "iu" or (array == np.floor(array)).all()))
