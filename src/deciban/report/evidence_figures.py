"""Evidence by feature, pair and term, as figures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from deciban.contributions import against_others, title
from deciban.data.terms import Terms
from deciban.evaluation.fitted_model import FittedModel
from deciban.evidence.mixed_columns import Coding
from deciban.evidence.pair_tables import PairTables
from deciban.evidence.term_evidence import TermEvidence
from deciban.families.text import Text
from deciban.plots.figures import Figures, counted, plain, table
from deciban.report.class_shares import MISSING, level_name
from deciban.report.contribution_figures import ContributionFigures, contribution_figures
from deciban.report.feature_figures import charts
from deciban.report.model_view import ModelView
from deciban.report.report_input import ReportInput
from deciban.statistics.tokens import Tokens
from deciban.types import FloatArray

RANKED = 300  # features in the ranking, and features with a chart
PAIRS = 6  # shown, those with most evidence
LEAST = 0.05  # decibans in some cell of a pair that is shown
TERMS = 200  # shown, for all classes together
EACH = 20  # shown for each class, at most


def evidence(model: FittedModel, data: ReportInput) -> Figures | None:
    """Evidence by feature, pair and term; None for a model without explanations, or of one class."""
    if model.calibrations_ and "explain" not in model.capabilities:
        return None
    if model.task != "regression" and len(model.classes_) < 2:
        return None
    view = ModelView(model, data)
    contributions = contribution_figures(model, data, view.averaged)
    ranked = _ranked(view, contributions)
    names = view.schema.names
    charted = [j for j, _ in ranked if j not in view.documents][:RANKED]
    return {
        "sentence": _sentence(view, contributions),
        "rows": contributions.rows,
        "unit": "predictor" if view.regression else "decibans",
        "ranking": [{"name": str(names[j]), "value": plain(value), "what": "feature"} for j, value in ranked[:RANKED]],
        "columns": charts(view, contributions, charted),
        "pairs": pairs(view),
        "terms": terms(view),
    }


def _ranked(view: ModelView, contributions: ContributionFigures) -> list[tuple[int, float]]:
    """Features by mean |decibans|, descending: `feature_importances_`, or means over the rows of the report."""
    importances, means = view.model.importances_, contributions.means
    values = {j: means[str(name)] for j, name in enumerate(view.schema.names) if str(name) in means}
    if importances is not None:
        values = dict(enumerate(importances.tolist()))
    return sorted(values.items(), key=lambda pair: -pair[1])


def _sentence(view: ModelView, contributions: ContributionFigures) -> str:
    rows = counted(contributions.rows, "row")
    if view.regression:
        return f"Mean absolute contribution of each feature to the linear predictor, over {rows}."
    over = "training rows" if view.model.importances_ is not None else rows
    against = "the other class" if len(view.names) == 2 else "the mean of the other classes"
    mean = f"Mean absolute decibans of each feature over {over}, for the true class against {against}"
    return f"{mean}; ten decibans are odds of ten to one."


def pairs(view: ModelView) -> list[Figures]:
    """The evidence of pairs of features, from the tables of the model; most evidence first."""
    if view.weighted is None:
        return []
    ranked: list[tuple[float, Figures]] = []
    for _, block_evidence, weights in view.weighted.sources:
        if not isinstance(block_evidence, PairTables):
            continue
        tables = zip(*map(block_evidence.tables, (block_evidence.logs(), block_evidence.counts)), strict=True)
        for p, (piece, cells) in enumerate(zip(block_evidence.pieces, tables, strict=True)):
            logs, counts = (table.reshape(-1, table.shape[-1]) for table in cells)
            decibans = against_others(logs * weights[p])
            total = float(counts.sum(axis=1) @ np.abs(decibans).mean(axis=1))
            if np.abs(decibans[counts.any(axis=1)]).max(initial=0.0) >= LEAST:
                family = block_evidence.family
                sides = [code_names(family.reading, i) for i in family.pairs[p]]
                ranked.append((total, _pair(view, piece.columns, sides, decibans, counts)))
    ranked.sort(key=lambda pair: -pair[0])
    return [figures for _, figures in ranked[:PAIRS]]


def _pair(
    view: ModelView, columns: tuple[int, ...], sides: list[list[str]], decibans: FloatArray, counts: FloatArray
) -> Figures:
    """A cell for each two values of the training rows; missing values come last."""
    rows_of = counts.sum(axis=1).reshape(len(sides[0]), len(sides[1]))
    a, b = ([i for i in (*range(1, len(seen)), 0) if seen[i]] for seen in (rows_of.any(axis=1), rows_of.any(axis=0)))
    cells = decibans.reshape(*rows_of.shape, -1)
    rows = [
        (sides[0][i], sides[1][j], view.names[k], cells[i, j, k] if rows_of[i, j] else None, rows_of[i, j])
        for k in view.shown
        for i in a
        for j in b
    ]
    names = [str(view.schema.all_names[j]) for j in columns]
    return {"names": names, "cells": table(("a", "b", "class", "decibans", "rows"), rows)}


def code_names(coding: Coding, column: int) -> list[str]:
    """The name of each code of a column.

    >>> code_names(Coding((None, (1.5, 4.0)), (("red",), None)), 1)
    ['(missing)', 'below 1.5', '1.5 to 4', '4 and above']
    >>> code_names(Coding((None,), (("red", None),)), 0)
    ['(missing)', 'red', '(missing)', '(other)']
    """
    cuts, levels = coding.cuts[column], coding.levels[column]
    if cuts is None:
        return [MISSING, *map(level_name, levels or ()), "(other)"]
    if not cuts:
        return [MISSING, "any number"]
    ends = short_numbers(cuts)
    between = [f"{low} to {high}" for low, high in pairwise(ends)]
    return [MISSING, f"below {ends[0]}", *between, f"{ends[-1]} and above"]


def short_numbers(numbers: Sequence[float]) -> list[str]:
    """Numbers with the fewest digits, three or more, that keep them distinct.

    >>> short_numbers([-19.16667, 0.5, 1e6]), short_numbers([1999.5, 2000.5])
    (['-19.2', '0.5', '1e+06'], ['1999.5', '2000.5'])
    """
    for digits in range(3, 18):
        texts = [f"{number:.{digits}g}" for number in numbers]
        if len(set(texts)) == len(texts):
            break
    return texts


def terms(view: ModelView) -> list[Figures]:
    """The terms with most evidence for each class, by text feature: the evidence of one occurrence.

    Terms are ranked by decibans times their share of the class, so that rare ones do not come first. Counts are of all
    classes together.
    """
    merged: dict[tuple[int, ...], tuple[Terms, FloatArray, FloatArray]] = {}
    families: dict[tuple[int, ...], Text] = {}
    for columns, family, words, nats, counts in _vocabularies(view):
        families[columns] = family
        if columns in merged:  # the counts of terms, and whether they are present
            both, first, second = merged[columns][0].union(words)
            total, most = np.zeros((2, len(nats), len(both)))
            total[:, first] += merged[columns][1]
            total[:, second] += nats
            most[:, first] = merged[columns][2]
            most[:, second] = np.maximum(most[:, second], counts)
            merged[columns] = both, total, most
        else:
            merged[columns] = words, nats, counts
    return [_terms(view, columns, families[columns], *entry) for columns, entry in merged.items() if len(entry[0])]


def _vocabularies(view: ModelView) -> list[tuple[tuple[int, ...], Text, Terms, FloatArray, FloatArray]]:
    """For every block of documents: features, family, terms, (K, V) nats of one occurrence, and (K, V) counts."""
    vocabularies, scale = [], view.model.evidence_scale_
    if view.weighted is not None:
        for _, part, weights in view.weighted.sources:
            if isinstance(part, TermEvidence) and part.explains_terms and weights.any():
                log_p, counts = part.params.log_p, part.statistic.counts.value
                nats = (log_p - log_p.mean(axis=0)) * weights[0][:, np.newaxis]
                vocabularies.append((part.columns, part.family, part.params.terms, nats * scale, counts))
    for block, params in view.blocks:
        family, statistic = block.plan.family, block.statistic
        if params is not None and isinstance(family, Text) and isinstance(statistic, Tokens):
            counts = statistic.counts.value[:, family.used_terms(statistic)]
            vocabularies.append((block.plan.columns, family, params.terms, params.log_p * scale, counts))
    return vocabularies


def _terms(
    view: ModelView, columns: tuple[int, ...], family: Text, words: Terms, nats: FloatArray, counts: FloatArray
) -> Figures:
    decibans = against_others(np.ascontiguousarray(nats.T)).T  # (K, V)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    with np.errstate(invalid="ignore"):
        rank = np.nan_to_num(share * decibans)
    most = max(1, min(EACH, TERMS // len(nats)))
    total, rows = counts.sum(axis=0), []
    for k in range(len(nats)):
        shown = 1 if len(nats) == 2 else k  # evidence of two classes is shown for the second
        best = np.argsort(-rank[k], kind="stable")[:most]
        rows += [
            (family.display_name(words[t]), view.names[shown], decibans[shown, t], total[t])
            for t in best[rank[k, best] > 0].tolist()
        ]
    positional = view.schema.positional and len(view.schema.names) == 1
    name = "" if positional else title(columns, view.schema.names)
    return {"name": name, "terms": table(("term", "class", "decibans", "count"), rows)}
