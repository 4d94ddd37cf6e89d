"""The hot loops. Arrays of sums are words: (words, class, column); see statistics/sums.py."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Matrix = NDArray[Any]  # (n, d) float64 or float32, any strides
Codes = NDArray[np.int32]
Places = NDArray[np.int64]
Bytes = NDArray[np.uint8]  # (n, d) codes below 256, any strides
Flags = NDArray[np.bool_]
Keys = NDArray[np.uint64]
Cut = tuple[int, int, int, int, bool, int]

def moments(
    x: Matrix, codes: Codes, weights: Floats | None, classes: int
) -> tuple[Floats, Floats, Floats, tuple[int, int] | None]: ...
def add_sums(a: Floats, b: Floats, sign: float) -> Floats: ...
def total_sums(a: Floats) -> Floats: ...
def centre(count: Floats, sum_x: Floats, sum_xx: Floats) -> tuple[Floats, Floats]: ...
def read_bandwidth(x: Floats, threads: int) -> float: ...
def set_threads(n: int) -> None: ...
def add_quadratic(x: Matrix, mean: Floats, factor: Floats, constant: Floats, out: Floats) -> None: ...
def add_linear(x: Matrix, factor: Floats, constant: Floats, out: Floats) -> None: ...
def add_whitened(x: Matrix, lower: Floats, means: Floats, constants: Floats, out: Floats) -> None: ...
def whiten(x: Matrix, lower: Floats, mean: Floats) -> Floats: ...
def find_holes(x: Matrix) -> NDArray[np.bool_]: ...
def left_out_densities(
    x: Matrix, labels: Codes, mean: Floats, scale: Floats, gain: Floats, constant: Floats
) -> tuple[Floats, NDArray[np.bool_]]: ...
def merge_sorted(a: Floats, b: Floats) -> tuple[Floats, Places, Places]: ...
def most_probable(joint: Floats, fallback: Floats) -> tuple[Places, int]: ...
def normalise(joint: Floats, fallback: Floats, logs: bool) -> int: ...
def scatter(
    x: Matrix, codes: Codes, weights: Floats | None, origin: Floats, shared: bool
) -> tuple[Floats, Floats, Floats, Floats]: ...
def count_codes(codes: Codes, offsets: Places, labels: Codes, weights: Floats | None, classes: int) -> Floats: ...
def count_labels(labels: Codes, classes: int) -> Floats: ...
def add_table(codes: Codes, offsets: Places, table: Floats, classes: int, out: Floats) -> None: ...
def integer_range(x: NDArray[Any]) -> tuple[Places, Places]: ...
def encode_integers(x: NDArray[Any], low: Places, offsets: Places, lut: Codes, outside: int) -> Codes: ...
def sum_sparse(
    values: Floats,
    columns: NDArray[Any],
    starts: NDArray[Any],
    width: int,
    labels: Codes,
    weights: Floats | None,
    classes: int,
) -> Floats | None: ...
def add_sparse(
    values: Floats, columns: NDArray[Any], starts: NDArray[Any], table: Floats, classes: int, out: Floats
) -> None: ...
def histogram_column(x: Matrix, column: int, cap: int) -> tuple[int, Places, Codes]: ...
def softmax_pass(
    x: Matrix, w: Floats, constant: Floats, origin: Floats, labels: Codes, weights: Floats | None
) -> tuple[float, Floats]: ...
def predictors(x: Matrix, w: Floats, constant: Floats, origin: Floats) -> Floats: ...
def returned(x: Matrix, origin: Floats, residual: Floats) -> Floats: ...
def column_sums(x: Matrix, origin: Floats, weights: Floats) -> Floats: ...
def sparse_softmax_pass(
    values: Floats,
    columns: NDArray[Any],
    starts: NDArray[Any],
    w: Floats,
    constant: Floats,
    labels: Codes,
    weights: Floats | None,
) -> tuple[float, Floats]: ...
def sparse_predictors(
    values: Floats, columns: NDArray[Any], starts: NDArray[Any], w: Floats, constant: Floats
) -> Floats: ...
def sparse_returned(
    values: Floats, columns: NDArray[Any], starts: NDArray[Any], width: int, residual: Floats
) -> Floats: ...
def record_ends(data: bytes, delimiter: int, quote: int, most: int) -> int: ...
def has_leading_zero(data: bytes, delimiter: int, quote: int) -> bool: ...
def grow_forest(
    codes: Bytes,
    sizes: Codes,
    ordered: Flags,
    labels: Codes,
    weights: Floats | None,
    classes: int,
    trees: int,
    share: float,
    tries: int,
    least: float,
    most_deep: int,
    seed: int,
) -> tuple[Places, Codes, Codes, Codes]: ...
def in_bag(codes: Bytes, trees: int, share: float, seed: int) -> Flags: ...
def find_leaves(codes: Bytes, starts: Places, column: Codes, code: Codes, left: Codes, ordered: Flags) -> Codes: ...
def mix_keys(x: Matrix, places: Keys, keys: Keys) -> None: ...
def tree_shares(
    codes: Bytes, starts: Places, column: Codes, code: Codes, left: Codes, ordered: Flags, said: Floats
) -> Floats: ...
def pooled_leaves(
    codes: Bytes,
    unknown: Flags,
    starts: Places,
    column: Codes,
    code: Codes,
    left: Codes,
    ordered: Flags,
    counts: Floats,
    skip: Flags | None,
) -> Floats: ...
def pooled_shares(
    codes: Bytes,
    unknown: Flags,
    starts: Places,
    column: Codes,
    code: Codes,
    left: Codes,
    ordered: Flags,
    counts: Floats,
    prior: Floats,
    smoothing: float,
) -> Floats: ...

class Vocabulary:
    def __init__(self, text: Bytes, ends: Places) -> None: ...
    def __len__(self) -> int: ...

def count_terms(
    buffers: Sequence[Bytes], places: Places, cut: Cut, labels: Codes, classes: int, once: bool
) -> tuple[Bytes, Places, Floats]: ...
def add_terms(
    buffers: Sequence[Bytes],
    places: Places,
    cut: Cut,
    vocabulary: Vocabulary,
    evidence: Floats,
    once: bool,
    out: Floats,
) -> None: ...
def term_rows(
    buffers: Sequence[Bytes], places: Places, cut: Cut, vocabulary: Vocabulary
) -> tuple[Floats, Places, Places]: ...
def terms_of(text: Bytes, cut: Cut) -> list[str]: ...
def ascending_terms(text: Bytes, ends: Places) -> bool: ...
def merge_terms(a: Bytes, a_ends: Places, b: Bytes, b_ends: Places) -> tuple[Bytes, Places, Places, Places]: ...
def cell_evidence(
    codes: Codes,
    offsets: Places,
    counts: Floats,
    rows: Floats,
    smoothing: float,
    labels: Codes | None,
    weights: Floats | None,
    out: NDArray[np.floating[Any]],
) -> None: ...
def mean_cell_evidence(
    codes: Codes,
    offsets: Places,
    counts: Floats,
    rows: Floats,
    smoothing: float,
    labels: Codes | None,
    weights: Floats | None,
    skip: Flags | None,
    out: Floats,
) -> None: ...
def pair_gains(
    codes: Bytes, sizes: Codes, labels: Codes, weights: Floats | None, classes: int, smoothing: float, pairs: Codes
) -> Floats: ...
