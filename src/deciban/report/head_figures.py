"""The head of a report: the model, its settings, and what it does with each feature."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from deciban.data.batch import NUMERIC, Frame
from deciban.data.temporal import format_date, format_time
from deciban.evaluation.fitted_model import FittedModel
from deciban.evidence.weighted_evidence import WeightedEvidence
from deciban.generative.estimate import Estimate
from deciban.generative.selection import FamilyComparison
from deciban.lazy import issparse
from deciban.linear.encoders import Sufficient
from deciban.linear.predictor import Predictor
from deciban.plots.figures import Figures, counted, plain, rounded
from deciban.report.report_input import ReportInput, weights_of
from deciban.table import numbered
from deciban.types import FloatArray

MOST_COLUMNS = 1000  # that are all listed; of more, those with most evidence
LISTED = 300
MOST_TEXT = 200  # characters of a setting

TERMS = "terms of documents"
BY_FAMILIES = "chosen by families="
WHY = {
    "number": "numbers",
    "date": "dates, as days since 1970",
    "time": "times of day, as hours since midnight",
    "boolean": "true or false",
    "category": "text of few distinct values",
    "text": "documents",
    "empty": "always missing",
}


def head(
    model: FittedModel, data: ReportInput, evidence: Figures | None, class_counts: list[float] | None, notes: list[str]
) -> Figures:
    """The first part of a report: what was fitted to which features; `class_counts` are those of the report's rows."""
    names, ranking = numbered(data.schema.names), evidence["ranking"] if evidence else ()
    columns = _columns(model, data, {row["name"]: row["value"] for row in ranking if row["what"] == "feature"})
    notes = [*_status(model), *notes]
    if len(columns) < len(names):
        notes.append(f"the {len(columns)} features with most evidence of {len(names):,} are listed")
    if data.whole is None and data.sample.frame.rows < data.rows:
        rows = f"{data.sample.frame.rows:,} of the {data.rows:,} rows"
        notes.append(f"files are read batch by batch: values and evidence of features are those of {rows}")
    return {
        "model": type(model).__name__,
        "sentence": sentence(model),
        "settings": settings(model),
        "label": data.label or model.label_name_,
        "training": training_rows(model),
        "evaluated": {"rows": plain(data.weight if data.weighted else data.rows), "by_class": class_counts},
        "width": len(names),
        "missing": rounded(np.mean([column["missing"] for column in columns])) if columns else None,
        "columns": columns,
        "notes": list(dict.fromkeys(notes)),
    }


def sentence(model: FittedModel) -> str:
    """What the model is."""
    text, fit = model.base_model_.description, model.base_model_.linear_fit_
    if fit is not None and fit.l2:
        text += f" Coefficients are penalised by l2 = {fit.l2:g}."
    for calibration in model.calibrations_:
        text += f" Probabilities are calibrated ({calibration.name}) on out-of-fold predictions."
    return text


def settings(model: FittedModel) -> list[Figures]:
    """Every parameter of the model, and whether it is the default."""
    defaults = inspect.signature(type(model).__init__).parameters
    values = []
    for name, value in model.get_params(deep=False).items():
        default = defaults[name].default
        same = type(value) is type(default) and repr(value) == repr(default)
        values.append({"name": name, "value": _setting(value), "default": bool(same)})
    return values


def _setting(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str, np.generic)):
        return plain(value)
    text = " ".join(repr(value).split())
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def training_rows(model: FittedModel) -> Figures:
    """Σ w of the training rows, and of each class, as far as they are known."""
    counts, fit = model.base_model_.class_count_, model.base_model_.linear_fit_
    if counts is not None:
        return {"rows": plain(counts.sum()), "by_class": plain(counts)}
    return {"rows": plain(fit.inference.n) if fit and fit.inference else None, "by_class": None}


def _status(model: FittedModel) -> list[str]:
    """The notes of the model's summary."""
    base = model.base_model_
    if "summary" in base.capabilities:
        return list(base.summary().notes)
    fit = base.linear_fit_
    return [fit.status] if fit is not None and fit.status != "ok" else []


def _columns(model: FittedModel, data: ReportInput, decibans: dict[str, Any]) -> list[Figures]:
    """Features in the order of the table."""
    names, kinds = numbered(data.schema.names), data.schema.kinds
    listed = list(range(len(names)))
    if len(names) > MOST_COLUMNS:
        rank = {name: i for i, name in enumerate(decibans)}
        listed = sorted(sorted(listed, key=lambda j: rank.get(names[j], len(rank)))[:LISTED])
    frame, positions = data.known.frame, data.schema.positions(data.known.frame)
    weights, treated = weights_of(data.known), treatments(model, data)
    columns = []
    for j in listed:
        treatment, why = treated.get(j, ("left out: it is not informative", WHY[kinds[j]]))
        values = cells(frame, positions[j], weights)
        about = {"treatment": treatment, "why": why, "decibans": decibans.get(names[j])}
        columns.append({"name": names[j], "kind": kinds[j], **values, **about})
    return columns


