"""What was fitted, to which columns, and why each is read as it is."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from deciban.batch import NUMERIC, Frame
from deciban.charts.figures import Figures, counted, plain, rounded
from deciban.late import issparse
from deciban.report.rows import Given, gives_numbers, inner, weights_of
from deciban.sources.temporal import written, written_time
from deciban.table import numbered
from deciban.types import FloatArray

MOST_COLUMNS = 1000  # that are all listed; of more, those that tell most
LISTED = 300
MOST_TEXT = 200  # characters of a setting

SENTENCES = {
    "NaiveBayes": "Each column has a density in each class, and what columns say is added up as if they were "
    "independent within a class.",
    "EvidenceClassifier": "Evidence of columns, of pairs and of all columns together, each weighed by how well it "
    "foretells rows that are left out of it, is added up.",
    "LogisticRegression": "Log-odds are linear in the columns, by maximum likelihood.",
    "SoftmaxRegression": "The score of each class is linear in the columns, by maximum likelihood.",
}
COVARIANCES = {
    "shared": "All columns together are normal in each class, with one covariance for all classes.",
    "per-class": "All columns together are normal in each class, with a covariance of its own.",
    "diagonal": "Each column is normal in each class, independently of the others.",
}
FAMILIES = {
    "Gaussian": "normal density in each class",
    "Bernoulli": "probability of true in each class",
    "Poisson": "Poisson counts, one rate in each class",
    "Exponential": "exponential density, one rate in each class",
    "Uniform": "uniform between the extremes of each class",
    "MultivariateGaussian": "jointly normal in each class, with the other columns",
    "Multinomial": "counts, one share of all in each class",
}
TERMS = "terms of documents"
PIECES = {
    "value": "a probability for each value",
    "present": "whether it is missing",
    "forest": "trees that ask for it among others",
    "words": "counts, one share of all in each class",
}
WHY = {
    "number": "numbers",
    "date": "dates, as days since 1970",
    "time": "times of day, as hours since midnight",
    "boolean": "true or false",
    "category": "text of few different values",
    "text": "documents",
    "empty": "no cell was ever there",
}


def head(model: Any, of: Given, evidence: Figures | None, judged: list[float] | None, notes: list[str]) -> Figures:
    """The first part of a report."""
    names, decibans = numbered(of.schema.names), _decibans(evidence)
    columns = _columns(model, of, decibans)
    notes = [*_status(model), *notes]
    if len(columns) < len(names):
        notes.append(f"of {len(names):,} columns the {len(columns)} that tell most are listed")
    if of.whole is None and of.sample.frame.rows < of.rows:
        some = f"{of.sample.frame.rows:,} of the {of.rows:,} rows"
        notes.append(f"files are read batch by batch: what columns hold and say is told from {some}")
    return {
        "model": type(model).__name__,
        "sentence": sentence(model),
        "settings": settings(model),
        "label": of.label or getattr(model, "label_name_", None),
        "learned": learned(model),
        "judged": {"rows": plain(of.rows if not of.weighted else of.weight), "by_class": judged},
        "width": len(names),
        "missing": rounded(np.mean([column["missing"] for column in columns])) if columns else None,
        "columns": columns,
        "notes": list(dict.fromkeys(notes)),
    }


def sentence(model: Any) -> str:
    """What the model is."""
    own = inner(model)
    name = type(own).__name__
    if name == "GeneralizedLinearModel":
        said = f"A {own.family} response: its mean, through the {own.response_.link} link, is linear in the columns."
    elif name == "GaussianDiscriminant":
        said = COVARIANCES[own.covariance]
    else:
        said = SENTENCES.get(name) or (inspect.getdoc(type(own)) or name).partition("\n")[0]
    if getattr(own, "l2", 0.0):
        said += f" Coefficients are held down by l2 = {own.l2:g}."
    if own is not model:
        said += f" Probabilities are corrected ({model.method}) by what it said of rows held out."
    return said


def settings(model: Any) -> list[Figures]:
    """Every parameter of the model, and whether it is the default."""
    defaults = inspect.signature(type(model).__init__).parameters
    found = []
    for name, value in model.get_params(deep=False).items():
        default = defaults[name].default
        same = type(value) is type(default) and repr(value) == repr(default)
        found.append({"name": name, "value": _setting(value), "default": bool(same)})
    return found


def _setting(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str, np.generic)):
        return plain(value)
    text = " ".join(repr(value).split())
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def learned(model: Any) -> Figures:
    """Σ w of the rows that were learned, and of each class, as far as the model remembers."""
    own = inner(model)
    if hasattr(own, "class_count_"):
        return {"rows": plain(own.class_count_.sum()), "by_class": plain(own.class_count_)}
    return {"rows": plain(own.inference_.n) if hasattr(own, "inference_") else None, "by_class": None}


def _status(model: Any) -> list[str]:
    """What the model's summary finds worth a note."""
    own = inner(model)
    if hasattr(own, "summary"):
        return list(own.summary().notes)
    return [own.status_] if getattr(own, "status_", "ok") != "ok" else []


