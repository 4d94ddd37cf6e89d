"""Figures made by hand, of two classes and of five, for tests of the page."""

from itertools import pairwise

import numpy as np

HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "{{7*7}}",
    "quote ' and \" and `",
    "שלום عالم",
    "two\nlines",
    "a.b[0]",
    "__proto__",
]


def table(fields, rows):
    return {"fields": fields.split(), "rows": [list(row) for row in rows]}


def binary():
    return made(["no", "yes"], seed=1)


def five():
    return made(["alder", "birch", "cedar", "dogwood", "elm"], seed=2)


def made(classes, seed=0, columns=("age", "colour", "size"), levels=4, steps=1000):
    """Of 400 rows; the first column is of numbers, the second of text, the others of numbers in steps."""
    rng = np.random.default_rng(seed)
    k = len(classes)
    codes = rng.integers(k, size=400)
    score = rng.normal(size=(400, k)) + 2.0 * np.eye(k)[codes]
    proba = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    places = [1] if k == 2 else range(k)
    shown = [classes[place] for place in places]
    return {
        "format": 1,
        "version": "0.0.0",
        "title": "Model of trees",
        "lead": "Model predicts `tree` from 3 features; on 400 held-out rows it is right for 85%.",
        "kind": "classes",
        "classes": list(classes),
        "head": head(classes, codes, columns, levels),
        "quality": quality(classes, codes, proba, places, steps),
        "evidence": evidence(classes, shown, columns, levels),
        "linear": None,
        "boundary": None,
        "rows": {
            "sentence": "Three rows.",
            "numbers": [3, 8, 21],
            "labels": classes[:1] * 3,
            "cells": [[None] * len(columns)] * 3,
        },
        "scoring": {"why": "it was made by hand"},
    }


def head(classes, codes, columns, levels):
    counts = np.bincount(codes, minlength=len(classes)).tolist()
    of = {"missing": 0.01, "why": "numbers", "decibans": 2.5, "treatment": "normal density in each class"}
    listed = [{"name": name, "kind": "number", "levels": None, "low": 17, "high": 90.5, **of} for name in columns]
    listed[1] |= {"kind": "category", "levels": levels, "low": None, "high": None}
    return {
        "model": "Model",
        "sentence": "A model that was made by hand.",
        "settings": [
            {"name": "smoothing", "value": "0.5", "default": False},
            {"name": "missing", "value": "'skip'", "default": True},
        ],
        "label": "tree",
        "training": {"rows": 800, "by_class": [2 * n for n in counts]},
        "evaluated": {"rows": 400, "by_class": counts},
        "width": len(listed),
        "missing": 0.01,
        "columns": listed,
        "notes": ["a column is constant"],
    }


def quality(classes, codes, proba, places, steps):
    confusion = np.zeros((len(classes), len(classes)))
    np.add.at(confusion, (codes, proba.argmax(axis=1)), 1)
    metric = {"low": None, "high": None, "meaning": "less is better"}
    return {
        "how": "held-out",
        "sentence": "These rows were not learned.",
        "classes": list(classes),
        "unknown": {"classes": [], "rows": 0},
        "metrics": [
            {"name": "log_loss", "title": "log-loss", "value": 0.41234567, "prior": 0.693, **metric},
            {"name": "accuracy", "title": "accuracy", "value": 0.85, "prior": 0.5, **metric, "low": 0.81, "high": 0.88},
        ],
        "confusion": confusion.tolist(),
        "by_class": table("class rows precision", [(name, 10, 0.5) for name in classes]),
        "curves": [curve(classes[place], place, codes == place, proba[:, place], steps) for place in places],
        "calibration": [calibration(classes[place], codes == place, proba[:, place]) for place in places],
    }


