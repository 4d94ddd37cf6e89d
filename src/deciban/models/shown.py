"""Models as people see them: in a notebook, and as a report."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from deciban.errors import DecibanError

if TYPE_CHECKING:
    from deciban.report import Report


class Shown:
    """A model that can be looked at."""

    def _html_repr(self) -> str:
        """What a notebook shows: the settings, and once there is something to tell, the summary."""
        try:
            told = self.summary()._repr_html_()  # type: ignore[attr-defined]
        except (AttributeError, NotFittedError):  # of a model without a summary, or not fitted: scikit-learn's box
            box: str = estimator_html_repr(self)
            return box
        except DecibanError as reason:  # all rows were forgotten
            told = f"<p>{html.escape(str(reason))}</p>"
        return f"<p><code>{html.escape(repr(self))}</code></p>\n{told}"

    def report(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        learned: bool = False,
        rows: int = 200,
        random_state: int | None = 0,
    ) -> Report:
        """The model in one page: what it is, how good it is on these rows, what its columns say, and any prediction.

        - `X`, `y`: rows as for `fit`, with their labels: an array, or the name of a column of X.
        - `learned`: whether these rows are those that the model learned. Then each is judged by evidence of all the
          others (`leave_one_out`), where the model can do so; else they are taken to be new.
        - `rows`: so many of the rows, chosen by `random_state`, are kept in the page for "one prediction"; 0 for none.

        `report.save("report.html")` writes one file that needs no network; `save("report.json")` all its figures.
        Needs `pip install 'deciban[plot]'`.

        >>> import deciban as db
        >>> X, y = [[0.5], [1.0], [1.5], [2.0], [2.5], [3.0]], ["no", "no", "yes", "no", "yes", "yes"]
        >>> report = db.NaiveBayes().fit(X, y).report(X, y, learned=True)
        >>> report.figures["quality"]["how"], report.figures["quality"]["confusion"]
        ('leave-one-out', [[2.0, 1.0], [1.0, 2.0]])
        """
        from deciban.report import report_of

        check_is_fitted(self)
        return report_of(self, X, y, sample_weight=sample_weight, learned=learned, rows=rows, random_state=random_state)
