"""Seeded data for the jobs. Classes overlap: if all posteriors were 0 or 1, an error would not show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.sizes import CODE_VALUES, COUNTS_PER_ROW, GRID, MISSING, TABLE_LEVELS, WORDS_PER_ROW, Size

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK = 50_000  # rows made at a time: memory never holds a second copy of the array


def labels(rng: np.random.Generator, size: Size) -> Ints:
    return rng.integers(size.classes, size=size.rows)


def gaussian(rng: np.random.Generator, size: Size, y: Ints) -> Floats:
    """(rows, columns) independent normals, with a mean and a scale per class and column."""
    spread = np.sqrt(2 / size.columns)  # keeps the distance between classes the same for any width
    means = rng.normal(0, spread, (size.classes, size.columns))
    scales = np.exp(rng.normal(0, spread / 2, (size.classes, size.columns)))
    X = np.empty((size.rows, size.columns))
    for rows in blocks(size.rows):
        block = X[rows]
        rng.standard_normal(out=block)
        block *= scales[y[rows]]
        block += means[y[rows]]
    return X


def correlated(rng: np.random.Generator, size: Size, y: Ints) -> Floats:
    """As ``gaussian``, with the columns mixed linearly."""
    X = gaussian(rng, size, y)
    mixing = np.eye(size.columns) + rng.normal(0, 0.3 / np.sqrt(size.columns), (size.columns, size.columns))
    for rows in blocks(size.rows):
        X[rows] = X[rows] @ mixing
    return X


def standardise(X: Floats) -> None:
    """Mean 0 and deviation 1 for every column, in place."""
    X -= X.mean(axis=0)
    X /= np.sqrt(np.einsum("ij,ij->j", X, X) / len(X))


def digits(rng: np.random.Generator, size: Size, y: Ints) -> Floats:
    """Pictures like scanned digits, 0 to 1: four fifths of the cells are 0, neighbours correlate, the border is empty.

    A class is seven smooth blobs. Each picture moves every blob, stretches and shears the whole, shifts it, draws it
    thin or thick and with grainy ink. The blobs of two classes then cover the same pixels, and the classes are not
    linearly separable: the accuracy of softmax regression is about 87 %.
    """
    prototypes = rng.uniform(-6.5, 6.5, (size.classes, 7, 2))  # from the middle
    pixels = np.arange(GRID)
    X = np.empty((size.rows, size.columns))
    for rows in blocks(size.rows, 5_000):
        blobs = prototypes[y[rows]]
        n = len(blobs)
        blobs += rng.normal(0, 0.8, blobs.shape)
        blobs = blobs @ (np.eye(2) + rng.normal(0, 0.15, (n, 2, 2)))
        blobs += rng.normal((GRID - 1) / 2, 1.25, (n, 1, 2))
        np.clip(blobs, 5, GRID - 6, out=blobs)
        thickness = rng.uniform(1.2, 2, (n, 1, 1, 1))
        profiles = np.exp(-0.5 * ((pixels - blobs[..., np.newaxis]) / thickness) ** 2)  # (n, blob, axis, pixel)
        ink = (profiles[:, :, 0].transpose(0, 2, 1) @ profiles[:, :, 1]).reshape(n, -1)
        ink *= rng.normal(1, 0.15, ink.shape)
        X[rows] = np.clip(1.3 * (ink - 0.18), 0, 1)
    return X


def remove_values(rng: np.random.Generator, X: Floats) -> None:
    """Set a fraction MISSING of the cells to NaN, in place."""
    for rows in blocks(len(X)):
        X[rows][rng.random(X[rows].shape) < MISSING] = np.nan


def codes(rng: np.random.Generator, size: Size, y: Ints, values: int = CODE_VALUES) -> Ints:
    """(rows, columns) codes 0..values-1, distributed differently per class and column."""
    powers = rng.uniform(0.8, 1.25, (size.classes, size.columns))
    X = np.empty((size.rows, size.columns), dtype=np.int64)
    for rows in blocks(size.rows):
        X[rows] = values * rng.random(X[rows].shape) ** powers[y[rows]]
    return X


def whole_numbers(rng: np.random.Generator, size: Size) -> Ints:
    """(rows, columns) int64 numbers with many distinct values."""
    X = np.empty((size.rows, size.columns), dtype=np.int64)
    for rows in blocks(size.rows):
        X[rows] = rng.integers(-1_000_000, 1_000_000, X[rows].shape)
    return X


def counts(rng: np.random.Generator, size: Size, y: Ints) -> sparse.csr_matrix:
    """Word counts 1..3, COUNTS_PER_ROW words per row, one from each equal stretch of the vocabulary."""
    stretch = size.columns // COUNTS_PER_ROW
    starts = stretch * np.arange(COUNTS_PER_ROW)
    powers = rng.uniform(0.9, 1.1, (size.classes, COUNTS_PER_ROW))
    words = np.empty((size.rows, COUNTS_PER_ROW), dtype=np.int32)
    for rows in blocks(size.rows):
        words[rows] = starts + np.floor(stretch * rng.random(words[rows].shape) ** powers[y[rows]])
    data = rng.integers(1, 4, words.size, dtype=np.int8).astype(np.float64)
    ends = np.arange(0, words.size + 1, COUNTS_PER_ROW, dtype=np.int32)
    return sparse.csr_matrix((data, words.ravel(), ends), shape=(size.rows, size.columns))


def text(rng: np.random.Generator, size: Size) -> tuple[sparse.csr_matrix, Ints]:
    """tf-idf of WORDS_PER_ROW words per row, in rows of length 1, and two classes.

    Word r is as frequent as 1 / (r + 20), like words are (Zipf, Mandelbrot): a row has one from each stretch of the
    vocabulary, and the stretches grow geometrically, from 3 words to a sixth of them all. A tenth of the words are
    informative. The class is drawn from a logistic model, whose own accuracy is about 80 %.
    """
    edges = np.floor(20 * ((size.columns / 20 + 1) ** (np.arange(WORDS_PER_ROW + 1) / WORDS_PER_ROW) - 1))
    words = np.empty((size.rows, WORDS_PER_ROW), dtype=np.int32)
    for rows in blocks(size.rows):
        words[rows] = edges[:-1] + np.floor(np.diff(edges) * rng.random(words[rows].shape))
    documents = np.bincount(words.ravel(), minlength=size.columns)
    idf = 1 + np.log((1 + size.rows) / (1 + documents))
    cells = (1 + np.log(rng.integers(1, 4, words.shape))) * idf[words]
    cells /= np.sqrt((cells**2).sum(axis=1, keepdims=True))
    ends = np.arange(0, words.size + 1, WORDS_PER_ROW, dtype=np.int32)
    X = sparse.csr_matrix((cells.ravel(), words.ravel(), ends), shape=(size.rows, size.columns))
    score = X @ (rng.standard_normal(size.columns) * (rng.random(size.columns) < 0.1))
    y = rng.random(size.rows) < 1 / (1 + np.exp(-2 * score / score.std()))
    return X, y.astype(np.int64)


def table(rng: np.random.Generator, size: Size, y: Ints | None = None) -> pd.DataFrame:
    """Half number columns, half string columns, missing values in both, and a string column ``label``."""
    half = Size(size.rows, size.columns // 2, size.classes)
    y = labels(rng, size) if y is None else y
    numbers = gaussian(rng, half, y)
    remove_values(rng, numbers)
    strings = codes(rng, half, y, TABLE_LEVELS)
    columns: dict[str, object] = {f"number{j}": numbers[:, j].copy() for j in range(half.columns)}
    for j in range(half.columns):
        cells = np.array([f"level {j}.{v}" for v in range(TABLE_LEVELS)], dtype=object)[strings[:, j]]
        cells[rng.random(size.rows) < MISSING] = None
        columns[f"string{j}"] = cells
    columns["label"] = np.array([f"class {k}" for k in range(size.classes)], dtype=object)[y]
    return pd.DataFrame(columns)


def blocks(rows: int, block: int = BLOCK) -> Iterator[slice]:
    return (slice(start, min(start + block, rows)) for start in range(0, rows, block))
