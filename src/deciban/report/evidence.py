"""Evidence: which columns, pairs and terms tell most, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from deciban.charts.figures import Figures, counted, plain, table
from deciban.contributions import against_others, title
from deciban.families.mixed import Coding
from deciban.families.text import Text
from deciban.report.columns import charts
from deciban.report.parts import Told, told
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
    ranked = _ranked(reading, found)
    names = reading.schema.names
    charted = [j for j, _ in ranked if j not in reading.documents][:RANKED]
    return {
        "sentence": _sentence(reading, found),
        "rows": found.rows,
        "unit": "predictor" if numbers else "decibans",
        "ranking": [{"name": str(names[j]), "value": plain(value), "what": "column"} for j, value in ranked[:RANKED]],
        "columns": charts(reading, found, charted),
        "pairs": pairs(reading),
        "terms": terms(reading),
    }


def _ranked(reading: Reading, found: Told) -> list[tuple[int, float]]:
    """Columns and their mean |decibans|, the largest first: `feature_importances_`, or over the report's own rows."""
    names = reading.schema.names
    if reading.importances is not None:
        values = {j: float(value) for j, value in enumerate(reading.importances)}
    else:
        values = {j: found.means[str(name)] for j, name in enumerate(names) if str(name) in found.means}
    return sorted(values.items(), key=lambda pair: -pair[1])


def _sentence(reading: Reading, found: Told) -> str:
    if reading.numbers:
        return f"Mean size of what each column adds to the linear predictor of {counted(found.rows, 'row')}."
    over = "rows of the training data" if reading.importances is not None else counted(found.rows, "row")
    against = "the other class" if len(reading.names) == 2 else "the mean of the other classes"
    mean = f"Mean absolute decibans of each column over {over}, for the true class against {against}"
    return f"{mean}; ten are odds of ten to one."


# Pairs ---------------------------------------------------------------------------------------------------------------


def pairs(reading: Reading) -> list[Figures]:
    """What the cells of the most telling pairs of columns say, by the tables that the model has counted."""
    if reading.weighed is None:
        return []
    found: list[tuple[float, Figures]] = []
    for _, reader, weights in reading.weighed.readers:
        if not isinstance(reader, Paired):
            continue
        tables = zip(reader.tables(reader.logs()), reader.tables(reader.counts), strict=True)
        for p, (piece, cells) in enumerate(zip(reader.pieces, tables, strict=True)):
            logs, counts = (table.reshape(-1, table.shape[-1]) for table in cells)
            decibans = against_others(logs * weights[p])
            tells = float(counts.sum(axis=1) @ np.abs(decibans).mean(axis=1))
            if np.abs(decibans[counts.any(axis=1)]).max(initial=0.0) >= LEAST:
                sides = [codes_called(reader.family.reading, i) for i in reader.family.pairs[p]]
                found.append((tells, _pair(reading, piece.columns, sides, decibans, counts)))
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
    names = [str(reading.schema.all_names[j]) for j in columns]
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
    families: dict[tuple[int, ...], Text] = {}
    for columns, family, words, nats, counts in _vocabularies(reading):
        families[columns] = family
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
    return [_terms(reading, columns, families[columns], *of) for columns, of in found.items() if len(of[0])]


def _vocabularies(reading: Reading) -> list[tuple[tuple[int, ...], Text, Terms, FloatArray, FloatArray]]:
    """For every block of documents: columns, family, terms, (K, V) nats of a term that is there, and (K, V) counts."""
    found = []
    if reading.weighed is not None:
        for _, reader, weights in reading.weighed.readers:
            if isinstance(reader, Words) and reader.by_lines and weights.any():
                log_p, counts = reader.params.log_p, reader.statistic.counts.value
                nats = (log_p - log_p.mean(axis=0)) * weights[0][:, np.newaxis]
                found.append((reader.columns, reader.family, reader.params.terms, nats * reading.correction, counts))
    for block, params in reading.blocks:
        family: Any = block.plan.family
        if params is not None and isinstance(family, Text):
            counts = block.statistic.counts.value[:, family._kept(block.statistic)]
            found.append((block.plan.columns, family, params.terms, params.log_p * reading.correction, counts))
    return found


def _terms(
    reading: Reading, columns: tuple[int, ...], family: Text, words: Terms, nats: FloatArray, counts: FloatArray
) -> Figures:
    decibans = against_others(np.ascontiguousarray(nats.T)).T  # (K, V)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    with np.errstate(invalid="ignore"):
        telling = np.nan_to_num(share * decibans)
    most = max(1, min(EACH, TERMS // len(nats)))
    total, rows = counts.sum(axis=0), []
    for k in range(len(nats)):
        of = 1 if len(nats) == 2 else k  # of two classes all is told for the second
        best = np.argsort(-telling[k], kind="stable")[:most]
        rows += [
            (family.called(words[t]), reading.names[of], decibans[of, t], total[t])
            for t in best[telling[k, best] > 0].tolist()
        ]
    positional = reading.schema.positional and len(reading.schema.names) == 1
    name = "" if positional else title(columns, reading.schema.names)
    return {"name": name, "terms": table(("term", "class", "decibans", "count"), rows)}
