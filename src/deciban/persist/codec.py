"""A codec: values as a tree of JSON values and named arrays, and back.

A tree holds None, booleans, numbers, text, and lists, which are tuples. All else is an object with the key "is": the
name of a class of this package, with its fields; or one of a few other kinds of values. An array is stored under its
path in the tree, so it is used once. A name that is not in the registry is refused: nothing is imported, looked up or
called by a name that a file gives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from functools import cached_property
from itertools import islice
from math import isfinite, prod
from types import NoneType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deciban.data.class_index import require_narrow
from deciban.errors import DecibanError
from deciban.persist.estimator_state import DECLARATIONS, RENAMED, Types
from deciban.persist.packing import Arrays
from deciban.persist.registry import HOMES, Home, class_at
from deciban.persist.validation import describe, error_at, fields_of, hints_of, require_typed

PLAIN = frozenset({NoneType, bool, int, float, str})  # of JSON
MANY = 64  # items: from here on a tuple of items of one type is stored in a few arrays, and not one by one
MOST_ITEMS = 1 << 20  # arrays or objects that are stored in this way
NUMERIC = frozenset(np.dtype(code).name for code in "?bhilqBHILQefd")  # what safetensors and numpy both have
DTYPE = r"[<>|](?:[biuf]\d{1,2}|[US]\d{1,6}|O)"


class StoredModel(NamedTuple):
    """An estimator without its class: the name of that, its settings, and what it learned (nothing before fit)."""

    kind: str
    params: dict[str, Any]
    state: dict[str, Any]

    @classmethod
    def of(cls, kind: str, settings: Any, state: Any) -> StoredModel:
        """From the dataclasses of an estimator's settings and state."""
        return cls(kind, vars(settings), vars(state))


