"""Notation: dates, times of day and numbers in columns of text, and how they are recognised.

A column of text is read as numbers (or dates, or times) if all of its cells are written in one style, except markers
of missing values ("n/a", "-") and a few others: at most 3 different texts, in at most 1 % of the cells. These are what
people type where they have no number ("unknown", "none yet", a stray total). A fourth makes the column categorical,
so ordinary words are recognised after a few cells.

Identifiers are never numbers: digits with leading zeros; and, where a table could have held numbers but holds text,
nothing but digits (`astype(str)` makes categories), or digits of one width (postal codes) beside a few words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.data.batch import Notation, Style
from deciban.data.cell_types import CELL_WORDS, FORMATTED
from deciban.lazy import lazy

pa = lazy("pyarrow")
pc = lazy("pyarrow.compute")

MAX_UNPARSED = 3  # different texts that are not written in the style of their column
MAX_UNPARSED_SHARE = 0.01  # of the cells
AMBIGUOUS_SHARE = 0.5  # least share of cells in one style for a warning about the others
AMBIGUOUS_VALUES = 12  # least number of different ones: 1, 2 and "3 or more" are categories
MARKERS = frozenset(
    ("", "-", "--", "–", "—", ".", "?", "na", "n/a", "n.a.", "nan", "nat", "none", "null", "nil", "tbd", "unknown")
)

CURRENCY = r"(?:US|CA|AU|NZ|HK|A|C|R)?\$|[€£¥₹₩₽₺₪฿]|(?:USD|EUR|GBP|JPY|CHF|CAD|AUD|CNY|INR|SEK|NOK|DKK|PLN|BRL)"
SPACES = " \u00a0\u2009\u202f"
GROUPS = "|".join(rf"[1-9]\d{{0,2}}(?:[{sign}]\d{{3}})+" for sign in ("%s", SPACES, "'’"))
NUMBER = (
    r"^\(?[+\-−]?\s?(?P<before>" + CURRENCY + rf")?\s?[+\-−]?(?P<whole>{GROUPS}|\d*)"
    r"(?:[%s](?P<fraction>\d*))?(?P<exponent>[eE][+\-]?\d{1,3})?\s?(?P<after>" + CURRENCY + r"|%%)?\)?$"
)
CLOCK = r"(?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
PATTERNS: dict[Style, str] = {
    "date": r"^(?P<year>\d{4})(?:-(?P<month>\d{2})-(?P<day>\d{2})|/(?P<month2>\d{2})/(?P<day2>\d{2}))"
    rf"(?:[T ]{CLOCK}\s?(?:[zZ]|[+\-]\d{{2}}:?\d{{2}})?)?$",
    "time": rf"^{CLOCK}$",
    "formatted": NUMBER % (",", "."),
    "formatted_comma": NUMBER % (".", ","),
}
# ambiguous dates (day or month first), and dates with named months
OTHER_DATES = re.compile(
    r"(?:\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d{2})|\d{1,2}[ -][A-Za-z]{3,9}[ -]\d{2,4}|[A-Za-z]{3,9} \d{1,2}, \d{4})"
    r"(?:,?[T ]\d{1,2}:\d{2}\b.*)?"
)
DIGITS = r"^\d+$"
CANDIDATE = r"^[^a-df-y]*\d[^a-df-y]*$"  # every style has a digit, and no lower-case letters other than e and z


@dataclass(frozen=True)
class NotationOptions:
    """Which styles and markers of missing values are recognised."""

    styles: tuple[Style, ...] = tuple(PATTERNS)
    markers: frozenset[str] = MARKERS
    digits_are_numbers: bool = False  # as in csv, where every cell is text


DEFAULT = NotationOptions()


# One style -----------------------------------------------------------------------------------------------------------


def parse_text(text: Any, style: Style) -> Any:
    """Text as timestamps, times or doubles; null where a cell is not in the style.

    >>> parse_text(pa.array(["$1,200", "(3.5)", "n/a"]), "formatted").to_pylist()
    [1200.0, -3.5, None]
    >>> parse_text(pa.array(["1.234,5", "0,5"]), "formatted_comma").to_pylist()
    [1234.5, 0.5]
    >>> parse_text(pa.array(["2026-02-28T12:30Z", "2026-02-30"]), "date").to_pylist()
    [datetime.datetime(2026, 2, 28, 12, 30), None]
    """
    if pa.types.is_dictionary(text.type):
        return parse_text(text.dictionary, style).take(text.indices)
    text = pc.utf8_trim_whitespace(text if pa.types.is_string(text.type) else text.cast(pa.string()))
    fields = pc.extract_regex(text, PATTERNS[style])  # the groups of the pattern; null where a cell does not match
    if style == "date":
        return _timestamps(fields)
    return _times(fields) if style == "time" else _doubles(text, fields)


def _doubles(text: Any, fields: Any) -> Any:
    whole = pc.replace_substring_regex(fields.field("whole"), r"\D", "")
    fraction, exponent = fields.field("fraction"), fields.field("exponent")
    has_digits = pc.greater(pc.utf8_length(pc.binary_join_element_wise(whole, fraction, "")), 0)
    opened, closed = pc.starts_with(text, "("), pc.ends_with(text, ")")
    minus = pc.count_substring_regex(pc.replace_substring_regex(text, r"[eE]-", ""), r"[\-−]")
    negative = pc.add(minus, opened.cast(pa.int32()))  # the number of signs
    valid = pc.and_(pc.and_(fields.is_valid(), has_digits), pc.equal(opened, closed))
    valid = pc.and_(valid, pc.less_equal(negative, 1))
    valid = pc.and_(valid, pc.invert(pc.match_substring_regex(whole, r"^0\d")))
    digits = pc.binary_join_element_wise("0", whole, ".", fraction, "0", exponent, "")  # 5. has no fraction
    values = pc.if_else(valid.fill_null(False), digits, None).cast(pa.float64())
    values = pc.if_else(pc.is_finite(values), values, None)  # 1e999
    return pc.if_else(pc.greater(negative, 0), pc.negate(values), values)


def _timestamps(fields: Any) -> Any:
    year, month, day, month2, day2 = (
        _integers(fields.field(name)) for name in ("year", "month", "day", "month2", "day2")
    )
    month, day = np.maximum(month, month2), np.maximum(day, day2)
    clock, valid = _clock(fields)
    valid &= (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    first = (np.where(valid, year, 1970) - 1970).astype("M8[Y]").astype("M8[M]") + (np.where(valid, month, 1) - 1)
    date = first.astype("M8[D]") + (day - 1)
    valid &= date.astype("M8[M]") == first  # no 30th of February
    values = date.astype("M8[us]").astype(np.int64) + clock
    return pa.array(values, pa.int64(), mask=~valid).cast(pa.timestamp("us"))


def _times(fields: Any) -> Any:
    clock, valid = _clock(fields)
    return pa.array(np.where(valid, clock, 0), pa.int64(), mask=~valid).cast(pa.time64("us"))


def _clock(fields: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(n) microseconds since midnight, and whether the cell matches and there is such a time."""
    hour, minute, second = (_integers(fields.field(name)) for name in ("hour", "minute", "second"))
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(fields.field("fraction"), 6, "0"), 0, 6)
    clock = 1_000_000 * ((hour * 60 + minute) * 60 + second) + _integers(fraction)
    return clock, (hour < 24) & (minute < 60) & (second < 60) & _bool_array(fields.is_valid())


