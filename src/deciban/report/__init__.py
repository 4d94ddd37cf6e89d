"""Reports: figures first, a page second."""

from __future__ import annotations

import html as markup
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import deciban
from deciban.charts import evidence as charts
from deciban.charts.figures import Figures
from deciban.charts.quality import residuals
from deciban.errors import DecibanError, hearing, require_whole
from deciban.report import evidence, head, linear, quality, scoring
from deciban.report.rows import gives_numbers, read, shown
from deciban.sources.sampling import seed_of
from deciban.storage import FilePath, replacing
from deciban.table import numbered

FORMAT = 1
HEIGHT = 800  # pixels, in a notebook
LEARNED = (
    "the rows have exactly the class counts that the model learned: if they are the rows that were learned, pass "
    "learned=True (--learned), which judges each by all the others"
)

__all__ = ["Report", "report_of"]


@dataclass(frozen=True, repr=False)
class Report:
    """What a model learned and how good it is, as plain figures; `html()` is one page that needs nothing else.

    >>> import deciban as db
    >>> from deciban.report import report_of
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], ["no", "no", "yes", "yes"]
    >>> report = report_of(db.NaiveBayes().fit(X, y), X, y, learned=True)
    >>> report.figures["quality"]["how"], report.figures["classes"]
    ('leave-one-out', ['no', 'yes'])
    """

    figures: Figures

    def html(self) -> str:
        """One page, which holds all figures."""
        from deciban.report.page import html  # which needs altair

        return html(self.figures)

    def json(self) -> str:
        """The figures."""
        return json.dumps(self.figures, ensure_ascii=False, allow_nan=False)

    def save(self, path: FilePath) -> None:
        """Writes .html or .json, as the name ends; the file is there as a whole, or as it was."""
        suffix = Path(path).suffix.lower()
        if suffix not in (".html", ".htm", ".json"):
            raise DecibanError(f"{str(path)!r}: a report is written to a file that ends in .html or .json")
        text = self.json() if suffix == ".json" else self.html()
        with replacing(path) as file:
            file.write(text.encode("utf-8", "replace"))

    # The charts of its evidence, one by one; those of quality are methods of an Evaluation

    def plot_evidence(self) -> Any:
        """Mean size of what columns, pairs and terms say, the most telling first, as an altair chart."""
        told = self._evidence()
        return charts.ranking(told["ranking"], told["unit"])

    def plot_column(self, name: Any, pos_label: Any = None) -> Any:
        """What each value of a column says for a class, and how common it is in each class, as an altair chart.

        `pos_label` is the class: by default the second of two, or the first of more.
        """
        told = self._evidence()
        return charts.column(_named(told["columns"], "name", str(name), "column"), self._class(pos_label), told["unit"])

    def plot_pair(self, a: Any, b: Any, pos_label: Any = None) -> Any:
        """What two columns say together for a class, as a map: a pair that an EvidenceClassifier has a table of."""
        pairs = [{**pair, "both": " + ".join(sorted(pair["names"]))} for pair in self._evidence()["pairs"]]
        return charts.pair(_named(pairs, "both", " + ".join(sorted((str(a), str(b)))), "pair"), self._class(pos_label))

    def plot_terms(self, name: Any = None, pos_label: Any = None) -> Any:
        """The terms of a column of documents that say most for a class and against it; by default of the first such."""
        found = self._evidence()["terms"]
        if name is None and found:
            name = found[0]["name"]
        wanted = None if name is None else str(name)
        return charts.terms(_named(found, "name", wanted, "column of documents"), self._class(pos_label))

    def plot_residuals(self) -> Any:
        """Observed against predicted, of a model of numbers, as an altair chart."""
        if "residuals" not in self.figures["quality"]:
            raise DecibanError("classes have no residuals: see plot_confusion of an evaluation")
        if self.figures["quality"]["residuals"] is None:
            raise DecibanError("there is no row to draw: the report was made with rows=0")
        return residuals(self.figures["quality"]["residuals"])

    def _evidence(self) -> Figures:
        found: Figures | None = self.figures["evidence"]
        if found is None:
            raise DecibanError("this model tells no evidence by columns")
        return found

    def _class(self, pos_label: Any) -> str | None:
        """By its name in the report."""
        classes, name = self.figures["classes"], None if pos_label is None else str(pos_label)
        if name is not None and name not in classes:
            raise DecibanError(f"no class {pos_label!r}; there are {classes}")
        if len(classes) == 2 and name == classes[0]:
            raise DecibanError(
                f"of two classes evidence is told for the second, {classes[1]!r}, and so against the first"
            )
        return name

    def __str__(self) -> str:
        judged, told = self.figures["quality"], self.figures["evidence"]
        lines = [self.figures["title"], judged["sentence"]]
        lines += [f"  {found['title']:<24} {_number(found['value'])}" for found in judged["metrics"]]
        if told and told["ranking"]:
            lines.append("most telling: " + ", ".join(part["name"] for part in told["ranking"][:5]))
        lines += [f"note: {note}" for note in self.figures["head"]["notes"]]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        page = markup.escape(self.html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'


def _named(figures: list[Figures], key: str, name: str | None, what: str) -> Figures:
    found = [figure for figure in figures if figure[key] == name]
    if not found:
        there = ", ".join(repr(figure[key]) for figure in figures[:20]) or "none"
        raise DecibanError(f"there is no chart of a {what} {name!r}; there are {there}")
    return found[0]


def _number(value: Any) -> str:
    return "–" if value is None else value if isinstance(value, str) else f"{value:.6g}"


def report_of(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    learned: bool = False,
    rows: int = 200,
    random_state: int | None = 0,
    **shift: Any,
) -> Report:
    """A report of a fitted model on rows with known labels.

    - `X`, `y`, `sample_weight`: as for `fit`. A stream is read batch by batch; what is explained is a sample of it.
    - `learned`: the rows are those that the model learned from. Then each is judged by all the others, where the model
      can do that; otherwise the report says that new rows would do worse.
    - `rows`: how many rows, at most, are shown as they are. With 0 none is in the report, nor drawn as a point.
    - `random_state`: for the choice of rows.
    - `shift`: `offset` and `exposure` of a model of numbers, as for `fit`.
    """
    rows, seed = require_whole("rows", rows), seed_of(random_state)
    with hearing() as heard:
        of = read(model, X, y, sample_weight, seed, [name for name in shift.values() if isinstance(name, str)])
        judged = quality.quality(model, of, learned=learned, shift=shift, rows=rows)
        told = evidence.evidence(model, of)
        coefficients = linear.linear(model, of)
        plane, notes = linear.boundary(model, of, seed, rows)
        few = shown(model, of, rows, seed)
        notes += _notes(model, judged, learned=learned)
    if heard.impossible:
        notes.append(f"{heard.impossible} times a row was impossible under every class, and got the class prior")
    numbers = gives_numbers(model)
    counts = None if numbers else _by_class(judged)
    classes = [] if numbers else numbered(np.asarray(model.classes_).tolist())
    by_class = None if counts is None else [counts.get(name, 0) for name in classes]
    top = head.head(model, of, told, by_class, [*notes, *heard.messages])
    found = {
        "format": FORMAT,
        "version": deciban.__version__,
        "title": f"{top['model']} of {top['label']}" if top["label"] else top["model"],
        "kind": "numbers" if numbers else "classes",
        "classes": classes,
        "head": top,
        "quality": judged,
        "evidence": told,
        "linear": coefficients,
        "boundary": plane,
        "rows": few,
        "scoring": scoring.scoring(model),
    }
    return Report(found)


def _by_class(judged: Figures) -> Figures:
    """Σ w of the rows of each class."""
    sums = [sum(row) for row in judged["confusion"]]
    return dict(zip(judged["classes"], sums, strict=True))


def _notes(model: Any, judged: Figures, *, learned: bool) -> list[str]:
    if gives_numbers(model):
        return []
    return [LEARNED] if not learned and quality.seems_learned(model, _by_class(judged)) else []
