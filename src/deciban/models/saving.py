"""Saving and loading: a model as a tree of JSON values and named arrays, and back.

A tree holds None, booleans, numbers, text, and lists, which are tuples. All else is an object with the key "is": the
name of a class of this package, with its fields; or one of a few other kinds of values. An array is in the file under
the path of its place in the tree, so each is there once and is used once. A name that is not in the registry is
refused: nothing is imported, looked up or called by a name that a file gives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from math import isfinite, prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deciban import families, priors, statistics
from deciban.choosing import Choice, Contest
from deciban.design import Design, Indicators, Numbers, Part, Sufficient
from deciban.errors import DecibanError
from deciban.families.bernoulli import BernoulliParams
from deciban.families.binned import BinnedParams
from deciban.families.categorical import CategoricalParams
from deciban.families.celled import Pairs
from deciban.families.forest import Forest
from deciban.families.gaussian import GaussianParams
from deciban.families.mixed import Coding, Encoding
from deciban.families.multinomial import MultinomialParams
from deciban.families.multivariate_gaussian import MultivariateGaussianParams
from deciban.families.normals import Normals
from deciban.families.rates import RateParams
from deciban.generative import Block, Generative
from deciban.linear.inference import Inference
from deciban.linear.predictor import Predictor
from deciban.models.calibration import Isotonic, Temperature
from deciban.models.soundness import check, fits, hints_of, require_narrow
from deciban.plans import Plan
from deciban.schema import Schema
from deciban.separation import Certificate
from deciban.statistics.cells import Cells
from deciban.statistics.extrema import Least
from deciban.storage import Arrays, FilePath, read, write
from deciban.table import Table
from deciban.weighing.weights import Weights

MANY = 64  # values: from here on a tuple of text or of whole numbers is an array
NUMERIC = frozenset(np.dtype(code).name for code in "?bhilqBHILQefd")  # what safetensors and numpy both have
DTYPE = r"[<>|][biufUSO]\d{0,9}"


class Savable:
    """An estimator that can be written to a file. `_kept` names the attributes that hold what it learned, and types."""

    _kept: ClassVar[dict[str, Any]]

    def save(self, path: FilePath) -> None:
        """Writes the model to a file, whole or not at all; `deciban.load` reads it. The usual ending is .deciban.

        The file holds what was learned, not the rows: of a generative model its evidence, so that what is loaded can
        merge, forget and learn on. Nothing in it is code.
        """
        self._require_fitted()
        save(self, path)

    def _require_fitted(self) -> None:
        raise NotImplementedError

    def _restored(self) -> None:
        """Makes what follows from the attributes that were kept, and sees that they go together."""
        raise NotImplementedError


def save(model: Savable, path: FilePath) -> None:
    arrays: Arrays = {}
    try:
        tree = encode(model, "model", arrays)
        decode(tree, "model", dict(arrays))  # what could not be loaded is not written
    except RecursionError:
        raise DecibanError("the model cannot be saved: its settings hold themselves") from None
    except Exception as error:
        raise DecibanError(f"the model cannot be saved: {_problem(error)}") from error
    write(path, tree, arrays)


def load(path: FilePath) -> Any:
    """The model that `model.save(path)` wrote: it predicts, explains, merges and forgets as that one does, bit for bit.

    A file from anybody may be loaded: it runs no code, and what is damaged or makes no model is a DecibanError.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import deciban as db
    >>> model = db.NaiveBayes().fit([["red", 1.0], ["blue", 2.0], ["red", 4.0]], ["no", "no", "yes"])
    >>> path = Path(tempfile.mkdtemp()) / "colours.deciban"
    >>> model.save(path)
    >>> db.load(path).partial_fit([["blue", 5.0]], ["yes"]).predict([["red", 1.5], ["blue", 4.5]]).tolist()
    ['no', 'yes']
    """
    tree, arrays = read(path)
    try:
        return _only_model(tree, arrays)
    except Exception as error:
        raise DecibanError(f"{path} is damaged: {_problem(error)}") from error


def _problem(error: Exception) -> str:
    return str(error) if isinstance(error, DecibanError) else f"{type(error).__name__}: {error}"


def _only_model(tree: Any, arrays: Arrays) -> Savable:
    model = decode(tree, "model", arrays)
    if not isinstance(model, Savable) or not kept_of(model):
        raise DecibanError(f"it holds {describe(model)}, and no fitted model")
    if arrays:
        raise DecibanError(f"nothing refers to the array {min(arrays)!r}")
    return model


# Registry ------------------------------------------------------------------------------------------------------------


def _named(prefix: str, *classes: type) -> dict[str, type]:
    return {prefix + found.__name__: found for found in classes}


@cache
def registry() -> dict[str, type]:
    """Every class that a file may hold, by its name there. A class that is renamed keeps its name here."""
    from deciban import models  # which import this file

    return {
        **_named(
            "",
            models.EvidenceClassifier,
            models.NaiveBayes,
            models.GaussianDiscriminant,
            models.Calibrated,
            models.Halfspace,
        ),
        **_named("", models.LogisticRegression, models.SoftmaxRegression, models.GeneralizedLinearModel),
        **_named("families.", families.Bernoulli, families.Binned, families.Categorical, families.Exponential),
        **_named("families.", families.Gaussian, families.Multinomial, families.MultivariateGaussian),
        **_named("families.", families.Poisson, families.Uniform, Pairs, Forest, Normals),
        **_named("", Coding, Encoding, Cells, Weights),
        **_named("priors.", *(getattr(priors, name) for name in priors.__all__)),
        **_named("", statistics.Counts, statistics.Extrema, Least, statistics.Histogram, statistics.Moments),
        **_named("", statistics.Scatter, statistics.Sum, statistics.Totals),
        **_named("", BernoulliParams, BinnedParams, CategoricalParams, GaussianParams, MultinomialParams),
        **_named("", MultivariateGaussianParams, RateParams, families.Natural),
        **_named("", Schema, Plan, Block, Generative, Choice, Contest),
        **_named("", Numbers, Indicators, Sufficient, Part, Design, Predictor, Inference, Certificate, Table),
        **_named("", Temperature, Isotonic),
    }


@cache
def names() -> dict[type, str]:
    return {found: name for name, found in registry().items()}


def describe(value: Any) -> str:
    return f"a {type(value).__module__}.{type(value).__qualname__}"


# Encoding ------------------------------------------------------------------------------------------------------------


def encode(value: Any, path: str, arrays: Arrays) -> Any:
    """A value as JSON; arrays are put into `arrays`, under the path where they stood."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if isfinite(value) else {"is": "float", "text": repr(value)}
    for types, encoded in ENCODERS:
        if isinstance(value, types):
            return encoded(value, path, arrays)
    if kind not in names():
        raise DecibanError(
            f"{path} is {describe(value)}; a model file holds the classes of deciban, numbers, text and arrays of them"
        )
    if isinstance(value, Savable):
        parts = {"params": value.get_params(deep=False), "state": kept_of(value)}  # type: ignore[attr-defined]
        return {"is": names()[kind]} | {
            part: {name: encode(found, f"{path}.{part}.{name}", arrays) for name, found in held.items()}
            for part, held in parts.items()
        }
    held = {field.name: getattr(value, field.name) for field in fields_of(kind)}
    return {"is": names()[kind]} | {name: encode(found, f"{path}.{name}", arrays) for name, found in held.items()}