def _integers(digits: Any) -> NDArray[np.int64]:
    """0 where there are no digits."""
    digits = pc.if_else(pc.equal(digits, "").fill_null(True), "0", digits)
    return np.asarray(digits.cast(pa.int64()).to_numpy(zero_copy_only=False))


# All styles ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StyleTally:
    """How many cells are in a style, and which are not."""

    parsed: int
    unparsed: frozenset[str]  # the first in lexical order, at most MAX_UNPARSED + 1
    units: frozenset[str]  # currencies and the like; "" where a number has none
    values: frozenset[str]  # in the style, the first AMBIGUOUS_VALUES
    digits_only: bool  # whether all values are only digits

    def __add__(self, other: StyleTally) -> StyleTally:
        return StyleTally(
            self.parsed + other.parsed,
            _first(self.unparsed | other.unparsed),
            self.units | other.units,
            _first(self.values | other.values, AMBIGUOUS_VALUES),
            self.digits_only and other.digits_only,
        )


@dataclass(frozen=True)
class TextProfile:
    """How the cells of a column of text are written. Profiles of parts of a column add."""

    cells: int = 0  # that are not null
    marked_missing: int = 0  # cells whose text marks a missing value
    markers: frozenset[str] = frozenset()
    tallies: tuple[tuple[Style, StyleTally], ...] = ()
    leading_zeros: bool = False
    widths: frozenset[int] = frozenset()  # of cells that are only digits, at most two

    @classmethod
    def of(cls, text: Any, counts: NDArray[np.int64], options: NotationOptions) -> TextProfile:
        """The profile of different texts and their counts."""
        candidate = _bool_array(pc.match_substring_regex(text, CANDIDATE))  # rare in columns of words
        rest = text.filter(pa.array(~candidate))
        marker = ~candidate
        marker[marker] = [word.strip().lower() in options.markers for word in rest.to_pylist()]
        words = _first(text.filter(pa.array(~candidate & ~marker)).to_pylist())
        markers = _first(text.filter(pa.array(marker)).to_pylist())
        text, candidate_counts = text.filter(pa.array(candidate)), counts[candidate]
        tallies = tuple((style, _tally(text, candidate_counts, style, words, options)) for style in options.styles)
        widths, leading_zeros = list[int](), False
        if len(text):
            widths = pc.unique(pc.utf8_length(text.filter(pc.match_substring_regex(text, DIGITS)))).to_pylist()
            leading_zeros = bool(pc.any(pc.match_substring_regex(text, r"^[+\-]?0\d"), min_count=0).as_py())
        return cls(int(counts.sum()), int(counts[marker].sum()), markers, tallies, leading_zeros, _two_smallest(widths))

    def __add__(self, other: TextProfile) -> TextProfile:
        if not self.cells or not other.cells:
            return self if self.cells else other
        others = dict(other.tallies)
        tallies = tuple((style, tally + others[style]) for style, tally in self.tallies if style in others)
        return TextProfile(
            self.cells + other.cells,
            self.marked_missing + other.marked_missing,
            _first(self.markers | other.markers),
            tallies,
            self.leading_zeros or other.leading_zeros,
            _two_smallest({*self.widths, *other.widths}),
        )

    def may_have_notation(self) -> bool:
        """Whether more cells could show that the column is in one style."""
        return any(
            len(tally.unparsed) <= MAX_UNPARSED and self._consistent(style, tally) for style, tally in self.tallies
        )

    def all_parsed(self) -> bool:
        """Whether all cells are in one style."""
        return any(not tally.unparsed and tally.parsed for _, tally in self.tallies)

    def notation(self) -> Notation | None:
        """The style of all cells except a few; None if there is none."""
        candidates = [(style, tally) for style, tally in self.tallies if self._fits(style, tally)]
        if not candidates:
            return None
        style, tally = max(candidates, key=lambda item: item[1].parsed)  # the first of equal ones: 1,234 is 1234
        return Notation(style, tuple(sorted({*tally.unparsed, *self.markers})))

    def exceptions(self) -> tuple[Style, tuple[str, ...]] | None:
        """The style of most cells, and texts that are not in it, if these are why there is no notation."""
        if not self.tallies or self.notation() is not None:
            return None
        style, tally = max(self.tallies, key=lambda item: item[1].parsed)
        is_majority = tally.parsed >= AMBIGUOUS_SHARE * (self.cells - self.marked_missing)
        ambiguous = tally.unparsed and is_majority and len(tally.values) == AMBIGUOUS_VALUES
        if not ambiguous or not self._consistent(style, tally) or self._are_codes(tally):
            return None
        return style, tuple(sorted(tally.unparsed))[:MAX_UNPARSED]

    def unsupported_date(self) -> str | None:
        """A date in a notation that is not supported, if the first texts are such dates."""
        unparsed = next((sorted(tally.unparsed) for style, tally in self.tallies if style == "date"), [])
        if len(unparsed) <= MAX_UNPARSED or self.notation() is not None:
            return None
        return unparsed[0] if all(OTHER_DATES.fullmatch(text.strip()) for text in unparsed) else None

    def _fits(self, style: Style, tally: StyleTally) -> bool:
        present = self.cells - self.marked_missing
        few_unparsed = len(tally.unparsed) <= MAX_UNPARSED and present - tally.parsed <= MAX_UNPARSED_SHARE * present
        return few_unparsed and tally.parsed > 0 and self._consistent(style, tally) and not self._are_codes(tally)

    def _are_codes(self, tally: StyleTally) -> bool:
        """Whether digits are categories: they are text, and no cell that is not a number explains why."""
        return tally.digits_only and (len(self.widths) == 1 or not (self.marked_missing or tally.unparsed))

    def _consistent(self, style: Style, tally: StyleTally) -> bool:
        """Whether numbers have one unit and no leading zeros, as identifiers have."""
        if style not in FORMATTED:
            return True
        units = tally.units - {""}
        return not self.leading_zeros and len(units) <= 1 and not ("%" in units and "" in tally.units)


