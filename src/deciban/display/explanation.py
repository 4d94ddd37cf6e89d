"""Explanation: a prediction as a list of decibans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from deciban.contributions import DECIBANS, By, Contributions, Line
from deciban.data.arrays import MatrixFrame
from deciban.data.batch import Frame
from deciban.data.schema import Schema
from deciban.errors import DecibanError, did_you_mean, require_scores
from deciban.lazy import lazy
from deciban.plots.colours import AGAINST, FOR
from deciban.table import Table, html_caption
from deciban.types import FloatArray, Level, Levels

html = lazy("html")

MOST_ROWS, MOST_PARTS = 5, 15  # printed at most; the arrays have all
MOST_CHARACTERS = 30  # of a printed value
LEAST = 0.005  # decibans: fewer are written as 0
WHOLE = 1e15  # whole numbers below it are printed with all digits


@dataclass(frozen=True, repr=False)
class Explanation:
    """Predictions as sums of decibans: what each feature adds to the evidence for a class.

    10·log₁₀ [p(c|x) / p(c'|x)] = prior + Σ_features 10·log₁₀ [p(x_j|c) / p(x_j|c')]

    Ten decibans are odds of ten to one; one is about the least difference that a person notices. Each row is explained
    for one class against another: by default the predicted class against the runner-up. Lines are the prior and the
    features, pairs of features or terms. `model.explain(X)` returns one; printed, it shows the first rows.

    Attributes
    ----------
    classes : tuple
        The classes, in the order of `model.classes_`.
    names : tuple of str
        The name of each line: "prior", then the features, pairs of features, or terms.
    features : tuple of tuple
        The features of each line: one, or two for a pair; none for the prior and the intercept.
    values : array of shape (n, lines)
        The value of each line's features in each row; None if missing, a tuple for a pair, the count of a term.
    joint : array of shape (n, K)
        log p(c, x): the sum of all lines for each class, in nats.
    nats : array of shape (n, lines, K)
        What each line adds to the score of each class, in nats: log p(c), then log p(x_j|c).
    parts : tuple of Line
        The lines: the prior, then the features; terms of documents come last.
    schema : Schema or None
        The features of the model.
    rows : Frame or None
        The rows that are explained, as they were read.

    See Also
    --------
    deciban.EvidenceClassifier.explain : Makes one.

    Examples
    --------
    >>> import deciban as db
    >>> X = [["yes", 125], ["no", 100], ["no", 70], ["no", 95], ["no", 85], ["no", 90]]
    >>> model = db.NaiveBayes().fit(X, ["No", "No", "No", "Yes", "Yes", "Yes"])
    >>> explanation = model.explain([["no", 88]])
    >>> print(explanation)
    row 0: Yes against No, in decibans
      prior              +0.00
      column 1 = 88      +7.35  ++++++++++++++++++++
      column 0 = no      +1.25  +++
      log-odds           +8.60  odds 7.2 to 1
    >>> explanation.decibans().round(2), explanation.log_odds().round(2)
    (array([[0.  , 1.25, 7.35]]), array([8.6]))
    """

    classes: Levels
    parts: tuple[Line, ...]  # the prior, then the features; terms of documents come last
    nats: FloatArray  # (n, parts, K) log p(c), then log p(x_j | c)
    schema: Schema | None = None
    rows: Frame | None = None  # the rows that are explained

    @classmethod
    def of(cls, classes: Levels, contributions: Contributions, schema: Schema, rows: Frame) -> Explanation:
        """From the contributions to the scores of rows.

        Parameters
        ----------
        classes : tuple
            The classes.
        contributions : Contributions
            What each line adds to the scores.
        schema : Schema
            The features of the model.
        rows : Frame
            The rows that are explained.

        Returns
        -------
        Explanation
            As `explain` returns it.
        """
        nats = contributions.nats
        if nats.size and not nats.max() < np.inf:  # a maximum of all is much faster than one for each row
            require_scores(nats.max(axis=1))
        if isinstance(rows, MatrixFrame):  # the caller may change the array before its values are shown
            rows = MatrixFrame(rows.x.copy())
        return cls(classes, contributions.lines, nats, schema, rows)

    def __len__(self) -> int:
        return len(self.nats)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each line: "prior", then the features, pairs of features, or terms."""
        return tuple(line.name for line in self.parts)

    @property
    def features(self) -> tuple[Levels, ...]:
        """The features of each line: one, or two for a pair; none for the prior and the intercept."""
        names = () if self.schema is None else self.schema.names
        return tuple(tuple(names[j] for j in line.columns) for line in self.parts)

    @cached_property
    def values(self) -> NDArray[np.object_]:
        """(n, parts) the value of each line's features in each row, as Python objects.

        None for a missing value, and for a line without features; a tuple for a pair; the count of a term.
        """
        values = np.full(self.nats.shape[:2], None, dtype=object)
        for i, line in enumerate(self.parts):
            if line.times is not None:
                values[:, i] = line.times.tolist()
            elif line.columns and not line.last and self.rows is not None:
                cells = [self.rows.cells(self._positions[j]) for j in line.columns]
                of_line = cells[0] if len(cells) == 1 else list(zip(*cells, strict=True))
                values[:, i] = np.fromiter(of_line, dtype=object, count=len(self))
        return values

    @cached_property
    def _positions(self) -> list[int]:
        """The position of each feature among the columns of the rows."""
        return [] if self.schema is None or self.rows is None else self.schema.positions(self.rows)

    @property
    def joint(self) -> FloatArray:
        """(n, K) log p(c, x)."""
        total: FloatArray = self.nats.sum(axis=1)
        return total

    def sides(self, pos_label: Level = None, against: Level = None) -> tuple[FloatArray, FloatArray]:
        """Which class is explained in each row, and which it is compared with.

        Parameters
        ----------
        pos_label : str, int, float or bool, default None
            The class that is explained. By default the predicted class of each row.
        against : str, int, float or bool, default None
            The class that it is compared with. By default the runner-up.

        Returns
        -------
        chosen : array of shape (n,)
            The position of the class that is explained.
        other : array of shape (n,)
            The position of the class that it is compared with.

        Raises
        ------
        DecibanError
            If there is no such class.
        """
        joint = self.joint
        chosen = joint.argmax(axis=1) if pos_label is None else np.full(len(joint), self._position(pos_label))
        if against is not None:
            return chosen, np.full(len(joint), self._position(against))
        joint[np.arange(len(joint)), chosen] = -np.inf
        runner_up = joint.argmax(axis=1)
        same = runner_up == chosen  # every other class is impossible
        return chosen, np.where(same, (chosen + 1) % len(self.classes), runner_up)

    def decibans(self, pos_label: Level = None, against: Level = None) -> FloatArray:
        """The evidence of each line for `pos_label` against `against`; a row sums to its log-odds.

        Parameters
        ----------
        pos_label : str, int, float or bool, default None
            The class that is explained. By default the predicted class of each row.
        against : str, int, float or bool, default None
            The class that it is compared with. By default the runner-up.

        Returns
        -------
        array of shape (n, lines)
            Positive for `pos_label`.
        """
        chosen, other = self.sides(pos_label, against)
        rows = np.arange(len(self.nats))
        with np.errstate(invalid="ignore"):
            difference = self.nats[rows, :, chosen] - self.nats[rows, :, other]
        # impossible under both: no evidence between them
        both = np.isneginf(self.nats[rows, :, chosen]) & np.isneginf(self.nats[rows, :, other])
        result: FloatArray = np.where(both, 0.0, difference) * DECIBANS
        return result

    def log_odds(self, pos_label: Level = None, against: Level = None) -> FloatArray:
        """The sum of the decibans of each row; only the prior for a row that is impossible under both classes.

        Parameters
        ----------
        pos_label : str, int, float or bool, default None
            The class that is explained. By default the predicted class of each row.
        against : str, int, float or bool, default None
            The class that it is compared with. By default the runner-up.

        Returns
        -------
        array of shape (n,)
            10 is odds of ten to one.
        """
        chosen, other = self.sides(pos_label, against)
        rows, joint = np.arange(len(self.nats)), self.joint
        impossible = np.isneginf(joint[rows, chosen]) & np.isneginf(joint[rows, other])
        values = self.decibans(pos_label, against)
        values[impossible, 1:] = 0.0
        total: FloatArray = values.sum(axis=1)
        return total

    def lines(
        self, row: int = 0, pos_label: Level = None, against: Level = None, most: int = MOST_PARTS
    ) -> list[tuple[str, float]]:
        """One row as labels and decibans: the prior, the strongest parts, the sum of the others, and the log-odds.

        Terms that the row does not have are left out; parts of no single feature or term come last.

        Parameters
        ----------
        row : int, default 0
            The number of the row, from 0.
        pos_label : str, int, float or bool, default None
            The class that is explained. By default the predicted class of each row.
        against : str, int, float or bool, default None
            The class that it is compared with. By default the runner-up.
        most : int, default 15
            How many parts are listed by themselves.

        Returns
        -------
        list of tuple
            Labels such as "age = 39", and decibans.

        Raises
        ------
        DecibanError
            If there is no such row.
        """
        if not -len(self) <= row < len(self):
            raise DecibanError(f"there is no row {row}; there are {len(self)}, counted from 0")
        decibans = self.decibans(pos_label, against)[row]
        listed = list(self.listed(row))[1:]
        last = [i for i in listed if self.parts[i].last]
        ranked = sorted((i for i in listed if not self.parts[i].last), key=lambda i: -abs(decibans[i]))
        shown, rest = ranked[:most], ranked[most:]
        result = [(self.label(i, row), float(decibans[i])) for i in (0, *shown)]
        if rest:
            result.append((f"{len(rest)} other{'s' if len(rest) > 1 else ''}", _sum(decibans[rest])))
        result += [(self.label(i, row), float(decibans[i])) for i in last]
        return [*result, ("log-odds", float(self.log_odds(pos_label, against)[row]))]

    def listed(self, row: int = 0) -> Iterator[int]:
        """The lines of a row: all, except terms that it does not have.

        Parameters
        ----------
        row : int, default 0
            The number of the row, from 0.

        Returns
        -------
        iterator of int
            Positions in `names`.
        """
        return (i for i, line in enumerate(self.parts) if line.times is None or line.times[row])

    def label(self, part: int, row: int = 0) -> str:
        """A line's name with the row's value: "age = 39", "age is missing".

        Parameters
        ----------
        part : int
            The position of the line in `names`.
        row : int, default 0
            The number of the row, from 0.

        Returns
        -------
        str
            As it is printed.
        """
        line = self.parts[part]
        if line.times is not None:
            return f"{line.name} (×{line.times[row]})" if line.times[row] > 1 else line.name
        if line.last or self.rows is None or not 0 < len(line.columns) < 3:
            return line.name
        positional = self.schema is not None and self.schema.positional
        names = [line.name] if len(line.columns) == 1 else list(map(str, self.features[part]))
        cells = [self.rows.cell(row, self._positions[j]) for j in line.columns]
        shown = ["is missing" if cell is None or cell != cell else f"= {short(cell)}" for cell in cells]
        column = "column " if positional else ""
        return ", ".join(f"{column}{name} {value}" for name, value in zip(names, shown, strict=True))

    def to_frame(self, pos_label: Level = None, against: Level = None) -> Any:
        """All rows as one tidy table: row, feature, value, decibans, class, against.

        The decibans of a row sum to its log-odds. Values of several types become text.

        Parameters
        ----------
        pos_label : str, int, float or bool, default None
            The class that is explained. By default the predicted class of each row.
        against : str, int, float or bool, default None
            The class that it is compared with. By default the runner-up.

        Returns
        -------
        pyarrow.Table
            `.to_pandas()` makes it a pandas DataFrame; polars, duckdb and altair read it as it is.
        """
        chosen, other = self.sides(pos_label, against)
        decibans, values = self.decibans(pos_label, against), self.values
        header = ("row", "feature", "value", "decibans", "class", "against")
        rows = [
            (row, self.parts[i].name, _plain(values[row, i]), float(decibans[row, i]), *sides)
            for row, sides in enumerate(zip(map(self._class, chosen), map(self._class, other), strict=True))
            for i in self.listed(row)
        ]
        return Table("explanation", header, tuple(rows)).to_frame()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow PyCapsule interface."""
        return self.to_frame().__arrow_c_stream__(requested_schema)

    def text(self, row: int = 0, pos_label: Level = None, against: Level = None) -> str:
        """One row as text: a line with a bar for each part, the strongest evidence first.

        Parameters
        ----------
        row : int, default 0
            The number of the row, from 0.
        pos_label : str, int, float or bool, default None
            The class that is explained. By default the predicted class of each row.
        against : str, int, float or bool, default None
            The class that it is compared with. By default the runner-up.

        Returns
        -------
        str
            What printing shows.
        """
        if len(self.classes) == 1:
            return f"row {row}: {self.classes[0]}, the only class"
        lines = self.lines(row, pos_label, against)
        scale = _scale(lines)
        name_width = max(len(name) for name, _ in lines)
        numbers = [f"{value:+.2f}" for _, value in lines]
        width = max(9, *map(len, numbers))
        ends = ["+-"[value < 0] * round(20 * _share(value, scale)) for _, value in lines[:-1]]
        body = [
            f"  {name:<{name_width}}  {x:>{width}}  {end}".rstrip()
            for (name, _), x, end in zip(lines, numbers, [*ends, odds(lines[-1][1])], strict=True)
        ]
        return "\n".join([self._title(row, pos_label, against), *body])

    def plot(self, row: int = 0, pos_label: Level = None, against: Level = None) -> Any:
        """Draw one row as a waterfall, from the prior to the log-odds.

        Parameters
        ----------
        row : int, default 0
            The number of the row, from 0.
        pos_label : str, int, float or bool, default None
            The class that is explained. By default the predicted class of each row.
        against : str, int, float or bool, default None
            The class that it is compared with. By default the runner-up.

        Returns
        -------
        altair.Chart
            Needs `pip install 'deciban[plot]'`.
        """
        from deciban.plots.evidence_charts import waterfall

        if len(self.classes) == 1:
            raise DecibanError(f"there is nothing to draw: {self.classes[0]!r} is the only class")
        lines = self.lines(row, pos_label, against)
        return waterfall(lines, f"{self._title(row, pos_label, against)}: {odds(lines[-1][1])}")

    def _title(self, row: int, pos_label: Level, against: Level) -> str:
        chosen, other = (self._class(side[row]) for side in self.sides(pos_label, against))
        return f"row {row}: {chosen} against {other}, in decibans"

    def __str__(self) -> str:
        return "\n\n".join([*(self.text(i) for i in range(min(len(self), MOST_ROWS))), *self._more_rows()])

    def _more_rows(self) -> list[str]:
        more = len(self) - MOST_ROWS
        return [f"… and {more} more rows: text(row) shows one"] if more > 0 else []

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A table for each printed row, with a bar for each part: to the right for the class."""
        if len(self.classes) == 1:
            return f"<pre>{html.escape(str(self))}</pre>"
        tables = (self._html_table(i) for i in range(min(len(self), MOST_ROWS)))
        return "\n".join([*tables, *(f"<p>{text}</p>" for text in self._more_rows())])

    def _html_table(self, row: int) -> str:
        lines = self.lines(row)
        scale = _scale(lines)
        ends = [*(_html_bar(value, scale) for _, value in lines[:-1]), html.escape(odds(lines[-1][1]))]
        numbers = ["0.00" if abs(value) < LEAST else f"{value:+.2f}" for _, value in lines]
        body = [
            f'<tr><th style="text-align:left">{html.escape(name)}</th><td style="text-align:right">{number}</td>'
            f'<td style="text-align:left;min-width:14em">{end}</td></tr>'
            for (name, _), number, end in zip(lines, numbers, ends, strict=True)
        ]
        caption = html_caption(self._title(row, None, None))
        opened = '<tbody style="font-variant-numeric:tabular-nums">'
        return "\n".join(["<table>", caption, opened, *body, "</tbody>", "</table>"])

    def _class(self, position: Any) -> Level:
        return self.classes[int(position)]

    def _position(self, label: Level) -> int:
        if label not in self.classes:
            near = did_you_mean(label, among=self.classes)
            raise DecibanError(f"no class {label!r}{near}; there are {list(self.classes)}")
        return self.classes.index(label)


