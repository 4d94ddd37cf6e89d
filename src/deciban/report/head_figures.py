"""The head of a report: the model, its settings, and the treatment of each feature."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from deciban.data.batch import NUMERIC, Frame
from deciban.data.temporal import format_date, format_time
from deciban.evaluation.fitted_model import KINDS, FittedModel, Treatment
from deciban.lazy import issparse
from deciban.plots.figures import Figures, plain, rounded
from deciban.report.report_input import ReportInput, weights_of
from deciban.table import numbered
from deciban.types import FloatArray

MOST_COLUMNS = 1000  # features that are all listed
LISTED = 300  # of more features, those with most evidence
MOST_TEXT = 200  # characters of a parameter


def head(
    model: FittedModel, data: ReportInput, evidence: Figures | None, class_counts: list[float] | None, notes: list[str]
) -> Figures:
    """The model and its features; `class_counts` (K) are Σ w of the rows of the report."""
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
    """What the model is, with its penalty and its calibrations."""
    text, fit = model.base_model_.description, model.base_model_.linear_fit_
    if fit is not None and fit.l2:
        text += f" Coefficients are penalised by l2 = {fit.l2:g}."
    for calibration in model.calibrations_:
        text += f" Probabilities are calibrated ({calibration.name}) on out-of-fold predictions."
    return text


def settings(model: FittedModel) -> list[Figures]:
    """Every parameter of the model, and whether it has its default value."""
    defaults = inspect.signature(type(model).__init__).parameters
    values = []
    for name, value in model.get_params(deep=False).items():
        default = defaults[name].default
        is_default = type(value) is type(default) and repr(value) == repr(default)
        values.append({"name": name, "value": _setting(value), "default": is_default})
    return values


def _setting(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str, np.generic)):
        return plain(value)
    text = " ".join(repr(value).split())
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def training_rows(model: FittedModel) -> Figures:
    """Σ w of the training rows, and of each class; None where unknown."""
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
    """The listed features, in the order of the table."""
    names, kinds = numbered(data.schema.names), data.schema.kinds
    listed = list(range(len(names)))
    if len(names) > MOST_COLUMNS:
        rank = {name: i for i, name in enumerate(decibans)}
        listed = sorted(sorted(listed, key=lambda j: rank.get(names[j], len(rank)))[:LISTED])
    rows, treatments = data.available, model.base_model_.column_treatments_
    weights, positions = weights_of(rows), data.schema.positions(rows.frame)
    columns = []
    for j in listed:
        treatment = treatments.get(j, Treatment("left out: it is not informative", KINDS[kinds[j]]))
        values = values_of(rows.frame, positions[j], weights)
        about = {"treatment": treatment.text, "why": treatment.why, "decibans": decibans.get(names[j])}
        columns.append({"name": names[j], "kind": kinds[j], **values, **about})
    return columns


def values_of(frame: Frame, j: int, weights: FloatArray) -> Figures:
    """The share of missing values, and the number of levels or the range of the numbers."""
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
