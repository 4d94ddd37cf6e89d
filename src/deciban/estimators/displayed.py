"""How models are displayed: in a notebook, and as a report."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from deciban.data.input_types import Rows, SampleWeight, Target
from deciban.errors import DecibanError

if TYPE_CHECKING:
    from deciban.report import Report


class Displayed:
    """A model with a notebook representation and a report."""

    def _html_repr(self) -> str:
        """The representation in a notebook: the settings and, after fit, the summary."""
        try:
            body = self.summary()._repr_html_()  # type: ignore[attr-defined]
        except (AttributeError, NotFittedError):  # no summary, or not fitted: scikit-learn's box
            box: str = estimator_html_repr(self)
            return box
        except DecibanError as reason:  # all rows were forgotten
            body = f"<p>{html.escape(str(reason))}</p>"
        return f"<p><code>{html.escape(repr(self))}</code></p>\n{body}"

    def report(
        self,
        X: Rows,
        y: Target | None = None,
        *,
        sample_weight: SampleWeight | None = None,
        held_out: bool = True,
        rows: int = 200,
        random_state: int | None = 0,
    ) -> Report:
        """Report in one HTML page: the model, how well it predicts these rows, its features, and single predictions.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            The rows: (n, d) numbers or objects; a table of pandas, polars, pyarrow or duckdb; sparse counts; a list of
            texts; or a stream such as `deciban.scan(...)`, which is read in batches.
        y : array-like of shape (n,), or str, default None
            The class of each row, or the name of the column of X that holds it. Only distributed rows, which have their
            classes with them, do without.
        sample_weight : array-like of shape (n,), str or None, default None
            The weight of each row, or the name of a column of X. A weight of 2 counts the row twice, 0 leaves it out.
        held_out : bool, default True
            False for training rows: each is predicted without itself (`leave_one_out`), if the model can.
        rows : int, default 200
            How many of the rows are kept in the page for "one prediction"; 0 for none.
        random_state : int or None, default 0
            The seed that chooses these rows.

        Returns
        -------
        Report
            `report.save("report.html")` writes one file that needs no network, `save("report.json")` all its figures.
            Needs `pip install 'deciban[plot]'`.

        See Also
        --------
        deciban.report.Report : What is returned.

        Examples
        --------
        >>> import deciban as db
        >>> X, y = [[0.5], [1.0], [1.5], [2.0], [2.5], [3.0]], ["no", "no", "yes", "no", "yes", "yes"]
        >>> report = db.NaiveBayes().fit(X, y).report(X, y, held_out=False)
        >>> report.figures["quality"]["how"], report.figures["quality"]["confusion"]
        ('leave-one-out', [[2.0, 1.0], [1.0, 2.0]])
        """
        from deciban.report import report_of

        check_is_fitted(self)
        return report_of(
            self, X, y, sample_weight=sample_weight, held_out=held_out, rows=rows, random_state=random_state
        )