class Codec:
    """Encodes and decodes values whose classes are in `homes`. Estimators are `StoredModel`s here."""

    homes: Mapping[str, Home] = HOMES

    def name_of(self, kind: type) -> str | None:
        """What a class is called in a file."""
        home = kind.__module__, kind.__qualname__
        name = self._names.get(home) or next((name for name, at in self.homes.items() if at == home), None)
        known = None if name is None else self.homes.get(name)
        return name if known is not None and class_at(known) is kind else None

    @cached_property
    def _names(self) -> dict[Home, str]:
        return {home: name for name, home in self.homes.items()}

    def types_of(self, name: str) -> Types | None:
        """What an estimator of this name holds; None if there is none."""
        return DECLARATIONS[name].types() if name in DECLARATIONS else None

    def to_stored(self, value: Any) -> StoredModel | None:
        """An estimator without its class; None if a value is none."""
        return value if type(value) is StoredModel else None

    def from_stored(self, stored: StoredModel, path: str) -> Any:
        """The inverse of `to_stored`."""
        return stored

    # Encoding ------------------------------------------------------------------------------------------------------

    def encode(self, value: Any, path: str, arrays: Arrays) -> Any:
        """A value as JSON; its arrays are added to `arrays`, by their paths."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if isfinite(value) else {"is": "float", "text": repr(value)}
        stored = self.to_stored(value)
        if stored is not None:
            parts = {"params": stored.params, "state": stored.state}
            return {"is": stored.kind} | {
                part: {key: self.encode(item, f"{path}.{part}.{key}", arrays) for key, item in held.items()}
                for part, held in parts.items()
            }
        for types, encoded in ENCODERS:
            if isinstance(value, types):
                return encoded(self, value, path, arrays)
        known = self.name_of(kind)
        if known is None:
            raise DecibanError(
                f"{path} is {describe(value)}; "
                "a model file holds the classes of deciban, numbers, text and arrays of them"
            )
        held = {field.name: getattr(value, field.name) for field in fields_of(kind)}
        return {"is": known} | {key: self.encode(item, f"{path}.{key}", arrays) for key, item in held.items()}

    def _tuple(self, value: tuple[Any, ...], path: str, arrays: Arrays) -> Any:
        if type(value) is not tuple:
            raise DecibanError(f"{path} is {describe(value)}: use a plain tuple")
        run = next((i for i, item in enumerate(value) if type(item) is not str), len(value))
        if run >= MANY:
            words = [word.encode("utf-8", "surrogatepass") for word in value[:run]]
            arrays[f"{path}.text"] = np.frombuffer(b"".join(words), dtype=np.uint8)
            arrays[f"{path}.ends"] = np.cumsum([len(word) for word in words], dtype=np.int64)
            return {"is": "texts", "rest": self._tuple(value[run:], f"{path}.rest", arrays)}
        if len(value) >= MANY:
            kinds = {type(item) for item in value}
            encoded = next((encoded for like, encoded in ALIKE if kinds <= like), Codec._objects)
            tree = encoded(self, value, path, arrays)
            if tree is not None:
                return tree
        return [self.encode(item, f"{path}.{i}", arrays) for i, item in enumerate(value)]

    def _integers(self, value: tuple[int, ...], path: str, arrays: Arrays) -> Any:
        if not all(-(1 << 63) <= item < 1 << 63 for item in value):
            return None
        arrays[path] = np.array(value, dtype=np.int64)
        return {"is": "integers"}

    def _floats(self, value: tuple[float, ...], path: str, arrays: Arrays) -> Any:
        arrays[path] = np.array(value, dtype=np.float64)
        return {"is": "floats"}

    def _tuples(self, value: tuple[tuple[Any, ...] | None, ...], path: str, arrays: Arrays) -> Any:
        """Tuples one after the other, and how long each is; −1 for None."""
        arrays[f"{path}.sizes"] = np.array([-1 if item is None else len(item) for item in value], np.int64)
        items = tuple(part for item in value for part in item or ())
        return {"is": "tuples", "items": self._tuple(items, f"{path}.items", arrays)}

    def _arrays(self, value: tuple[NDArray[Any], ...], path: str, arrays: Arrays) -> Any:
        """Arrays of one type one after the other, and their shapes."""
        dtype, ndim = value[0].dtype, value[0].ndim
        if dtype.name not in NUMERIC or not ndim or len(value) > MOST_ITEMS:
            return None
        if not all(item.dtype == dtype and item.ndim == ndim and item.flags.c_contiguous for item in value):
            return None
        arrays[path] = np.concatenate([item.reshape(-1) for item in value]).astype(dtype.newbyteorder("="), copy=False)
        arrays[f"{path}.shapes"] = np.array([item.shape for item in value], np.int64)
        return {"is": "arrays"}

    def _objects(self, value: tuple[Any, ...], path: str, arrays: Arrays) -> Any:
        """Objects of one class, field by field."""
        kind = type(value[0])
        name = self.name_of(kind)
        if name is None or self.types_of(name) is not None or len(value) > MOST_ITEMS:
            return None
        if not fields_of(kind) or {type(item) for item in value} != {kind}:
            return None
        held = {f.name: tuple(getattr(item, f.name) for item in value) for f in fields_of(kind)}
        columns = {key: self._tuple(items, f"{path}.{key}", arrays) for key, items in held.items()}
        return {"is": "objects", "of": name, "fields": columns}

    def _list(self, value: list[Any], path: str, arrays: Arrays) -> Any:
        return {"is": "list", "items": self._tuple(tuple(value), path, arrays)}

    def _dict(self, value: Mapping[Any, Any], path: str, arrays: Arrays) -> Any:
        return {"is": "dict", "pairs": self._tuple(tuple(value.items()), path, arrays)}

    def _frozenset(self, value: frozenset[Any], path: str, arrays: Arrays) -> Any:
        # an order that does not depend on hashes
        order = sorted(value, key=lambda item: json.dumps(self.encode(item, path, {})))
        return {"is": "frozenset", "items": self._tuple(tuple(order), path, arrays)}

    def _scalar(self, value: np.generic, path: str, arrays: Arrays) -> Any:
        if value.dtype.name not in NUMERIC and value.dtype.kind != "U":
            raise DecibanError(f"{path} is {describe(value)}: use a plain number or text")
        kind = "str" if value.dtype.kind == "U" else value.dtype.name
        return {"is": "scalar", "dtype": kind, "value": self.encode(value.item(), path, arrays)}

    def _dtype(self, value: np.dtype[Any], path: str, arrays: Arrays) -> Any:
        # of labels; rarer types (numpy's StringDType, very wide text) become object
        return {"is": "dtype", "name": value.str if re.fullmatch(DTYPE, value.str) else "|O"}

    def _array(self, value: NDArray[Any], path: str, arrays: Arrays) -> Any:
        if value.dtype.name in NUMERIC:
            # the order of the numbers may change how sums of products are rounded
            turned = value.flags.f_contiguous and not value.flags.c_contiguous
            plain = value.T if turned else value
            arrays[path] = plain.astype(value.dtype.newbyteorder("="), order="C", copy=False)
            return {"is": "array", "order": "F" if turned else "C"}
        if value.dtype.kind not in "OU":
            raise DecibanError(f"{path} is an array of {value.dtype}: use one of numbers or text")
        cells = self._tuple(tuple(value.ravel().tolist()), path, arrays)
        kind = "object" if value.dtype.kind == "O" else "str"
        return {"is": "cells", "dtype": kind, "shape": [*value.shape], "cells": cells}

    # Decoding ------------------------------------------------------------------------------------------------------

    def decode(self, tree: Any, path: str, arrays: Arrays) -> Any:
        """The inverse of `encode`. Each array is removed from `arrays` where it is used."""
        if isinstance(tree, list):
            if PLAIN.issuperset(map(type, tree)):
                return tuple(tree)
            return tuple(self.decode(item, f"{path}.{i}", arrays) for i, item in enumerate(tree))
        if not isinstance(tree, dict):
            return tree
        held = dict(tree)
        name = held.pop("is", None)
        if name in DECODERS:
            return DECODERS[name](self, held, path, arrays)
        types = self.types_of(name) if isinstance(name, str) else None
        if types is not None:
            return self._estimator(name, types, held, path, arrays)
        self._require_known(name, path)
        values = {field: self.decode(part, f"{path}.{field}", arrays) for field, part in held.items()}
        return self._object(name, values, path)

    def _require_known(self, name: Any, path: str) -> None:
        if not isinstance(name, str) or name not in self.homes:
            raise DecibanError(f"{path} is a {name!r}, which this version of deciban does not know")

    def _object(self, name: str, values: dict[str, Any], path: str) -> Any:
        """The object of a class that is known by this name, from its fields."""
        kind: Any = class_at(self.homes[name])
        known = {field.name: field for field in fields_of(kind)}
        defaults = {f.name: f.default for f in known.values() if f.default is not MISSING}
        hints = hints_of(kind)
        require_typed(path, values, {field: hints[field] for field in known})
        lacking = known.keys() - values.keys() - defaults.keys()
        if lacking:
            raise DecibanError(f"{path} lacks {', '.join(sorted(lacking))}")
        if hasattr(kind, "check_fields"):
            with error_at(path):
                kind.check_fields(SimpleNamespace(**{**defaults, **values}))
        return kind(**values)

    def _estimator(self, name: str, types: Types, held: dict[str, Any], path: str, arrays: Arrays) -> Any:
        params, state = (
            {key: self.decode(value, f"{path}.{part}.{key}", arrays) for key, value in held.pop(part).items()}
            for part in ("params", "state")
        )
        if held:
            raise DecibanError(f"{path} has no {min(held)!r}")
        params = {RENAMED.get(name, {}).get(key, key): value for key, value in params.items()}
        require_typed(f"{path}.params", params, types.params)
        require_typed(f"{path}.state", state, types.state)
        if state and not types.required <= state.keys():
            raise DecibanError(f"{path}.state lacks {', '.join(sorted(types.required - state.keys()))}")
        return self.from_stored(StoredModel(name, params, state), path)

    def _items(self, tree: Any, path: str, arrays: Arrays) -> tuple[Any, ...]:
        """A tuple, whose items the file holds one by one. (A range may have any length.)"""
        items = self.decode(tree, path, arrays)
        if type(items) is not tuple:
            raise DecibanError(f"{path} is {describe(items)} instead of a tuple")
        return items

    def _texts(self, held: dict[str, Any], path: str, arrays: Arrays) -> tuple[Any, ...]:
        text, ends = arrays.pop(f"{path}.text"), arrays.pop(f"{path}.ends")
        listed = text.dtype == np.uint8 and ends.dtype == np.int64 and text.ndim == ends.ndim == 1 and len(ends)
        if not listed or (np.diff(ends, prepend=0) < 0).any() or ends[-1] != len(text):
            raise DecibanError(f"{path} is not text with the ends of its words")
        begins = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        whole = text.tobytes()
        spans = zip(begins.tolist(), ends.tolist(), strict=True)
        words = (whole[a:b].decode("utf-8", "surrogatepass") for a, b in spans)
        return (*words, *self._items(held["rest"], f"{path}.rest", arrays))

    def _split_tuples(self, held: dict[str, Any], path: str, arrays: Arrays) -> tuple[Any, ...]:
        sizes = _listed(arrays.pop(f"{path}.sizes"), np.int64, path)
        items = self._items(held["items"], f"{path}.items", arrays)
        if min(sizes, default=0) < -1 or sum(size for size in sizes if size > 0) != len(items):
            raise DecibanError(f"{path} has {len(items)} items, which is not the sum of its lengths")
        rest = iter(items)
        return tuple(None if size < 0 else tuple(islice(rest, size)) for size in sizes)

    def _split_arrays(self, held: dict[str, Any], path: str, arrays: Arrays) -> tuple[NDArray[Any], ...]:
        flat, shapes = arrays.pop(path), arrays.pop(f"{path}.shapes")
        if shapes.dtype != np.int64 or shapes.ndim != 2 or not shapes.shape[1] or (shapes < 0).any() or flat.ndim != 1:
            raise DecibanError(f"{path} is not a list of shapes")
        if len(shapes) > MOST_ITEMS or (shapes > max(MOST_ITEMS, flat.size)).any():
            raise DecibanError(f"{path} has more arrays, or larger ones, than there are numbers for them")
        split, end = [], 0
        for shape in shapes.tolist():
            begin, end = end, end + prod(shape)
            split.append(flat[begin:end].reshape(shape))  # raises if there are too few numbers
        if end != flat.size:
            raise DecibanError(f"{path} has {flat.size} numbers for arrays of {end}")
        return tuple(split)

    def _split_objects(self, held: dict[str, Any], path: str, arrays: Arrays) -> tuple[Any, ...]:
        self._require_known(held["of"], path)
        columns = {key: self._items(part, f"{path}.{key}", arrays) for key, part in held["fields"].items()}
        lengths = {len(items) for items in columns.values()}
        if len(lengths) != 1 or max(lengths) > MOST_ITEMS:
            raise DecibanError(f"{path} has fields of {sorted(lengths)} objects")
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        return tuple(self._object(held["of"], row, f"{path}.{i}") for i, row in enumerate(rows))

    def _array_in_order(self, held: dict[str, Any], path: str, arrays: Arrays) -> NDArray[Any]:
        array = arrays.pop(path)
        return array.T if held["order"] == "F" else array

    def _cells(self, held: dict[str, Any], path: str, arrays: Arrays) -> NDArray[Any]:
        cells = self._items(held["cells"], path, arrays)
        if not PLAIN.issuperset(map(type, cells)):  # numpy would unfold a tuple or a range
            raise DecibanError(f"{path} has a cell that is neither a number nor text")
        if prod(held["shape"]) != len(cells):
            raise DecibanError(f"{path} has {len(cells)} cells for a shape of {held['shape']}")
        if held["dtype"] == "str":
            require_narrow(cells)
            array = np.array(cells, dtype=np.str_)
        else:
            array = np.empty(len(cells), dtype=object)
            array[:] = cells
        return array.reshape(held["shape"])

    def _number(self, held: dict[str, Any], path: str, arrays: Arrays) -> np.generic:
        if held["dtype"] not in {*NUMERIC, "str"}:
            raise DecibanError(f"{path} is a scalar of an unknown type, {held['dtype']!r}")
        value = self.decode(held["value"], path, arrays)
        if not isinstance(value, (bool, int, float, str)):
            raise DecibanError(f"{path} is a scalar that holds {describe(value)}")
        scalar: np.generic = np.dtype(held["dtype"]).type(value)
        return scalar

    def _typed(self, held: dict[str, Any], path: str, arrays: Arrays) -> np.dtype[Any]:
        if not re.fullmatch(DTYPE, held["name"]):
            raise DecibanError(f"{path} is an unknown type, {held['name']!r}")
        dtype: np.dtype[Any] = np.dtype(held["name"])
        return dtype


def _listed(array: NDArray[Any], dtype: type[np.generic], path: str) -> list[Any]:
    if array.dtype != dtype or array.ndim != 1:
        raise DecibanError(f"{path} is not a list of {dtype.__name__}")
    items: list[Any] = array.tolist()
    return items


ENCODERS: list[tuple[Any, Callable[[Codec, Any, str, Arrays], Any]]] = [
    (tuple, Codec._tuple),
    (list, Codec._list),
    (dict, Codec._dict),
    (range, lambda codec, value, path, arrays: {"is": "range", "ends": [value.start, value.stop, value.step]}),
    (frozenset, Codec._frozenset),
    (np.generic, Codec._scalar),
    (np.dtype, Codec._dtype),
    (np.ndarray, Codec._array),
]
# how tuples of many items are stored, by the types of the items
ALIKE: list[tuple[frozenset[type], Callable[[Codec, Any, str, Arrays], Any]]] = [
    (frozenset({int}), Codec._integers),
    (frozenset({float}), Codec._floats),
    (frozenset({tuple, NoneType}), Codec._tuples),
    (frozenset({np.ndarray}), Codec._arrays),
]
DECODERS: dict[Any, Callable[[Codec, dict[str, Any], str, Arrays], Any]] = {
    "float": lambda codec, held, path, arrays: float(held["text"]),
    "texts": Codec._texts,
    "integers": lambda codec, held, path, arrays: tuple(_listed(arrays.pop(path), np.int64, path)),
    "floats": lambda codec, held, path, arrays: tuple(_listed(arrays.pop(path), np.float64, path)),
    "tuples": Codec._split_tuples,
    "arrays": Codec._split_arrays,
    "objects": Codec._split_objects,
    "list": lambda codec, held, path, arrays: list(codec._items(held["items"], path, arrays)),
    "dict": lambda codec, held, path, arrays: dict(codec._items(held["pairs"], path, arrays)),
    "range": lambda codec, held, path, arrays: range(*held["ends"]),
    "frozenset": lambda codec, held, path, arrays: frozenset(codec._items(held["items"], path, arrays)),
    "scalar": Codec._number,
    "dtype": Codec._typed,
    "array": Codec._array_in_order,
    "cells": Codec._cells,
}