def cells(frame: Frame, j: int, weights: FloatArray) -> Figures:
    """The share of missing values, and the number of levels or the range of numbers."""
    kind, total = frame.kinds[j], float(weights.sum())
    if kind in NUMERIC or kind == "boolean":
        x = frame.counts([j])
        x = np.asarray(x.toarray() if issparse(x) else x, np.float64)[:, 0]
        present = x[~np.isnan(x)]
        levels = len(np.unique(present)) if kind == "boolean" else None
        write: Any = {"date": format_date, "time": format_time}.get(kind, plain)  # dates and times as people write them
        ends = [write(float(end)) for end in (present.min(), present.max())] if len(present) else [None, None]
        missing = np.isnan(x)
    elif kind == "text":
        missing, levels, ends = ~frame.texts([j]).present, None, [None, None]
    else:
        codes = frame.coded([j]).codes[:, 0]
        missing, levels, ends = codes < 0, len(np.unique(codes[codes >= 0])), [None, None]
    share = rounded(float(weights[missing].sum()) / total)
    return {"missing": share, "levels": levels, "low": ends[0], "high": ends[1]}


Treatments = dict[int, tuple[str, str]]  # by feature: what is done with it, and why


def treatments(model: FittedModel, data: ReportInput) -> Treatments:
    """What the model does with each feature, and why."""
    base, scorer = model.base_model_, model.base_model_.scorer_
    if isinstance(scorer, WeightedEvidence):
        return _weighted(base, scorer, data)
    if isinstance(scorer, Estimate):
        return _generative(base, scorer, data)
    return _linear(base, scorer, data) if isinstance(scorer, Predictor) else {}


def _generative(model: FittedModel, estimate: Estimate, data: ReportInput) -> Treatments:
    kinds, names = data.schema.kinds, data.schema.names
    comparisons = {comparison.column: comparison for comparison in model.family_comparisons_}
    reasons = model.columns_without_evidence_
    treated: Treatments = {}
    for block, params in zip(estimate.evidence.blocks, estimate.params, strict=True):
        family, columns = block.plan.family, block.plan.columns
        index = family.silent(params)
        silent = {columns[i] for i in index} if len(columns) > max(index, default=-1) else set()
        for i, j in enumerate(columns):
            if block.plan.presence:
                if j in treated and not treated[j][0].startswith("left out"):
                    treated[j] = (f"{treated[j][0]}; and whether it is missing", treated[j][1])
                continue
            left_out = f"left out: {reasons.get(names[j], 'no evidence')}"
            treatment = left_out if j in silent else family.describe_column(params, i)
            treated[j] = treatment, _why(names[j], kinds[j], comparisons.get(names[j]), model)
    return treated


def _why(name: Any, kind: str, comparison: FamilyComparison | None, model: FittedModel) -> str:
    settings = model.get_params(deep=False)
    if "families" not in settings:
        return f"a {type(model).__name__} takes all features so"
    if comparison is not None:
        order = sorted(comparison.decibans.values(), reverse=True)
        ahead = f", by {order[0] - order[1]:.3g} mean decibans" if len(order) > 1 else ""
        return f"the family that by itself predicts the class best{ahead}, by leave-one-out"
    families = settings["families"]
    if families is None or isinstance(families, str):
        return WHY[kind]
    if not isinstance(families, dict):
        return BY_FAMILIES
    keys = {part for key in families for part in (key if isinstance(key, tuple) else (key,))}
    return BY_FAMILIES if name in keys or str(name) in {str(key) for key in keys} else WHY[kind]


def _weighted(model: FittedModel, scorer: WeightedEvidence, data: ReportInput) -> Treatments:
    pieces: dict[int, list[str]] = {}
    pairs: dict[int, int] = {}
    for _, source, weights in scorer.sources:
        for piece, weight in zip(source.pieces, weights, strict=True):
            if not weight.any():
                continue
            for j in data.schema.source_columns(piece.columns):
                if source.explains_pairs:
                    pairs[j] = pairs.get(j, 0) + 1
                else:
                    pieces.setdefault(j, []).append(source.describe(piece))
    treated = {}
    for j in {*pieces, *pairs}:
        texts = list(dict.fromkeys(pieces.get(j, [])))
        texts += [f"{counted(pairs[j], 'pair')} with other features"] if j in pairs else []
        treated[j] = "; ".join(texts), _why_weighted(model, data.schema.kinds[j], texts)
    return treated


def _why_weighted(model: FittedModel, kind: str, texts: list[str]) -> str:
    if TERMS in texts:
        auto = isinstance(model.get_params(deep=False)["text"], str)
        return "long text, a third or more of it distinct" if auto else "chosen by text="
    return f"{WHY[kind]}; other evidence of it has weight 0"


def _linear(model: FittedModel, predictor: Predictor, data: ReportInput) -> Treatments:
    kinds = data.schema.kinds
    treated: Treatments = {}
    for part in predictor.design.parts:
        for i, j in enumerate(part.columns):
            twin = isinstance(part.encoder, Sufficient)
            treated[j] = part.encoder.describe(i), "the linear twin of a generative model" if twin else WHY[kinds[j]]
    if model.task == "regression":
        return {j: treated.get(j, ("left out: it is empty", WHY[kinds[j]])) for j in range(len(kinds))}
    return treated
