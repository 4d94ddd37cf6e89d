"""The C++ kernels. Exact sums are arrays of words, (words, class, column); see statistics/sums.py."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Matrix = NDArray[Any]  # (n, d) float64 or float32, any strides
Codes = NDArray[np.int32]
Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]  # (n, d) codes below 256, any strides
Flags = NDArray[np.bool_]
Keys = NDArray[np.uint64]
Options = tuple[int, int, int, int, bool, int]  # n-grams of words and characters (min, max), shapes, hash_bits

def moments(
    x: Matrix, codes: Codes, weights: Floats | None, classes: int
) -> tuple[Floats, Floats, Floats, tuple[int, int] | None]: ...
def add_sums(a: Floats, b: Floats, sign: float) -> Floats: ...
def total_sums(a: Floats) -> Floats: ...
def centre(count: Floats, sum_x: Floats, sum_xx: Floats) -> tuple[Floats, Floats]: ...
def set_threads(n: int) -> None: ...
def thread_count() -> int: ...
def instruction_set() -> str: ...
def add_quadratic(x: Matrix, mean: Floats, factor: Floats, constant: Floats, out: Floats) -> None: ...
def add_linear(x: Matrix, factor: Floats, constant: Floats, out: Floats) -> None: ...
def add_whitened(x: Matrix, lower: Floats, means: Floats, constants: Floats, out: Floats) -> None: ...
def whiten(x: Matrix, lower: Floats, mean: Floats) -> Floats: ...
def rows_with_nan(x: Matrix) -> NDArray[np.bool_]: ...
def project_out(
    lower: Floats, unknown: Flags, starts: Integers, rows: Integers, vectors: Floats, log_det: Floats
) -> None: ...
def leave_one_out_densities(
    x: Matrix, labels: Codes, mean: Floats, scale: Floats, gain: Floats, constant: Floats
) -> tuple[Floats, NDArray[np.bool_]]: ...
def merge_sorted(a: Floats, b: Floats) -> tuple[Floats, Integers, Integers]: ...
def most_probable(joint: Floats, fallback: Floats) -> tuple[Integers, int]: ...
def normalise(joint: Floats, fallback: Floats, logs: bool) -> int: ...
def scatter(
    x: Matrix, codes: Codes, weights: Floats | None, origin: Floats, shared: bool
) -> tuple[Floats, Floats, Floats, Floats]: ...
def count_codes(codes: Codes, offsets: Integers, labels: Codes, weights: Floats | None, classes: int) -> Floats: ...
def count_labels(labels: Codes, classes: int) -> Floats: ...
def add_table(codes: Codes, offsets: Integers, table: Floats, classes: int, out: Floats) -> None: ...
def integer_range(x: NDArray[Any]) -> tuple[Integers, Integers]: ...
def encode_integers(x: NDArray[Any], low: Integers, offsets: Integers, lut: Codes, outside: int) -> Codes: ...
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
def histogram_column(x: Matrix, column: int, cap: int) -> tuple[int, Integers, Codes]: ...
def softmax_pass(
    x: Matrix, w: Floats, constant: Floats, origin: Floats, labels: Codes, weights: Floats | None
) -> tuple[float, Floats]: ...
def predictors(x: Matrix, w: Floats, constant: Floats, origin: Floats) -> Floats: ...
def residual_sums(x: Matrix, origin: Floats, residual: Floats) -> Floats: ...
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
def sparse_residual_sums(
    values: Floats, columns: NDArray[Any], starts: NDArray[Any], width: int, residual: Floats
) -> Floats: ...
def last_record_end(data: bytes, delimiter: int, quote: int, max_records: int) -> int: ...
def has_leading_zero(data: bytes, delimiter: int, quote: int) -> bool: ...
def grow_forest(
    codes: Bytes,
    sizes: Codes,
    ordered: Flags,
    labels: Codes,
    weights: Floats | None,
    classes: int,
    trees: int,
    bag_fraction: float,
    max_columns: int,
    min_weight: float,
    max_depth: int,
    seed: int,
) -> tuple[Integers, Codes, Codes, Codes]: ...
def in_bag(codes: Bytes, trees: int, bag_fraction: float, seed: int) -> Flags: ...
def find_leaves(codes: Bytes, starts: Integers, column: Codes, code: Codes, left: Codes, ordered: Flags) -> Codes: ...
def boost(
    codes: Bytes,
    sizes: Codes,
    ordered: Flags,
    labels: Codes,
    weights: Floats | None,
    classes: int,
    ensembles: int,
    max_rounds: int,
    depth: int,
    learning_rate: float,
    l2: float,
    row_fraction: float,
    column_fraction: float,
    seed: int,
) -> tuple[Integers, Codes, Codes, Floats, Floats]: ...
def find_ensembles(codes: Bytes, ensembles: int, seed: int) -> Codes: ...
def leaf_values(
    codes: Bytes,
    unknown: Flags | None,
    column: Codes,
    code: Codes,
    ordered: Flags,
    mean: Floats,
    rows: Floats,
    part: Codes,
    parts: int,
    ensemble_of_row: Codes | None,
    ensemble_of_tree: Codes,
) -> Floats: ...
def symmetric_contributions(
    codes: Bytes, unknown: Flags | None, column: Codes, code: Codes, ordered: Flags, mean: Floats, rows: Floats
) -> Floats: ...
def mix_keys(x: Matrix, salts: Keys, keys: Keys) -> None: ...
def add_sparse_keys(values: Floats, columns: NDArray[Any], starts: NDArray[Any], keys: Keys) -> None: ...
def tree_contributions(
    codes: Bytes, starts: Integers, column: Codes, code: Codes, left: Codes, ordered: Flags, node_scores: Floats
) -> Floats: ...
def pooled_leaf_counts(
    codes: Bytes,
    unknown: Flags,
    starts: Integers,
    column: Codes,
    code: Codes,
    left: Codes,
    ordered: Flags,
    counts: Floats,
    skip: Flags | None,
) -> Floats: ...
def pooled_contributions(
    codes: Bytes,
    unknown: Flags,
    starts: Integers,
    column: Codes,
    code: Codes,
    left: Codes,
    ordered: Flags,
    counts: Floats,
    prior: Floats,
    smoothing: float,
) -> Floats: ...
def read_headers(
    data: bytes, begin: int, end: int, wanted: frozenset[bytes], max_lines: int
) -> tuple[dict[bytes, list[bytes]], int, bool]: ...
def fingerprint(data: bytes, begin: int = 0) -> bytes: ...

class TermScorer:
    def __init__(self, tables: bytes, begin: int = 0) -> None: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def classes(self) -> tuple[str, ...]: ...
    def best(self, rows: list[dict[str, str | None]]) -> list[tuple[int, float, float] | None]: ...

class Vocabulary:
    def __init__(self, text: Bytes, ends: Integers) -> None: ...
    def __len__(self) -> int: ...

def count_terms(
    buffers: Sequence[Bytes], spans: Integers, options: Options, labels: Codes, classes: int, binary: bool
) -> tuple[Bytes, Integers, Floats]: ...
def add_terms(
    buffers: Sequence[Bytes],
    spans: Integers,
    options: Options,
    vocabulary: Vocabulary,
    evidence: Floats,
    binary: bool,
    out: Floats,
) -> None: ...
def term_rows(
    buffers: Sequence[Bytes], spans: Integers, options: Options, vocabulary: Vocabulary
) -> tuple[Floats, Integers, Integers]: ...
def tokenize(text: Bytes, options: Options) -> list[str]: ...
def ascending_terms(text: Bytes, ends: Integers) -> bool: ...
def merge_terms(
    a: Bytes, a_ends: Integers, b: Bytes, b_ends: Integers
) -> tuple[Bytes, Integers, Integers, Integers]: ...
def cell_evidence(
    codes: Codes,
    offsets: Integers,
    counts: Floats,
    rows: Floats,
    smoothing: float,
    labels: Codes | None,
    weights: Floats | None,
    out: NDArray[np.floating[Any]],
) -> None: ...
def mean_cell_evidence(
    codes: Codes,
    offsets: Integers,
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
def add_changed(
    evidence: Floats, unknown: Flags, weights: Floats, changes: Floats, alone: Flags, out: Floats
) -> None: ...
def fit_weights(
    values: Floats,
    offset: Floats,
    labels: Codes,
    weights: Floats | None,
    groups: Codes,
    penalty: float,
    level: float,
    bias: float,
    target: float,
    start: Floats | None,
    tol: float,
    steps: int,
    wide: int,
) -> tuple[Floats, float, int, bool]: ...