def _decibans(evidence: Figures | None) -> dict[str, Any]:
    return {row["name"]: row["value"] for row in evidence["ranking"] if row["what"] == "column"} if evidence else {}


# Columns -------------------------------------------------------------------------------------------------------------


def _columns(model: Any, of: Given, decibans: dict[str, Any]) -> list[Figures]:
    """Columns in the order of the table."""
    names = numbered(of.schema.names)
    listed = list(range(len(names)))
    if len(names) > MOST_COLUMNS:
        telling = {name: place for place, name in enumerate(decibans)}
        listed = sorted(sorted(listed, key=lambda j: telling.get(names[j], len(telling)))[:LISTED])
    frame, places = of.known.frame, of.schema.own_places(of.known.frame)
    weights = weights_of(of.known)
    treated = treatments(model, of)
    found = []
    for j in listed:
        treatment, why = treated.get(j, ("left out: it tells the classes nothing", WHY[of.schema.kinds[j]]))
        found.append(
            {
                "name": names[j],
                "kind": of.schema.kinds[j],
                **cells(frame, places[j], weights),
                "treatment": treatment,
                "why": why,
                "decibans": decibans.get(names[j]),
            }
        )
    return found


def cells(frame: Frame, j: int, weights: FloatArray) -> Figures:
    """The share of missing cells, how many values there are, or between which numbers they lie."""
    kind, total = frame.kinds[j], float(weights.sum())
    if kind in NUMERIC or kind == "boolean":
        x = frame.counts([j])
        x = np.asarray(x.toarray() if issparse(x) else x, np.float64)[:, 0]
        there = x[~np.isnan(x)]
        levels = len(np.unique(there)) if kind == "boolean" else None
        low, high = (_end(kind, there.min()), _end(kind, there.max())) if len(there) else (None, None)
        return {
            "missing": rounded(float(weights[np.isnan(x)].sum()) / total),
            "levels": levels,
            "low": low,
            "high": high,
        }
    if kind == "text":
        missing, levels = ~frame.texts([j]).present, None
    else:
        codes = frame.coded([j]).codes[:, 0]
        missing, levels = codes < 0, len(np.unique(codes[codes >= 0]))
    return {"missing": rounded(weights[missing].sum() / total), "levels": levels, "low": None, "high": None}


def _end(kind: str, value: Any) -> Any:
    """The end of a range: a number, or a date or time as people write it."""
    writers = {"date": written, "time": written_time}
    return writers[kind](float(value)) if kind in writers else plain(value)


def treatments(model: Any, of: Given) -> dict[int, tuple[str, str]]:
    """What is done with each column, and why, where it is known."""
    own = inner(model)
    if hasattr(own, "weighed_"):
        return _weighed(own, of)
    if hasattr(own, "estimate_"):
        return _generative(own, of)
    if hasattr(own, "predictor_"):
        return _linear(own, of)
    return {}


def _generative(model: Any, of: Given) -> dict[int, tuple[str, str]]:
    estimate, kinds, names = model.estimate_, of.schema.kinds, of.schema.names
    given = getattr(model, "families", None)
    contests = {found.column: found for found in getattr(model, "_contests", ())}
    reasons = model.columns_without_evidence_
    found: dict[int, tuple[str, str]] = {}
    for block, params in zip(estimate.evidence.blocks, estimate.params, strict=True):
        family, columns = block.plan.family, block.plan.columns
        silent = (
            {columns[i] for i in family.silent(params)}
            if len(columns) > max(family.silent(params), default=-1)
            else set()
        )
        for i, j in enumerate(columns):
            if block.plan.presence:
                if j in found and not found[j][0].startswith("left out"):
                    found[j] = (f"{found[j][0]}; and whether it is missing", found[j][1])
                continue
            left_out = f"left out: {reasons.get(names[j], 'no evidence')}"
            treatment = left_out if j in silent else _by_family(family, block, params, i)
            found[j] = treatment, _why(names[j], kinds[j], given, contests.get(names[j]), model)
    return found


