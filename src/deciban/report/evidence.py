"""Evidence: which columns, pairs and terms tell most, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from deciban.charts.figures import Figures, counted, plain, table
from deciban.families.mixed import Coding
from deciban.families.text import Text
from deciban.generative import title
from deciban.report.columns import charts
from deciban.report.parts import Told, against_others, told
from deciban.report.reading import Reading
from deciban.report.rows import Given, gives_numbers
from deciban.report.shares import MISSING, called
from deciban.statistics.tokens import Terms
from deciban.types import FloatArray
from deciban.weighing.tables import Paired
from deciban.weighing.words import Words

RANKED = 300  # parts, and columns with a chart
PAIRS = 6  # that are shown, the most telling
LEAST = 0.05  # decibans of some cell of a pair that is shown
TERMS = 200  # that are shown, of all classes together
EACH = 20  # of each class, at most


def evidence(model: Any, of: Given) -> Figures | None:
    """What a report says of evidence; None where a model gives none, or has one class only."""
    numbers = gives_numbers(model)
    if not (numbers or hasattr(model, "explain") or hasattr(model, "predictor_")):
        return None
    if not numbers and len(model.classes_) < 2:
        return None
    reading = Reading(model, of)
    found = told(model, of, reading.mixed)
    owners = reading.owners
    ranked = sorted(found.means.items(), key=lambda pair: -pair[1])
    ranking = [
        {"name": name, "value": plain(value), "what": what(reading, owners.get(name))}
        for name, value in ranked[:RANKED]
    ]
    telling = [owners[name][0] for name, _ in ranked if len(owners.get(name, ())) == 1][:RANKED]
    telling += [j for j in reading.marginal if j not in telling][: RANKED - len(telling)]
    return {
        "sentence": _sentence(reading, found),
        "rows": found.rows,
        "unit": "predictor" if numbers else "decibans",
        "ranking": ranking,
        "columns": charts(reading, found, telling),
        "pairs": pairs(reading, found.means),
        "terms": terms(reading),
    }


def what(reading: Reading, owner: tuple[int, ...] | None) -> str:
    """What a part is of: a column, a pair, columns together, or a term."""
    if owner is None:
        return "term"
    return "column" if len(owner) == 1 else "pair" if reading.weighed is not None else "joint"


def _sentence(reading: Reading, found: Told) -> str:
    unit = "of the linear predictor" if reading.numbers else "in decibans; ten are odds of ten to one"
    said = f"Mean size of what each part says of {counted(found.rows, 'row')}, {unit}."
    if not reading.numbers and len(reading.names) > 2:
        said += " For a class it is what is said for it against the mean of the others."
    if reading.marginal:
        said += " Columns that are read together are one part; their charts are of each by itself."
    return said


# Pairs ---------------------------------------------------------------------------------------------------------------


def pairs(reading: Reading, means: dict[str, float]) -> list[Figures]:
    """What the cells of the most telling pairs of columns say, by the tables that the model has counted."""
    if reading.weighed is None:
        return []
    found: list[tuple[float, Figures]] = []
    for _, reader, weights in reading.weighed.readers:
        if not isinstance(reader, Paired):
            continue
        logs, ends = reader.logs(), reader.offsets
        for p, piece in enumerate(reader.pieces):
            tells = means.get(title(piece.columns, reading.schema.names), 0.0)
            cells = slice(ends[p], ends[p + 1])
            decibans = against_others(logs[cells] * weights[p])
            if np.abs(decibans[reader.counts[cells].any(axis=1)]).max(initial=0.0) >= LEAST:
                sides = [codes_called(reader.family.reading, i) for i in reader.family.pairs[p]]
                found.append((tells, _pair(reading, piece.columns, sides, decibans, reader.counts[cells])))
    found.sort(key=lambda pair: -pair[0])
    return [figures for _, figures in found[:PAIRS]]


def _pair(
    reading: Reading, columns: tuple[int, ...], sides: list[list[str]], decibans: FloatArray, counts: FloatArray
) -> Figures:
    """All cells of the values that some row had, each side in its order; what is missing comes last."""
    met = counts.sum(axis=1).reshape(len(sides[0]), len(sides[1]))
    a, b = ([i for i in (*range(1, len(had)), 0) if had[i]] for had in (met.any(axis=1), met.any(axis=0)))
    said = decibans.reshape(*met.shape, -1)
    rows = [
        (sides[0][i], sides[1][j], reading.names[k], said[i, j, k] if met[i, j] else None, met[i, j])
        for k in reading.shown
        for i in a
        for j in b
    ]
    names = [str(reading.schema.names[j]) for j in columns]
    return {"names": names, "cells": table(("a", "b", "class", "decibans", "rows"), rows)}


def codes_called(coding: Coding, column: int) -> list[str]:
    """What the codes of a column stand for.

    >>> codes_called(Coding((None, (1.5, 4.0)), (("red",), None)), 1)
    ['(missing)', 'below 1.5', '1.5 to 4', '4 and above']
    >>> codes_called(Coding((None,), (("red", None),)), 0)
    ['(missing)', 'red', '(missing)', '(other)']
    """
    cuts, levels = coding.cuts[column], coding.levels[column]
    if cuts is None:
        return [MISSING, *map(called, levels or ()), "(other)"]
    if not cuts:
        return [MISSING, "any number"]
    ends = shortly(cuts)
    between = [f"{low} to {high}" for low, high in pairwise(ends)]
    return [MISSING, f"below {ends[0]}", *between, f"{ends[-1]} and above"]


def shortly(numbers: Sequence[float]) -> list[str]:
    """With the fewest digits, from three on, that tell them apart.

    >>> shortly([-19.16667, 0.5, 1e6]), shortly([1999.5, 2000.5])
    (['-19.2', '0.5', '1e+06'], ['1999.5', '2000.5'])
    """
    for digits in range(3, 18):
        found = [f"{number:.{digits}g}" for number in numbers]
        if len(set(found)) == len(found):
            break
    return found


# Terms ---------------------------------------------------------------------------------------------------------------


def terms(reading: Reading) -> list[Figures]:
    """The most telling terms of each class, of every block of documents: what one occurrence says.

    Terms are chosen by decibans times their share of the class, so that rare ones do not come first. Counts are of all
    classes together.
    """
    found: dict[tuple[int, ...], tuple[Terms, FloatArray, FloatArray]] = {}
    for columns, words, nats, counts in _vocabularies(reading):
        if columns in found:  # whether words are there, beside how often
            both, mine, theirs = found[columns][0].union(words)
            total = np.zeros((len(nats), len(both)))
            total[:, mine] += found[columns][1]
            total[:, theirs] += nats
            most = np.zeros((len(nats), len(both)))
            most[:, mine] = found[columns][2]
            most[:, theirs] = np.maximum(most[:, theirs], counts)
            found[columns] = both, total, most
        else:
            found[columns] = words, nats, counts
    return [_terms(reading, columns, *of) for columns, of in found.items() if len(of[0])]


def _vocabularies(reading: Reading) -> list[tuple[tuple[int, ...], Terms, FloatArray, FloatArray]]:
    """Of every block of documents: columns, terms, (K, V) nats of a term that is there, and (K, V) counts."""
    found = []
    if reading.weighed is not None:
        for _, reader, weights in reading.weighed.readers:
            if isinstance(reader, Words) and reader.by_lines and weights.any():
                log_p, counts = reader.params.log_p, reader.statistic.counts.value
                nats = (log_p - log_p.mean(axis=0)) * weights[0][:, np.newaxis]
                found.append((reader.columns, reader.params.terms, nats * reading.correction, counts))
    for block, params in reading.blocks:
        family: Any = block.plan.family
        if params is not None and isinstance(family, Text):
            counts = block.statistic.counts.value[:, family._kept(block.statistic)]
            found.append((block.plan.columns, params.terms, params.log_p * reading.correction, counts))
    return found


def _terms(reading: Reading, columns: tuple[int, ...], words: Terms, nats: FloatArray, counts: FloatArray) -> Figures:
    decibans = against_others(np.ascontiguousarray(nats.T)).T  # (K, V)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    with np.errstate(invalid="ignore"):
        telling = np.nan_to_num(share * decibans)
    most = max(1, min(EACH, TERMS // len(nats)))
    total, rows = counts.sum(axis=0), []
    for k in range(len(nats)):
        of = 1 if len(nats) == 2 else k  # of two classes all is told for the second
        best = np.argsort(-telling[k], kind="stable")[:most]
        rows += [(words[t], reading.names[of], decibans[of, t], total[t]) for t in best[telling[k, best] > 0].tolist()]
    positional = reading.schema.positional and len(reading.schema.names) == 1
    name = "" if positional else title(columns, reading.schema.names)
    return {"name": name, "terms": table(("term", "class", "decibans", "count"), rows)}
