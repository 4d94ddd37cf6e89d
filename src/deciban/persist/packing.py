"""Packing: arrays in fewer bytes, without loss. An unpacked array takes at most 64 times its bytes in the file."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deciban.errors import DecibanError

Arrays = dict[str, NDArray[Any]]

SMALL = 1 << 10  # bytes: smaller arrays are stored as they are
MOST_TIMES = 64  # bytes of an unpacked array for each byte of the packed one
WORTH = 2  # compressed only if smaller by this factor: reading should stay fast
BLOCK = 1 << 16  # numbers looked at together: most arrays that cannot be narrowed show it in the first block
WHOLE = ("u1", "i1", "u2", "i2", "u4", "i4")  # from the narrowest on
NARROW: dict[str, tuple[str, ...]] = {
    "float64": (*WHOLE, "f4"),
    "float32": WHOLE[:4],
    "int64": WHOLE,
    "uint64": WHOLE,
    "int32": WHOLE[:4],
    "uint32": WHOLE[:4],
    "int16": WHOLE[:2],
    "uint16": WHOLE[:2],
    "int8": (),
    "uint8": (),
    "bool": (),
    "float16": (),
}
DTYPES = {code: np.dtype(f"<{code}") for code in (*WHOLE, "f4")} | {
    name: np.dtype(name).newbyteorder("<") for name in NARROW
}


class Packed(NamedTuple):
    """How an array was packed. `shape` is None where the numbers were narrowed and not compressed."""

    dtype: str  # before packing
    narrow: str  # in the file
    shape: list[int] | None


def pack(array: NDArray[Any]) -> tuple[NDArray[Any], Packed | None]:
    """The array in the narrowest type that holds its numbers exactly, and compressed where that makes it much smaller.

    Compressed bytes end with zeros where they would be fewer than 1/64 of the array's.

    >>> packed, how = pack(np.arange(1000.0))
    >>> packed.dtype, how
    (dtype('uint8'), Packed(dtype='float64', narrow='u2', shape=[1000]))
    >>> bool((unpack(packed, how) == np.arange(1000.0)).all())
    True
    """
    if array.nbytes < SMALL:
        return array, None
    dtype = array.dtype.name
    narrow = next((code for code in NARROW[dtype] if _holds(array, DTYPES[code])), dtype)
    small = array.astype(DTYPES[narrow], order="C", copy=False)
    # the first bytes of all numbers, then the second ones, and so on: similar bytes compress better side by side
    planes = np.ascontiguousarray(small.reshape(-1).view(np.uint8).reshape(-1, small.itemsize).T)
    data = zlib.compress(planes.data)
    least = -(-array.nbytes // MOST_TIMES)
    if WORTH * max(len(data), least) <= small.nbytes:
        packed = np.zeros(max(len(data), least), np.uint8)
        packed[: len(data)] = np.frombuffer(data, np.uint8)
        return packed, Packed(dtype, narrow, [*array.shape])
    return (array, None) if narrow == dtype else (small, Packed(dtype, narrow, None))


def _holds(array: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Whether all numbers of an array are the same in another type, to the last bit."""
    flat = array.reshape(-1)
    blocks = (flat[at : at + BLOCK] for at in range(0, flat.size, BLOCK))
    with np.errstate(all="ignore"):
        return all(block.astype(dtype).astype(block.dtype).tobytes() == block.tobytes() for block in blocks)


def unpack(array: NDArray[Any], how: Packed) -> NDArray[Any]:
    """The inverse of `pack`. Nothing larger than 64 times the packed bytes is allocated."""
    wide, narrow = DTYPES[how.dtype], DTYPES[how.narrow]
    if how.shape is None:
        if array.dtype != narrow:
            raise DecibanError(f"packed numbers are {array.dtype} instead of {narrow}")
        return array.astype(wide.newbyteorder("="))
    size = prod(how.shape)
    if array.dtype != np.uint8 or array.ndim != 1 or min(how.shape, default=1) < 1:
        raise DecibanError("compressed bytes are not a list of bytes for a non-empty array")
    if size * wide.itemsize > MOST_TIMES * array.size:
        raise DecibanError(f"{array.size} bytes stand for an array of shape {how.shape}: that is too large")
    size_in_bytes = size * narrow.itemsize
    data = zlib.decompressobj().decompress(array.data, size_in_bytes + 1)
    if len(data) != size_in_bytes:
        raise DecibanError(f"compressed bytes are not those of {size} numbers")
    planes = np.frombuffer(data, np.uint8).reshape(narrow.itemsize, size)
    numbers = np.ascontiguousarray(planes.T).reshape(-1).view(narrow)
    return numbers.astype(wide.newbyteorder("=")).reshape(how.shape)


def pack_all(arrays: Mapping[str, NDArray[Any]]) -> tuple[Arrays, dict[str, Packed]]:
    """All arrays, and how they were packed, except those that are stored as they are."""
    packed = {name: pack(array) for name, array in arrays.items()}
    how = {name: packing for name, (_, packing) in packed.items() if packing is not None}
    return {name: array for name, (array, _) in packed.items()}, how


def unpack_all(arrays: Arrays, how: Mapping[str, Any]) -> Arrays:
    """The inverse of `pack_all`; an unknown packing raises an error."""
    unpacked = dict(arrays)
    for name, packing in how.items():
        dtype, narrow, shape = packing
        whole = shape is None or all(type(length) is int for length in shape)
        if narrow not in (*NARROW.get(dtype, ()), dtype) or dtype not in NARROW or not whole:
            raise DecibanError(f"array {name!r} is packed in an unknown way")
        unpacked[name] = unpack(arrays[name], Packed(dtype, narrow, shape))
    return unpacked