def kept_of(model: Savable) -> dict[str, Any]:
    """What an estimator has learned; nothing before fit."""
    return {name: vars(model)[name] for name in model._kept if name in vars(model)}


def fields_of(kind: type) -> list[Field[Any]]:
    """What a class is made from. What takes no part in comparisons is only remembered, and can be found again."""
    found = fields(kind) if is_dataclass(kind) else ()
    return [field for field in found if field.init and field.compare]


def _tuple(value: tuple[Any, ...], path: str, arrays: Arrays) -> Any:
    if type(value) is not tuple:
        raise DecibanError(f"{path} is {describe(value)}: use a plain tuple")
    run = next((i for i, item in enumerate(value) if type(item) is not str), len(value))
    if run >= MANY:
        words = [word.encode("utf-8", "surrogatepass") for word in value[:run]]
        arrays[f"{path}.text"] = np.frombuffer(b"".join(words), dtype=np.uint8)
        arrays[f"{path}.ends"] = np.cumsum([len(word) for word in words], dtype=np.int64)
        return {"is": "texts", "rest": _tuple(value[run:], f"{path}.rest", arrays)}
    if len(value) >= MANY and all(type(item) is int and -(1 << 63) <= item < 1 << 63 for item in value):
        arrays[path] = np.array(value, dtype=np.int64)
        return {"is": "integers"}
    return [encode(item, f"{path}.{i}", arrays) for i, item in enumerate(value)]