def require_by(by: Any) -> None:
    if by not in get_args(By):
        raise DecibanError(f"by must be 'column' or 'pair', not {by!r}")


def short(value: Any) -> str:
    """A value as it is printed: numbers with six digits at most, text on one line and cut.

    >>> short(39.0), short(1234567.0), short(0.1234567), short("a story\\nof more than thirty characters"), short("")
    ('39', '1234567', '0.123457', 'a story of more than thirty c…', "''")
    """
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < WHOLE else f"{value:.6g}"
    if not isinstance(value, str):
        return str(value)
    text = " ".join(value[: 10 * MOST_CHARACTERS].split())
    return (text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…") or repr(value)


def _plain(value: Any) -> Any:
    """A cell of a table: the values of a pair as text."""
    return ", ".join("" if part is None else str(part) for part in value) if isinstance(value, tuple) else value


def _sum(values: FloatArray) -> float:
    """The sum; 0 if the values make both classes impossible, which is no evidence between them."""
    infinite = values[np.isinf(values)]
    return 0.0 if len(set(infinite.tolist())) == 2 else float(values.sum())


def odds(decibans: float) -> str:
    """Decibans as odds in words.

    >>> odds(10.0), odds(-3.0103), odds(float("inf"))
    ('odds 10.0 to 1', 'odds 1 to 2.0', 'certain')
    """
    if np.isinf(decibans):
        return "certain" if decibans > 0 else "impossible"
    bans = abs(decibans) / 10.0
    form = "10^{1:.1f}" if bans > 300 else "{0:,.1f}" if bans < 6 else "{0:.1e}"
    shown = form.format(10.0 ** min(bans, 300.0), bans)
    return f"odds {shown} to 1" if decibans >= 0 else f"odds 1 to {shown}"


def _scale(lines: list[tuple[str, float]]) -> float:
    """The largest value of all lines except the last, which is their sum: that of the longest bar."""
    return max([1.0, *(abs(value) for _, value in lines[:-1] if np.isfinite(value))])


def _share(value: float, scale: float) -> float:
    return 1.0 if np.isinf(value) else abs(value) / scale


def _html_bar(value: float, scale: float) -> str:
    """A bar from the middle, to the right if positive; none for a number that rounds to 0."""
    if abs(value) < LEAST:
        return ""
    width = 50.0 * _share(value, scale)
    colour, left = (FOR, 50.0) if value >= 0 else (AGAINST, 50.0 - width)
    style = f"height:0.8em;width:{width:.1f}%;margin-left:{left:.1f}%;background:{colour}"
    return f'<div style="{style}"></div>'
