"""Model files with a valid checksum: a forged file is refused, or is a model that predicts, explains and is saved.

Mutations change values of the tree, numbers, types and shapes of arrays, or how arrays are packed. They recompute the
checksum, so all of them get past it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import numpy as np
from safetensors.numpy import load as decode_arrays
from safetensors.numpy import save as encode_arrays

import deciban as db
import deciban.estimators  # before memory is measured
from deciban.data.files.mail_message import parse
from deciban.mail.filter import Filter
from deciban.persist.packing import pack_all, unpack_all
from deciban.persist.storage import BLANK, MARK
from tests.fuzz.model_file_seeds import MAILS, rows_for, seed_models

MEMORY = 128 << 20  # bytes that a file of a few kilobytes may take at its peak
FINITE = 1e-6  # how far probabilities may be from a sum of 1


@cache
def seeds() -> list[bytes]:
    """A file of every estimator and family."""
    return [saved(model) for model in seed_models()]


def saved(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder, mock.patch("os.fsync"):
        model.save(Path(folder, "model.deciban"))
        return Path(folder, "model.deciban").read_bytes()


# A run ---------------------------------------------------------------------------------------------------------------


def run(data: bytes) -> None:
    """Load the file and use its model. Raises unless the file is refused, or the model works or raises DecibanError."""
    before = peak_memory()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), mock.patch("os.fsync"):
        warnings.simplefilter("ignore")
        path = Path(folder, "model.deciban")
        path.write_bytes(data)
        for use in (use_estimator, use_filter):
            with np.errstate(all="ignore"), suppress(db.DecibanError):
                use(path)
    more = peak_memory() - before
    if more > MEMORY + 100 * len(data):
        raise MemoryError(f"a file of {len(data)} bytes took {more >> 20} MB")


def use_estimator(path: Path) -> None:
    model = db.load(path)
    rows = rows_for(model)
    for use in (check_predictions, check_explanation, check_summary):
        with suppress(db.DecibanError):
            use(model, rows)
    again = path.with_name("again.deciban")
    model.save(again)
    db.load(again)


def check_predictions(model: Any, rows: Any) -> None:
    with suppress(db.DecibanError):
        predicted = model.predict(rows)
        if predicted.dtype.kind == "f" and np.isnan(predicted).any():
            raise AssertionError(f"{type(model).__name__} predicts NaN")
    if hasattr(model, "predict_proba"):
        check_probabilities(model.predict_proba(rows))


def check_probabilities(p: np.ndarray[Any, Any]) -> None:
    if not (np.isfinite(p).all() and (p >= 0).all() and (np.abs(p.sum(axis=1) - 1.0) < FINITE).all()):
        raise AssertionError(f"not probabilities: {p[~(np.abs(p.sum(axis=1) - 1.0) < FINITE)][:3]}")


def check_explanation(model: Any, rows: Any) -> None:
    if hasattr(model, "explain"):
        str(model.explain(rows))


def check_summary(model: Any, rows: Any) -> None:
    if hasattr(model, "summary"):
        str(model.summary())


def use_filter(path: Path) -> None:
    mails = [parse(mail).texts for mail in MAILS]
    classifier = Filter.load(path)
    for verdict in classifier.explain(mails):
        if not 0.0 <= verdict.probability <= 1.0:
            raise AssertionError(f"a mail has a probability of {verdict.probability}")
    classifier.learn(mails, classifier.classes[0]).save(path.with_name("learned.deciban"))


def peak_memory() -> int:
    """Bytes; 0 where it cannot be known."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# Mutations -----------------------------------------------------------------------------------------------------------

NUMBERS = [0, 1, -1, 2, 3, 64, 255, 1 << 31, 1 << 63, 10**12, 10**30, 10**400, -(10**30)]
NUMBERS += [0.5, -0.5, 1e-320, 1e-300, 1e15, 1e150, 1e308, -1e308, 1 + 1e-15]
VALUES: list[Any] = [
    *NUMBERS,
    *(None, True, False, "", "x", "shared", "auto", "\ud800", [], [0], [[]], {}),
    *({"is": "float", "text": text} for text in ("nan", "inf", "-inf", "1e999", "0x1p3", "9" * 5000)),
    *({"is": "range", "ends": ends} for ends in ([0, 10**12, 1], [0, 10**30], [0, 3, 1], [0, 1, 0], [5, -5, -1])),
    *({"is": "dtype", "name": name} for name in ("<U100000000", "|S2000000000", "<f2", "<i8", "|O", "|b1")),
    *({"is": "scalar", "dtype": kind, "value": 1} for kind in ("float16", "int8", "bool", "float64", "str")),
    {"is": "cells", "dtype": "object", "shape": [1], "cells": [{"is": "range", "ends": [0, 10**12, 1]}]},
    {"is": "cells", "dtype": "str", "shape": [1], "cells": ["a"]},
    {"is": "list", "items": ["a"]},
    {"is": "dict", "pairs": [["a", 1]]},
    {"is": "frozenset", "items": ["a", 1]},
    {"is": "array", "order": "F"},
    {"is": "priors.Virtual", "m": 1.0},
    {"is": "NaiveBayes", "params": {}, "state": {}},
    *({"is": f"families.{name}"} for name in ("Gaussian", "Uniform", "Categorical", "Multinomial", "Binned", "Text")),
]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e-300, 1e-8, 1e8, 1e16, 1e154, 1e300, np.inf, -np.inf, np.nan]
DTYPES = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")


