"""Explanation: a prediction as a list of decibans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.late import late
from deciban.table import html_caption
from deciban.types import FloatArray, Level, Levels

html = late("html")

DECIBANS = 10.0 / np.log(10.0)  # in one nat
MOST_ROWS, MOST_PARTS = 5, 15  # that are printed; the arrays hold all
FOR, AGAINST = "#0072B2", "#D55E00"  # of bars: told apart by colour-blind readers too


@dataclass(frozen=True, repr=False)
class Explanation:
    """10·log₁₀ [p(c|x) / p(c'|x)] = prior + Σ_columns 10·log₁₀ [p(x_j|c) / p(x_j|c')], in decibans.

    Ten decibans are odds of ten to one; one is about the least that a person notices. Each row is explained for one
    class against another: by default the one predicted against the next likely.
    """

    classes: Levels
    names: tuple[str, ...]  # "prior", then the columns
    nats: FloatArray  # (n, parts, K) log p(c), then log p(x_j | c)

    def __len__(self) -> int:
        return len(self.nats)

    @property
    def joint(self) -> FloatArray:
        """(n, K) log p(c, x)."""
        total: FloatArray = self.nats.sum(axis=1)
        return total

    def sides(self, target: Level = None, against: Level = None) -> tuple[FloatArray, FloatArray]:
        """(n) the class explained, and the one it is weighed against, as places in classes."""
        joint = self.joint
        rows = np.arange(len(joint))
        chosen = joint.argmax(axis=1) if target is None else np.full(len(joint), self._place(target))
        if against is not None:
            return chosen, np.full(len(joint), self._place(against))
        others = joint.copy()
        others[rows, chosen] = -np.inf
        best = others.argmax(axis=1)
        same = best == chosen  # every other class is impossible
        return chosen, np.where(same, (chosen + 1) % len(self.classes), best)

    def decibans(self, target: Level = None, against: Level = None) -> FloatArray:
        """(n, parts) evidence for `target` against `against`; a row sums to its log-odds."""
        chosen, other = self.sides(target, against)
        rows = np.arange(len(self.nats))
        with np.errstate(invalid="ignore"):
            difference = self.nats[rows, :, chosen] - self.nats[rows, :, other]
        # impossible under both: no evidence between them
        both = np.isneginf(self.nats[rows, :, chosen]) & np.isneginf(self.nats[rows, :, other])
        result: FloatArray = np.where(both, 0.0, difference) * DECIBANS
        return result

    def log_odds(self, target: Level = None, against: Level = None) -> FloatArray:
        """(n) the sum, in decibans; of a row impossible under both classes, the prior alone."""
        chosen, other = self.sides(target, against)
        rows, joint = np.arange(len(self.nats)), self.joint
        impossible = np.isneginf(joint[rows, chosen]) & np.isneginf(joint[rows, other])
        values = self.decibans(target, against)
        values[impossible, 1:] = 0.0
        total: FloatArray = values.sum(axis=1)
        return total

    def lines(
        self, row: int = 0, target: Level = None, against: Level = None, most: int = MOST_PARTS
    ) -> list[tuple[str, float]]:
        """One row as names and decibans: the prior, the strongest parts, what all others add, and the log-odds."""
        if not -len(self) <= row < len(self):
            raise DecibanError(f"there is no row {row}; there are {len(self)}, counted from 0")
        values = self.decibans(target, against)[row]
        order = [0, *(1 + np.argsort(-np.abs(values[1:]), kind="stable"))]
        shown, rest = order[: 1 + most], order[1 + most :]
        found = [(self.names[i], float(values[i])) for i in shown]
        if rest:
            found.append((f"{len(rest)} other{'s' if len(rest) > 1 else ''}", _sum(values[rest])))
        return [*found, ("log-odds", float(self.log_odds(target, against)[row]))]

    def text(self, row: int = 0, target: Level = None, against: Level = None) -> str:
        """One row as lines: the strongest evidence first, a bar for each."""
        if len(self.classes) == 1:
            return f"row {row}: {self.classes[0]}, the only class there is"
        lines = self.lines(row, target, against)
        scale = _scale(lines)
        wide = max(len(name) for name, _ in lines)
        numbers = [f"{value:+.2f}" for _, value in lines]
        broad = max(9, *map(len, numbers))
        ends = ["+-"[value < 0] * round(20 * _share(value, scale)) for _, value in lines[:-1]]
        body = [
            f"  {name:<{wide}}  {x:>{broad}}  {end}".rstrip()
            for (name, _), x, end in zip(lines, numbers, [*ends, odds(lines[-1][1])], strict=True)
        ]
        return "\n".join([self._title(row, target, against), *body])

    def plot(self, row: int = 0, target: Level = None, against: Level = None) -> Any:
        """One row as a waterfall, from the prior to the log-odds: an altair chart.

        Needs `pip install 'deciban[plot]'`.
        """
        from deciban.charts.evidence import waterfall

        if len(self.classes) == 1:
            raise DecibanError(f"there is nothing to draw: {self.classes[0]!r} is the only class there is")
        lines = self.lines(row, target, against)
        return waterfall(lines, f"{self._title(row, target, against)}: {odds(lines[-1][1])}")

    def _title(self, row: int, target: Level, against: Level) -> str:
        chosen, other = (self.classes[int(side[row])] for side in self.sides(target, against))
        return f"row {row}: {chosen} against {other}, in decibans"

    def __str__(self) -> str:
        shown = [self.text(i) for i in range(min(len(self), MOST_ROWS))]
        if len(self) > MOST_ROWS:
            shown.append(f"… and {len(self) - MOST_ROWS} more rows: text(row) shows one")
        return "\n\n".join(shown)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Of each row that is printed a table, with a bar for each part: right of the middle for the class."""
        if len(self.classes) == 1:
            return f"<pre>{html.escape(str(self))}</pre>"
        shown = [self._html_table(i) for i in range(min(len(self), MOST_ROWS))]
        if len(self) > MOST_ROWS:
            shown.append(f"<p>… and {len(self) - MOST_ROWS} more rows: text(row) shows one</p>")
        return "\n".join(shown)

    def _html_table(self, row: int) -> str:
        lines = self.lines(row)
        scale = _scale(lines)
        ends = [*(_html_bar(value, scale) for _, value in lines[:-1]), html.escape(odds(lines[-1][1]))]
        body = [
            f'<tr><th style="text-align:left">{html.escape(name)}</th><td>{value:+.2f}</td>'
            f'<td style="text-align:left;min-width:14em">{end}</td></tr>'
            for (name, value), end in zip(lines, ends, strict=True)
        ]
        return "\n".join(
            ["<table>", html_caption(self._title(row, None, None)), "<tbody>", *body, "</tbody>", "</table>"]
        )

    def _place(self, label: Level) -> int:
        if label not in self.classes:
            raise DecibanError(f"no class {label!r}; there are {list(self.classes)}")
        return self.classes.index(label)


def _sum(values: FloatArray) -> float:
    """What excludes both classes tells nothing between them."""
    infinite = values[np.isinf(values)]
    return 0.0 if len(set(infinite.tolist())) == 2 else float(values.sum())


def odds(decibans: float) -> str:
    """Decibans in words.

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
    """The longest bar: of all lines but the last, which is their sum."""
    return max([1.0, *(abs(value) for _, value in lines[:-1] if np.isfinite(value))])


def _share(value: float, scale: float) -> float:
    return 1.0 if np.isinf(value) else abs(value) / scale


def _html_bar(value: float, scale: float) -> str:
    """Half of the width is for each side."""
    width = 50.0 * _share(value, scale)
    colour, left = (FOR, 50.0) if value >= 0 else (AGAINST, 50.0 - width)
    style = f"height:0.8em;width:{width:.1f}%;margin-left:{left:.1f}%;background:{colour}"
    return f'<div style="{style}"></div>'