def _by_family(family: Any, block: Any, params: Any, i: int) -> str:
    name = type(family).__name__
    if name == "Categorical":
        return f"a probability for each of {counted(len(params.levels[i]), 'value')}, in each class"
    if name == "Binned":
        return f"{counted(len(params.cuts[i]) + 1, 'bin')} ({family.bins}), a probability for each in each class"
    if name == "Text":
        return f"{family.title}: a probability for each of {counted(len(params.terms), 'term')}, in each class"
    if name == "MultivariateGaussian" and len(block.plan.columns) == 1:
        return FAMILIES["Gaussian"]
    return FAMILIES.get(name, f"{name} in each class")


def _why(name: Any, kind: str, given: Any, contest: Any, model: Any) -> str:
    if type(model).__name__ == "GaussianDiscriminant":
        return "a GaussianDiscriminant takes all columns so"
    if contest is not None:
        order = sorted(contest.decibans.values(), reverse=True)
        ahead = f", by {order[0] - order[1]:.3g} decibans a row" if len(order) > 1 else ""
        return f"the family that alone foretells the class best{ahead}, each row left out in its turn"
    if given is None or isinstance(given, str):
        return WHY[kind]
    if not isinstance(given, dict):
        return "families= said so"
    keys = {part for key in given for part in (key if isinstance(key, tuple) else (key,))}
    return "families= said so" if name in keys or str(name) in {str(key) for key in keys} else WHY[kind]


def _weighed(model: Any, of: Given) -> dict[int, tuple[str, str]]:
    kinds = of.schema.kinds
    said: dict[int, list[str]] = {}
    pairs: dict[int, int] = {}
    for _, reader, weights in model.weighed_.readers:
        for piece, weight in zip(reader.pieces, weights, strict=True):
            if not weight.any():
                continue
            for j in of.schema.owners(piece.columns):
                if piece.kind == "pair":
                    pairs[j] = pairs.get(j, 0) + 1
                else:
                    said.setdefault(j, []).append(_of_piece(piece, reader))
    found = {}
    for j in {*said, *pairs}:
        words = list(dict.fromkeys(said.get(j, [])))
        words += [f"{counted(pairs[j], 'pair')} with other columns"] if j in pairs else []
        found[j] = "; ".join(words), _why_weighed(model, of.schema.names[j], kinds[j], words)
    return found


def _of_piece(piece: Any, reader: Any) -> str:
    if reader.by_lines:
        return TERMS
    if piece.kind in PIECES:
        return PIECES[piece.kind]
    if piece.kind.endswith("bins"):
        return "bins at several scales"
    return "jointly normal with other columns" if len(piece.columns) > 1 else FAMILIES["Gaussian"]


def _why_weighed(model: Any, name: Any, kind: str, words: list[str]) -> str:
    if TERMS in words:
        return "text= said so" if not isinstance(model.text, str) else "long text, a third or more of it different"
    return f"{WHY[kind]}; other evidence of it was given no weight"


def _linear(model: Any, of: Given) -> dict[int, tuple[str, str]]:
    kinds = of.schema.kinds
    found: dict[int, tuple[str, str]] = {}
    for part in model.predictor_.design.parts:
        encoder = part.encoder
        marked = getattr(encoder, "marked", ())
        for i, j in enumerate(part.columns):
            if hasattr(encoder, "plan"):
                said = f"sufficient statistics of {type(encoder.plan.family).__name__}"
                why = "the twin of a generative model"
            elif hasattr(encoder, "levels"):
                levels = encoder.levels[i]
                first = "missing" if levels and levels[0] is None else str(levels[0]) if levels else ""
                said = f"an indicator for each of {counted(len(levels), 'value')} but the first, {first!r}"
                why = WHY[kinds[j]]
            else:
                said, why = "multiplied by a coefficient", WHY[kinds[j]]
                if i in marked:
                    said += "; a missing cell is the mean, beside an indicator"
            found[j] = said, why
    if gives_numbers(model):
        return {j: found.get(j, ("left out: it is empty", WHY[kinds[j]])) for j in range(len(kinds))}
    return found