def _list(value: list[Any], path: str, arrays: Arrays) -> Any:
    return {"is": "list", "items": _tuple(tuple(value), path, arrays)}


def _dict(value: Mapping[Any, Any], path: str, arrays: Arrays) -> Any:
    return {"is": "dict", "pairs": _tuple(tuple(value.items()), path, arrays)}


def _frozenset(value: frozenset[Any], path: str, arrays: Arrays) -> Any:
    order = sorted(value, key=lambda item: json.dumps(encode(item, path, {})))  # by no order that chance decides
    return {"is": "frozenset", "items": _tuple(tuple(order), path, arrays)}


def _scalar(value: np.generic, path: str, arrays: Arrays) -> Any:
    if value.dtype.name not in NUMERIC and value.dtype.kind != "U":
        raise DecibanError(f"{path} is {describe(value)}: use a plain number or text")
    kind = "str" if value.dtype.kind == "U" else value.dtype.name
    return {"is": "scalar", "dtype": kind, "value": encode(value.item(), path, arrays)}


def _dtype(value: np.dtype[Any], path: str, arrays: Arrays) -> Any:
    # of labels; no more is made of the rarer types (numpy's StringDType) than of object
    return {"is": "dtype", "name": value.str if re.fullmatch(DTYPE, value.str) else "|O"}


def _array(value: NDArray[Any], path: str, arrays: Arrays) -> Any:
    if value.dtype.name in NUMERIC:
        # sums of products may be rounded differently in another order, so it is kept
        turned = value.flags.f_contiguous and not value.flags.c_contiguous
        plain = value.T if turned else value
        arrays[path] = plain.astype(value.dtype.newbyteorder("="), order="C", copy=False)
        return {"is": "array", "order": "F" if turned else "C"}
    if value.dtype.kind not in "OU":
        raise DecibanError(f"{path} is an array of {value.dtype}: use one of numbers or text")
    cells = _tuple(tuple(value.ravel().tolist()), path, arrays)
    kind = "object" if value.dtype.kind == "O" else "str"
    return {"is": "cells", "dtype": kind, "shape": [*value.shape], "cells": cells}


ENCODERS: list[tuple[Any, Callable[[Any, str, Arrays], Any]]] = [
    (tuple, _tuple),
    (list, _list),
    (dict, _dict),
    (range, lambda value, path, arrays: {"is": "range", "ends": [value.start, value.stop, value.step]}),
    (frozenset, _frozenset),
    (np.generic, _scalar),
    (np.dtype, _dtype),
    (np.ndarray, _array),
]


# Decoding ------------------------------------------------------------------------------------------------------------


def decode(tree: Any, path: str, arrays: Arrays) -> Any:
    """What `encode` encoded. An array is taken out of `arrays` by the one place that it is for."""
    if isinstance(tree, list):
        return tuple(decode(item, f"{path}.{i}", arrays) for i, item in enumerate(tree))
    if not isinstance(tree, dict):
        return tree
    held = dict(tree)
    name = held.pop("is", None)
    if name in DECODERS:
        return DECODERS[name](held, path, arrays)
    if not isinstance(name, str) or name not in registry():
        raise DecibanError(f"{path} is a {name!r}, which this version of deciban does not know")
    kind: Any = registry()[name]
    if issubclass(kind, Savable):
        return _estimator(kind, held, path, arrays)
    values = {field: decode(part, f"{path}.{field}", arrays) for field, part in held.items()}
    known = {field.name: field for field in fields_of(kind)}
    needed = {f.name for f in known.values() if f.default is MISSING and f.default_factory is MISSING}
    _require_typed(path, values, hints_of(kind), set(known))
    if not needed <= set(values):
        raise DecibanError(f"{path} lacks {', '.join(sorted(needed - set(values)))}")
    _at(path, check, kind, values)
    return kind(**values)


def _at(path: str, checked: Callable[..., None], *arguments: Any) -> None:
    try:
        checked(*arguments)
    except DecibanError as error:
        raise DecibanError(f"{path}: {error}") from None