def _tally(
    text: Any, counts: NDArray[np.int64], style: Style, words: frozenset[str], options: NotationOptions
) -> StyleTally:
    """The tally of texts that may be in some style, and of words that are in none."""
    digits_only = style in FORMATTED and not options.digits_are_numbers
    if not len(text):
        return StyleTally(0, words, frozenset(), frozenset(), digits_only)
    valid = _bool_array(parse_text(text, style).is_valid())
    parsed = text.filter(pa.array(valid))
    unparsed = _first([*words, *text.filter(pa.array(~valid)).to_pylist()])
    units = frozenset[str]()
    if style in FORMATTED and len(parsed):
        digits_only = digits_only and pc.all(pc.match_substring_regex(parsed, DIGITS)).as_py()
        fields = pc.extract_regex(pc.utf8_trim_whitespace(parsed), PATTERNS[style])
        joined = pc.binary_join_element_wise(fields.field("before"), fields.field("after"), "")
        units = frozenset(pc.unique(joined).to_pylist())
    values = _first(parsed.to_pylist(), AMBIGUOUS_VALUES)
    return StyleTally(int(counts[valid].sum()), unparsed, units, values, digits_only)


def _bool_array(booleans: Any) -> NDArray[np.bool_]:
    return np.array(booleans.to_numpy(zero_copy_only=False), np.bool_)