def curve(name, place, positive, p, steps):
    at = np.arange(steps + 1) / steps
    tp, fp = ((p[member, np.newaxis] >= at).sum(axis=0) for member in (positive, ~positive))
    order = np.argsort(-p)
    hits, misses = np.cumsum(positive[order]), np.cumsum(~positive[order])
    sensitivity, wrong, given = hits / hits[-1], misses / misses[-1], p[order]
    roc = [(0, 0, None), *np.column_stack([wrong, sensitivity, given]).tolist()]
    recall = np.column_stack([sensitivity, hits / (hits + misses), given]).tolist()
    return {
        "class": name,
        "place": place,
        "auc": 0.9123,
        "auc_low": 0.88,
        "auc_high": 0.94,
        "average_precision": 0.87,
        "positives": int(positive.sum()),
        "negatives": int((~positive).sum()),
        "steps": steps,
        "tp": tp.tolist(),
        "fp": fp.tolist(),
        "roc": table("false_positive_rate sensitivity threshold", roc),
        "precision_recall": table("recall precision threshold", recall),
    }


def calibration(name, positive, p):
    rows = []
    for i in range(10):
        inside = (p >= i / 10) & (p < (i + 1) / 10)
        if inside.any():
            mean = float(positive[inside].mean())
            rows.append(
                (
                    i / 10,
                    (i + 1) / 10,
                    float(p[inside].mean()),
                    mean,
                    max(0, mean - 0.1),
                    min(1, mean + 0.1),
                    int(inside.sum()),
                )
            )
    fields = "low high predicted observed observed_low observed_high rows"
    return {"class": name, "title": name, "ece": 0.0312, "bins": table(fields, rows)}


def evidence(classes, shown, columns, levels):
    kinds = [numbers(classes, shown), listed(classes, shown, levels), *[stepped(classes, shown)] * (len(columns) - 2)]
    cells = [(f"{a}", f"level {b}", c, 4 * a - 3 * b, 12) for c in shown for a in range(4) for b in range(3)]
    terms = [(term, c, decibans, 8) for c in shown for term, decibans in (("free", 12.0), ("meeting", -7.5))]
    return {
        "sentence": "What columns say, on average.",
        "rows": 400,
        "unit": "decibans",
        "ranking": [
            {"name": name, "value": round(9 / (1 + i), 3), "what": "feature"} for i, name in enumerate(columns)
        ],
        "columns": [{"name": name, **kind} for name, kind in zip(columns, kinds, strict=True)],
        "pairs": [{"names": list(columns[:2]), "cells": table("a b class decibans rows", cells)}],
        "terms": [{"name": "", "terms": table("term class decibans count", terms)}],
    }


def numbers(classes, shown):
    """A straight line of decibans over bells."""
    x = np.linspace(17, 90, 40).tolist()
    said = [(v, c, 0.2 * (v - 45) - 3 * j, None, None, None) for j, c in enumerate(shown) for v in x]
    bells = [(v, c, float(np.exp(-(((v - 40 - 12 * j) / 15) ** 2)))) for j, c in enumerate(classes) for v in x]
    return {
        "chart": "numbers",
        "exact": True,
        "scale": None,
        "evidence": table("value class decibans low high rows", said),
        "density": table("value class density", bells),
        "density_title": "p(x | class) by the model",
    }


def listed(classes, shown, levels):
    """The first level is impossible under the first class that is shown."""
    values = [f"level {i}" for i in range(min(levels, 31))]
    said = [(v, c, 3 * i - 4 - j, None, None, 10) for j, c in enumerate(shown) for i, v in enumerate(values)]
    said[0] = (*said[0][:2], "-inf", *said[0][3:])
    shares = [(v, c, (1 + i + j) / 30) for j, c in enumerate(classes) for i, v in enumerate(values)]
    return {
        "chart": "levels",
        "exact": True,
        "scale": None,
        "evidence": table("value class decibans low high rows", said),
        "density": table("value class density", shares),
        "density_title": "share of the rows of each class",
    }


def stepped(classes, shown):
    steps = list(pairwise(np.linspace(0, 10, 9).tolist()))
    said = [(a, b, c, a - 5, a - 7, a - 4, 40) for c in shown for a, b in steps]
    shares = [(a, b, c, 0.1 + 0.02 * j * a) for j, c in enumerate(classes) for a, b in steps]
    return {
        "chart": "steps",
        "exact": False,
        "scale": None,
        "evidence": table("from to class decibans low high rows", said),
        "density": table("from to class density", shares),
        "density_title": "share of the rows of each class",
    }