def _require_typed(path: str, values: Mapping[str, Any], hints: Mapping[str, Any], known: set[str]) -> None:
    for name, value in values.items():
        if name not in known:
            raise DecibanError(f"{path} has no {name!r}")
        if not fits(value, hints[name]):
            raise DecibanError(f"{path}.{name} is {describe(value)}, and not what belongs there")


def _estimator(kind: Any, held: dict[str, Any], path: str, arrays: Arrays) -> Any:
    params, state = (
        {name: decode(value, f"{path}.{part}.{name}", arrays) for name, value in held.pop(part).items()}
        for part in ("params", "state")
    )
    if held:
        raise DecibanError(f"{path} has no {min(held)!r}")
    _require_typed(f"{path}.params", params, hints_of(kind.__init__), set(kind._get_param_names()))
    _require_typed(f"{path}.state", state, kind._kept, set(kind._kept))
    model = kind(**params)
    if state:
        vars(model).update(state)
        _at(path, model._restored)
    return model


def _items(tree: Any, path: str, arrays: Arrays) -> tuple[Any, ...]:
    """Values that stand in the file one by one. (A range does not: it may be of any length.)"""
    items = decode(tree, path, arrays)
    if type(items) is not tuple:
        raise DecibanError(f"{path} is {describe(items)} instead of a tuple")
    return items


def _texts(held: dict[str, Any], path: str, arrays: Arrays) -> tuple[Any, ...]:
    text, ends = arrays.pop(f"{path}.text"), arrays.pop(f"{path}.ends")
    begins = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    if text.dtype != np.uint8 or ends.dtype != np.int64 or (begins > ends).any() or ends[-1] != len(text):
        raise DecibanError(f"{path} is not text and where its words end")
    whole = text.tobytes()
    words = (whole[a:b].decode("utf-8", "surrogatepass") for a, b in zip(begins.tolist(), ends.tolist(), strict=True))
    return (*words, *_items(held["rest"], f"{path}.rest", arrays))


def _taken(held: dict[str, Any], path: str, arrays: Arrays) -> NDArray[Any]:
    array = arrays.pop(path)
    return array.T if held["order"] == "F" else array


def _cells(held: dict[str, Any], path: str, arrays: Arrays) -> NDArray[Any]:
    cells = _items(held["cells"], path, arrays)
    if held["dtype"] == "str":
        require_narrow(cells)
        array = np.array(cells, dtype=np.str_)
    else:
        array = np.empty(len(cells), dtype=object)
        array[:] = cells
    if prod(held["shape"]) != len(cells):
        raise DecibanError(f"{path} has {len(cells)} cells for a shape of {held['shape']}")
    return array.reshape(held["shape"])


def _number(held: dict[str, Any], path: str, arrays: Arrays) -> np.generic:
    if held["dtype"] not in {*NUMERIC, "str"}:
        raise DecibanError(f"{path} is a scalar of an unknown type, {held['dtype']!r}")
    value = decode(held["value"], path, arrays)
    if not isinstance(value, (bool, int, float, str)):
        raise DecibanError(f"{path} is a scalar that holds {describe(value)}")
    scalar: np.generic = np.dtype(held["dtype"]).type(value)
    return scalar


def _typed(held: dict[str, Any], path: str, arrays: Arrays) -> np.dtype[Any]:
    if not re.fullmatch(DTYPE, held["name"]):
        raise DecibanError(f"{path} is an unknown type, {held['name']!r}")
    found: np.dtype[Any] = np.dtype(held["name"])
    return found


DECODERS: dict[Any, Callable[[dict[str, Any], str, Arrays], Any]] = {
    "float": lambda held, path, arrays: float(held["text"]),
    "texts": _texts,
    "integers": lambda held, path, arrays: tuple(map(int, arrays.pop(path))),
    "list": lambda held, path, arrays: list(_items(held["items"], path, arrays)),
    "dict": lambda held, path, arrays: dict(_items(held["pairs"], path, arrays)),
    "range": lambda held, path, arrays: range(*held["ends"]),
    "frozenset": lambda held, path, arrays: frozenset(_items(held["items"], path, arrays)),
    "scalar": _number,
    "dtype": _typed,
    "array": _taken,
    "cells": _cells,
}