def parse_column(column: Any, style: Style, markers: Collection[str] | None = None) -> Any:
    """A chunked column of text as values; null where a cell is not in the style.

    Raises pa.ArrowInvalid for such a cell unless it is one of the markers of missing values; None allows all.
    """
    chunks = []
    for chunk in column.chunks:
        coded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        words = coded.dictionary.cast(pa.string())
        values = parse_text(words, style)
        if markers is not None:
            unparsed = words.filter(pc.and_(words.is_valid(), values.is_null()))
            lower = pc.utf8_lower(pc.utf8_trim_whitespace(unparsed))
            if not pc.all(pc.is_in(lower, pa.array(sorted(markers), pa.string())), min_count=0).as_py():
                raise pa.ArrowInvalid("a cell is written in another style")
        chunks.append(values.take(coded.indices))
    return pa.chunked_array(chunks, parse_text(pa.array([], pa.string()), style).type)


def require_undecided(table: Any, names: Collection[str], options: NotationOptions = DEFAULT) -> None:
    """Raises pa.ArrowInvalid if a cell of these columns of text is a date or a number: then all cells must be read."""
    for name in names:
        for chunk in table.column(name).chunks if name in table.column_names else ():
            if any(tally.parsed for _, tally in profile_text(chunk, options).tallies):
                raise pa.ArrowInvalid("a cell of text is a date or a number")


def _first(texts: Iterable[str], most: int = MAX_UNPARSED + 1) -> frozenset[str]:
    return frozenset(nsmallest(most, texts))


def _two_smallest(widths: Iterable[int]) -> frozenset[int]:
    return frozenset(sorted(widths)[:2])


def profile_table(table: Any, options: NotationOptions = DEFAULT) -> dict[str, TextProfile]:
    """The profile of each column of a table of text."""
    return {
        name: sum((profile_text(chunk, options) for chunk in column.chunks), TextProfile())
        for name, column in zip(table.column_names, table.columns, strict=True)
        if column.num_chunks
    }


def profile_text(text: Any, options: NotationOptions = DEFAULT) -> TextProfile:
    """The profile of an Arrow array of text, which may be a dictionary."""
    coded = text if pa.types.is_dictionary(text.type) else text.dictionary_encode()
    indices = coded.indices.drop_null().to_numpy(zero_copy_only=False)
    counts = np.bincount(indices, minlength=len(coded.dictionary)).astype(np.int64)
    used = (counts > 0) & np.asarray(coded.dictionary.is_valid().to_numpy(zero_copy_only=False))
    values = coded.dictionary.filter(pa.array(used)).cast(pa.string())
    try:
        return TextProfile.of(values, counts[used], options)
    except (pa.ArrowInvalid, UnicodeDecodeError):  # bytes that are not UTF-8 are words
        return TextProfile(int(counts.sum()))


def ambiguity_warnings(profiles: Mapping[Any, TextProfile]) -> list[str]:
    """A warning for each column that is categorical though most of its cells are numbers or dates."""
    messages = []
    for name, profile in profiles.items():
        if (date := profile.unsupported_date()) is not None:
            messages.append(
                f"column {name!r} is read as categories: {date!r} looks like a date, but only dates such as "
                "2026-12-31 are recognised; convert the column, for instance with pandas.to_datetime"
            )
        elif (exceptions := profile.exceptions()) is not None:
            style, texts = exceptions
            others = ", ".join(map(repr, texts)) + (" and others" if len(texts) == MAX_UNPARSED else "")
            messages.append(
                f"column {name!r} is read as categories: most of its cells are {CELL_WORDS[style]}, but not {others}; "
                "replace these by missing values, or make it a column of categories"
            )
    return messages
