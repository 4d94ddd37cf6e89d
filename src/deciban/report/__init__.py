"""Reports on fitted models: figures as plain values, and an HTML page that shows them."""

from __future__ import annotations

import html as markup
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import deciban
from deciban.data.sampling import seed_of
from deciban.errors import DecibanError, capture_warnings, require_whole
from deciban.evaluation.fitted_model import require_fitted_model
from deciban.persist.storage import FilePath, replacing
from deciban.plots import evidence_charts as charts
from deciban.plots.figures import Figures
from deciban.plots.quality_charts import residuals
from deciban.report import evidence_figures as evidence
from deciban.report import head_figures as head
from deciban.report import linear_figures as linear
from deciban.report import quality_figures as quality
from deciban.report import scoring
from deciban.report.lead import lead
from deciban.report.report_input import read_input, shown_rows
from deciban.table import numbered

FORMAT = 1
HEIGHT = 800  # of the page in a notebook, in pixels
TRAINING = (
    "the rows have exactly the class counts of the training rows: if they are these, pass held_out=False "
    "(--training-rows), which predicts each from all the others"
)

__all__ = ["Report", "report_of"]


@dataclass(frozen=True, repr=False)
class Report:
    """What a model has learned and the quality of its predictions: one HTML page, or plain values.

    `model.report(X, y)` makes one. A notebook shows the page.

    Attributes
    ----------
    figures : dict
        Everything that the page shows, as plain values: "head", "quality", "evidence", "rows" and so on.

    See Also
    --------
    deciban.EvidenceClassifier.report : Makes one.

    Examples
    --------
    >>> import deciban as db
    >>> from deciban.report import report_of
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], ["no", "no", "yes", "yes"]
    >>> report = report_of(db.NaiveBayes().fit(X, y), X, y, held_out=False)
    >>> report.figures["quality"]["how"], report.figures["classes"]
    ('leave-one-out', ['no', 'yes'])
    """

    figures: Figures

    def html(self) -> str:
        """The page, which needs no other file and no network.

        Returns
        -------
        str
            HTML.
        """
        from deciban.report.page import html  # needs altair

        return html(self.figures)

    def json(self) -> str:
        """The figures as JSON.

        Returns
        -------
        str
            All of `figures`.
        """
        return json.dumps(self.figures, ensure_ascii=False, allow_nan=False)

    def save(self, path: FilePath) -> None:
        """Write HTML or JSON, by the suffix .html or .json; an error leaves an existing file unchanged.

        Parameters
        ----------
        path : str or path-like
            Where to.

        Raises
        ------
        DecibanError
            If the suffix is another one.
        """
        suffix = Path(path).suffix.lower()
        if suffix not in (".html", ".htm", ".json"):
            raise DecibanError(f"{str(path)!r}: save a report to a file that ends in .html or .json")
        text = self.json() if suffix == ".json" else self.html()
        with replacing(path) as file:
            file.write(text.encode("utf-8", "replace"))

    # Evaluation has the charts of classification metrics

    def plot_evidence(self) -> Any:
        """Draw the mean absolute evidence of the features, largest first.

        Returns
        -------
        altair.Chart
            Needs `pip install 'deciban[plot]'`.
        """
        figures = self._evidence()
        return charts.ranking(figures["ranking"], figures["unit"])

    def plot_column(self, name: Any, pos_label: Any = None) -> Any:
        """Draw the evidence of the values of a feature, and how common they are in each class.

        Parameters
        ----------
        name : str or int
            The feature.
        pos_label : str, int, float or bool, default None
            The class that evidence is for: by default the second of two, or the first of three or more.

        Returns
        -------
        altair.Chart
            Needs `pip install 'deciban[plot]'`.

        Raises
        ------
        DecibanError
            If there is no chart of this feature.
        """
        figures = self._evidence()
        figure = _by_name(figures["columns"], "name", str(name), "feature")
        return charts.feature(figure, self._class(pos_label), figures["unit"])

    def plot_pair(self, a: Any, b: Any, pos_label: Any = None) -> Any:
        """Draw the evidence of a pair of features for a class, as a heatmap; an EvidenceClassifier has pairs.

        Parameters
        ----------
        a : str or int
            One feature.
        b : str or int
            The other.
        pos_label : str, int, float or bool, default None
            The class that evidence is for: by default the second of two, or the first of three or more.

        Returns
        -------
        altair.Chart
            Needs `pip install 'deciban[plot]'`.

        Raises
        ------
        DecibanError
            If the model has no such pair.
        """
        pairs = [{**pair, "both": " + ".join(sorted(pair["names"]))} for pair in self._evidence()["pairs"]]
        return charts.pair(
            _by_name(pairs, "both", " + ".join(sorted((str(a), str(b)))), "pair"), self._class(pos_label)
        )

    def plot_terms(self, name: Any = None, pos_label: Any = None) -> Any:
        """Draw the terms with most evidence for a class and against it.

        Parameters
        ----------
        name : str, int or None, default None
            The text feature; by default the first.
        pos_label : str, int, float or bool, default None
            The class that evidence is for: by default the second of two, or the first of three or more.

        Returns
        -------
        altair.Chart
            Needs `pip install 'deciban[plot]'`.

        Raises
        ------
        DecibanError
            If there is no such text feature.
        """
        figures = self._evidence()["terms"]
        shown = str(name) if name is not None else figures[0]["name"] if figures else None
        return charts.terms(_by_name(figures, "name", shown, "text feature"), self._class(pos_label))

    def plot_residuals(self) -> Any:
        """Draw observed against predicted values of a regression.

        Returns
        -------
        altair.Chart
            Needs `pip install 'deciban[plot]'`.

        Raises
        ------
        DecibanError
            For a classifier, and for a report with rows=0.
        """
        if "residuals" not in self.figures["quality"]:
            raise DecibanError("a classifier has no residuals: see plot_confusion of an evaluation")
        if self.figures["quality"]["residuals"] is None:
            raise DecibanError("there are no rows to draw: the report was made with rows=0")
        return residuals(self.figures["quality"]["residuals"])

    def _evidence(self) -> Figures:
        figures: Figures | None = self.figures["evidence"]
        if figures is None:
            raise DecibanError("this model has no evidence by feature")
        return figures

    def _class(self, pos_label: Any) -> str | None:
        classes, name = self.figures["classes"], None if pos_label is None else str(pos_label)
        if name is not None and name not in classes:
            raise DecibanError(f"no class {pos_label!r}; there are {classes}")
        if len(classes) == 2 and name == classes[0]:
            raise DecibanError(
                f"evidence is for the second of two classes, {classes[1]!r}: pass that, or leave pos_label out"
            )
        return name

    def __str__(self) -> str:
        quality_figures, evidence_figures = self.figures["quality"], self.figures["evidence"]
        lines = [self.figures["lead"], quality_figures["sentence"]]
        for metric in quality_figures["metrics"]:
            value = metric["value"]
            shown = "–" if value is None else value if isinstance(value, str) else f"{value:.6g}"
            lines.append(f"  {metric['title']:<24} {shown}")
        if evidence_figures and evidence_figures["ranking"]:
            lines.append("most evidence: " + ", ".join(part["name"] for part in evidence_figures["ranking"][:5]))
        lines += [f"note: {note}" for note in self.figures["head"]["notes"]]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        page = markup.escape(self.html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'


def _by_name(figures: list[Figures], key: str, name: str | None, what: str) -> Figures:
    """The figure whose `key` is `name`."""
    matching = [figure for figure in figures if figure[key] == name]
    if not matching:
        listed = ", ".join(repr(figure[key]) for figure in figures[:20]) or "none"
        raise DecibanError(f"there is no chart of a {what} {name!r}: pass one of {listed}")
    return matching[0]


def report_of(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    held_out: bool = True,
    rows: int = 200,
    random_state: int | None = 0,
    **shift: Any,
) -> Report:
    """A report on a fitted model and labelled rows.

    Parameters
    ----------
    model : a fitted estimator of this library
    X, y, sample_weight
        As for `fit`. A stream is read batch by batch; evidence is computed for a sample of it.
    held_out
        False for training rows: each is predicted from all the others, if the model has `leave_one_out`; otherwise
        the report says that it is optimistic.
    rows
        The largest number of rows that the report includes. With 0 it has none, not even as points of a chart.
    random_state
        The seed of the sample of rows.
    shift
        `offset` and `exposure` of a generalized linear model, as for `fit`.
    """
    rows, seed, fitted = require_whole("rows", rows), seed_of(random_state), require_fitted_model(model)
    with capture_warnings() as captured:
        shift_columns = [name for name in shift.values() if isinstance(name, str)]
        data = read_input(fitted, X, y, sample_weight, seed, shift_columns)
        quality_figures = quality.quality(fitted, data, quality.prediction_mode(fitted, held_out=held_out), shift)
        if not rows and "residuals" in quality_figures:
            quality_figures["residuals"] = None
        evidence_figures = evidence.evidence(fitted, data)
        coefficients = linear.linear(fitted, data)
        plane, notes = linear.boundary(fitted, data, seed, rows)
        shown = shown_rows(fitted, data, rows, seed)
    if captured.impossible:
        notes.append(f"{captured.impossible} times a row was impossible under every class, and got the class prior")
    classes, class_counts, doubtful = [], None, False
    if fitted.task == "classification":
        counts = dict(zip(quality_figures["classes"], map(sum, quality_figures["confusion"]), strict=True))
        classes = numbered(np.asarray(fitted.classes_).tolist())
        class_counts = [counts.get(name, 0) for name in classes]
        doubtful = held_out and quality.seems_training(fitted, counts)
        notes += [TRAINING] if doubtful else []
    about = head.head(fitted, data, evidence_figures, class_counts, [*notes, *captured.messages])
    text = about["width"] == 1 and bool(evidence_figures and evidence_figures["terms"])
    return Report(
        {
            "format": FORMAT,
            "version": deciban.__version__,
            "title": f"{about['model']} of {about['label']}" if about["label"] else about["model"],
            "lead": lead(about, quality_figures, data.rows, text=text, weighted=data.weighted, doubtful=doubtful),
            "kind": "numbers" if fitted.task == "regression" else "classes",
            "classes": classes,
            "head": about,
            "quality": quality_figures,
            "evidence": evidence_figures,
            "linear": coefficients,
            "boundary": plane,
            "rows": shown,
            "scoring": scoring.scoring(fitted),
        }
    )