def mutate(data: bytes, random: Random) -> bytes:
    """The file with a few changes and the checksum that it then has."""
    try:
        document, arrays = opened(data)
    except Exception:  # of a file that an earlier mutation has broken
        return sealed(flip_bytes(data, random))
    if random.random() < 0.1:
        return sealed(flip_bytes(data, random))
    changes: list[Callable[..., None]] = [change_value, change_value, change_numbers, change_numbers, change_shape]
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        with suppress(LookupError, ValueError, TypeError, ArithmeticError), np.errstate(all="ignore"):
            random.choice(changes)(document["model"], arrays, random)
    packed, how = pack_all({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    document["packed"] = how
    if random.random() < 0.05:
        change_value(document, packed, random)
    try:
        text = json.dumps(document | {"checksum": BLANK.decode()}, sort_keys=True, separators=(",", ":"))
        return sealed(encode_arrays(packed, {"deciban": text}))
    except (ValueError, TypeError, RecursionError):
        return data


def opened(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The metadata of a file, and its arrays."""
    length = int.from_bytes(data[:8], "little")
    document = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["deciban"])
    return document, unpack_all(decode_arrays(data), document.get("packed", {}))


def sealed(data: bytes) -> bytes:
    """The file with the right checksum, where it has a place for one."""
    start = data.find(MARK) + len(MARK)
    if start < len(MARK) or start + len(BLANK) > len(data):
        return data
    blank = data[:start] + BLANK + data[start + len(BLANK) :]
    return data[:start] + hashlib.sha256(blank).hexdigest().encode() + data[start + len(BLANK) :]


def flip_bytes(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 2, 8))):
        if changed:
            changed[random.randrange(len(changed))] = random.choice((0, 1, 48, 57, 127, 255, random.randrange(256)))
    return bytes(changed)


def ways(tree: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value of a tree."""
    yield way
    for key in tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ():
        yield from ways(tree[key], (*way, key))


def change_value(tree: Any, arrays: dict[str, Any], random: Random) -> None:
    """Another value at a place of the tree, one from another place, or none; items of lists are also repeated."""
    known = list(ways(tree))
    *way, last = random.choice(known[1:])
    parent = at(tree, way)
    chance = random.random()
    if chance < 0.1:
        del parent[last]
    elif chance < 0.2 and isinstance(parent, list):
        parent.insert(last, copy.deepcopy(parent[last]))
    elif chance < 0.4:
        parent[last] = copy.deepcopy(at(tree, random.choice(known)))
    elif chance < 0.6 and type(parent[last]) in (int, float):
        parent[last] = random.choice(NUMBERS)
    else:
        parent[last] = copy.deepcopy(random.choice(VALUES))


def at(tree: Any, way: Any) -> Any:
    for key in way:
        tree = tree[key]
    return tree


def change_numbers(tree: Any, arrays: dict[str, Any], random: Random) -> None:
    """Other numbers in an array: one of them, all of them, or two exchanged."""
    name = random.choice(sorted(arrays))
    array = arrays[name] = arrays[name].copy()
    flat = array.reshape(-1)
    place, chance = random.randrange(flat.size), random.random()
    value: Any = random.choice(FLOATS)
    if array.dtype.kind in "iu":
        ends = np.iinfo(array.dtype)
        value = random.choice([0, 1, -1, 2, flat[place] + 1, flat[place] - 1, int(ends.max), int(ends.min), 1 << 20])
        value = np.array(value).astype(array.dtype)
    if chance < 0.6:
        flat[place] = value
    elif chance < 0.7:
        flat[:] = value
    elif chance < 0.8:
        other = random.randrange(flat.size)
        flat[place], flat[other] = flat[other], flat[place]
    else:
        flat[:] = (flat * random.choice([0, -1, 1e9, 1e300, 1e-300])).astype(array.dtype)


def change_shape(tree: Any, arrays: dict[str, Any], random: Random) -> None:
    """Another shape or type of an array, or the array of another place."""
    name = random.choice(sorted(arrays))
    array = arrays[name]
    match random.randrange(6):
        case 0:
            arrays[name] = array.astype(random.choice(DTYPES))
        case 1:
            arrays[name] = np.ascontiguousarray(array[..., : random.randrange(array.shape[-1] + 1)])
        case 2:
            arrays[name] = np.concatenate([array, array[: random.randrange(1, 1 + len(array))]])
        case 3:
            arrays[name] = array.reshape(random.choice([(-1,), (-1, 1), (1, -1), (1, *array.shape)]))
        case 4:
            empty = random.choice([(0, 1 << 40), (1 << 20, 0), (0,), (), (1, 1, 1, 1)])
            arrays[name] = np.zeros(empty, array.dtype)
        case 5:
            arrays[name] = arrays[random.choice(sorted(arrays))].copy()
