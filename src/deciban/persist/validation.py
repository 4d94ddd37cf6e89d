"""Validation: whether the fields of an object in a file are of the types that its class declares.

What types cannot express, a class checks in `check_fields`. It is called before the object is made, with the fields as
attributes: no array is used, and nothing is allocated by a number, before it was checked.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import Field, fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from deciban.data.class_index import require_classes
from deciban.errors import DecibanError, require
from deciban.types import Levels


@cache
def hints_of(annotated: Any) -> dict[str, Any]:
    return get_type_hints(annotated)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type, all the way down.

    A whole number is a float, too, if a double holds it; False is none, since as an index it selects nothing.
    A numpy scalar is what it holds; an array is a Sequence. A range fits only where one is declared: a few bytes of a
    file may stand for any length.

    >>> fits(("a", 1), tuple[str | int, ...]), fits(3, float), fits(10**400, float), fits(["a"], Sequence[float])
    (True, True, False, False)
    """
    hint = _without_alias(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return not _holds_range(value)
    if origin in (Union, UnionType):
        return any(fits(value, option) for option in arguments)
    if origin is Literal:
        return any(type(value) is type(option) and value == option for option in arguments)
    if hint in PLAIN:
        unlike = (hint is float and _is_huge(value)) or (hint is int and isinstance(value, bool))
        return isinstance(value, PLAIN[hint]) and not unlike
    if origin in CONTAINERS:
        return CONTAINERS[origin](value, arguments)
    expected = origin or hint
    if getattr(expected, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(expected) if not name.startswith("_"))
    return isinstance(value, expected)


def _holds_range(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_range, (*value, *value.values())))
    return isinstance(value, range) or (isinstance(value, (tuple, list, frozenset)) and any(map(_holds_range, value)))


def _is_huge(value: Any) -> bool:
    """Whether a whole number is too large for a double."""
    return type(value) is int and abs(value) >= 1 << 1023


def _without_alias(hint: Any) -> Any:
    """What a `type` alias stands for, as NDArray is one in NumPy 2.5; any other type as it is."""
    value, arguments = getattr(get_origin(hint) or hint, "__value__", None), get_args(hint)
    if value is None:
        return hint
    return value[arguments] if arguments else value


def _array_fits(value: Any, arguments: tuple[Any, ...]) -> bool:
    (number,) = get_args(arguments[1])
    return isinstance(value, np.ndarray) and (number is Any or value.dtype == number)


@cache
def _by_type(hint: Any) -> bool:
    """Whether the type of a value alone decides whether it fits."""
    if get_origin(hint) in (Union, UnionType):
        return all(map(_by_type, get_args(hint)))
    return hint is str or hint in PLAIN


def _tuple_fits(value: Any, arguments: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple):
        return False
    if arguments[1:] == (...,):
        if not _by_type(arguments[0]):
            return all(fits(item, arguments[0]) for item in value)
        items = {type(item): item for item in value}  # one item of each type is enough, the largest of whole numbers
        if int in items:
            items[int] = max((item for item in value if type(item) is int), key=abs)
        return all(fits(item, arguments[0]) for item in items.values())
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


def describe(value: Any) -> str:
    return f"a {type(value).__module__}.{type(value).__qualname__}"


@contextmanager
def error_at(path: str) -> Iterator[None]:
    """Errors name their path in the tree."""
    try:
        yield
    except DecibanError as error:
        raise DecibanError(f"{path}: {error}") from None


def require_typed(path: str, values: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Raises an error for an unknown name, or a value of another type than declared."""
    for name, value in values.items():
        if name not in hints:
            raise DecibanError(f"{path} has no {name!r}")
        if not fits(value, hints[name]):
            raise DecibanError(f"{path}.{name} is {describe(value)}, which is not the declared type")


def fields_of(kind: type) -> list[Field[Any]]:
    """The fields that a file holds; those that take no part in comparisons can be computed again."""
    declared = fields(kind) if is_dataclass(kind) else ()
    return [field for field in declared if field.init and field.compare]


def labels(classes: Levels, array: NDArray[Any], scores: int) -> None:
    """Raises an error unless an array holds just these classes, one for each score."""
    require_classes(classes)
    require(array.ndim == 1 and array.tolist() == list(classes), "classes_ are other classes")
    require(len(classes) == scores, f"{len(classes)} classes for {scores} scores")
