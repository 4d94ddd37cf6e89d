"""Notation: dates, times of day and numbers that are written as text, and how a column of text is recognised as such.

A column of text is read as numbers (or dates, or times) if all of its cells are written in one style, except those
that stand for a missing value ("n/a", "-") and a few others: at most 3 different texts, in at most 1 % of the cells.
Three is what people type where they have no number ("unknown", "none yet", a stray total); a column with more
different words is one of categories, whatever their share. So a fourth word settles it, in whichever row it stands,
and ordinary words cost a look at a few cells.

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

from deciban.batch import Notation, Style
from deciban.late import late
from deciban.schema import STYLES

pa = late("pyarrow")
pc = late("pyarrow.compute")

MOST_STRANGE = 3  # different texts that are not written in the style of their column
STRANGE_SHARE = 0.01  # of the cells, at most
DOUBTFUL_SHARE = 0.5  # of the cells in one style, at least, for a warning that others are not
DOUBTFUL_VALUES = 12  # different ones of these, at least: 1, 2 and "3 or more" are categories
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
# dates of which it is not known what is the day and what the month, or whose months have names
OTHER_DATES = re.compile(
    r"(?:\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d{2})|\d{1,2}[ -][A-Za-z]{3,9}[ -]\d{2,4}|[A-Za-z]{3,9} \d{1,2}, \d{4})"
    r"(?:,?[T ]\d{1,2}:\d{2}\b.*)?"
)
DIGITS = r"^\d+$"
CANDIDATE = r"^[^a-df-y]*\d[^a-df-y]*$"  # all that any style allows has a digit, and of small letters e and z alone
NUMBERS: tuple[Style, ...] = ("formatted", "formatted_comma")


@dataclass(frozen=True)
class Options:
    """What may be taken for dates and numbers."""

    styles: tuple[Style, ...] = tuple(PATTERNS)
    markers: frozenset[str] = MARKERS
    digits_are_numbers: bool = False  # as in csv, where all is text


PLAIN = Options()


# One style -----------------------------------------------------------------------------------------------------------


def parsed(text: Any, style: Style) -> Any:
    """Cells of text as timestamps, times or doubles; null where a cell is not written in the style.

    >>> parsed(pa.array(["$1,200", "(3.5)", "n/a"]), "formatted").to_pylist()
    [1200.0, -3.5, None]
    >>> parsed(pa.array(["1.234,5", "0,5"]), "formatted_comma").to_pylist()
    [1234.5, 0.5]
    >>> parsed(pa.array(["2026-02-28T12:30Z", "2026-02-30"]), "date").to_pylist()
    [datetime.datetime(2026, 2, 28, 12, 30), None]
    """
    if pa.types.is_dictionary(text.type):
        return parsed(text.dictionary, style).take(text.indices)
    fields = _fields(text, style)
    if style == "date":
        return _timestamps(fields)
    return _times(fields) if style == "time" else _doubles(text, fields)


def _fields(text: Any, style: Style) -> Any:
    """What the groups of a style's pattern match: a structure, null where a cell does not."""
    text = pc.utf8_trim_whitespace(text if pa.types.is_string(text.type) else text.cast(pa.string()))
    return pc.extract_regex(text, PATTERNS[style])


def _doubles(text: Any, fields: Any) -> Any:
    text = pc.utf8_trim_whitespace(text if pa.types.is_string(text.type) else text.cast(pa.string()))
    whole = pc.replace_substring_regex(fields.field("whole"), r"\D", "")
    fraction, exponent = fields.field("fraction"), fields.field("exponent")
    some = pc.greater(pc.utf8_length(pc.binary_join_element_wise(whole, fraction, "")), 0)
    opened, closed = pc.starts_with(text, "("), pc.ends_with(text, ")")
    minus = pc.count_substring_regex(pc.replace_substring_regex(text, r"[eE]-", ""), r"[\-−]")
    written = pc.and_(pc.and_(fields.is_valid(), some), pc.equal(opened, closed))
    written = pc.and_(written, pc.less_equal(pc.add(minus, opened.cast(pa.int32())), 1))
    written = pc.and_(written, pc.invert(pc.match_substring_regex(whole, r"^0\d")))
    digits = pc.binary_join_element_wise(pc.binary_join_element_wise("0", whole, ""), fraction, ".")
    digits = pc.binary_join_element_wise(digits, "0", "")  # 5. has no fraction
    digits = pc.if_else(written.fill_null(False), pc.binary_join_element_wise(digits, exponent, ""), None)
    values = digits.cast(pa.float64())
    values = pc.if_else(pc.is_finite(values), values, None)  # 1e999
    return pc.if_else(pc.greater(pc.add(minus, opened.cast(pa.int32())), 0), pc.negate(values), values)


def _timestamps(fields: Any) -> Any:
    year, month, day = (_whole(fields, name) for name in ("year", "month", "day"))
    month, day = (np.maximum(a, _whole(fields, b)) for a, b in ((month, "month2"), (day, "day2")))
    clock, valid = _clock(fields)
    valid &= (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & _valid(fields)
    first = (np.where(valid, year, 1970) - 1970).astype("M8[Y]").astype("M8[M]") + (np.where(valid, month, 1) - 1)
    date = first.astype("M8[D]") + (day - 1)
    valid &= date.astype("M8[M]") == first  # no 30th of February
    values = date.astype("M8[us]").astype(np.int64) + clock
    return pa.array(values, pa.int64(), mask=~valid).cast(pa.timestamp("us"))


def _times(fields: Any) -> Any:
    clock, valid = _clock(fields)
    return pa.array(np.where(valid, clock, 0), pa.int64(), mask=~(valid & _valid(fields))).cast(pa.time64("us"))


def _clock(fields: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(n) microseconds since midnight, and whether there is such a time."""
    hour, minute, second = (_whole(fields, name) for name in ("hour", "minute", "second"))
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(fields.field("fraction"), 6, "0"), 0, 6)
    clock = 1_000_000 * ((hour * 60 + minute) * 60 + second) + _integers(fraction)
    return clock, (hour < 24) & (minute < 60) & (second < 60)


def _whole(fields: Any, name: str) -> NDArray[np.int64]:
    return _integers(fields.field(name))


def _integers(digits: Any) -> NDArray[np.int64]:
    """0 where there are none."""
    digits = pc.if_else(pc.equal(digits, "").fill_null(True), "0", digits)
    return np.asarray(digits.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _valid(fields: Any) -> NDArray[np.bool_]:
    return np.asarray(fields.is_valid().to_numpy(zero_copy_only=False))


# All styles ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tally:
    """How many cells are written in a style, and which are not."""

    parsed: int
    strange: frozenset[str]  # those that come first in order, MOST_STRANGE + 1 at most
    units: frozenset[str]  # currencies and the like; "" where a number has none
    values: frozenset[str]  # that are written in the style, the first DOUBTFUL_VALUES
    bare: bool  # all of them are digits and nothing else

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.parsed + other.parsed,
            _first(self.strange | other.strange),
            self.units | other.units,
            _first(self.values | other.values, DOUBTFUL_VALUES),
            self.bare and other.bare,
        )


@dataclass(frozen=True)
class Profile:
    """What is to be known of the cells of a column of text. Profiles of parts of a column add."""

    cells: int = 0  # that are not missing
    markers: int = 0  # cells of text that stands for a missing value
    marked: frozenset[str] = frozenset()
    tallies: tuple[tuple[Style, Tally], ...] = ()
    zeros: bool = False  # digits begin with 0
    widths: frozenset[int] = frozenset()  # of cells that are digits and nothing else, two at most

    @classmethod
    def of(cls, text: Any, counts: NDArray[np.int64], options: Options) -> Profile:
        """That of different texts, and how often each of them is there."""
        may_be = _array(pc.match_substring_regex(text, CANDIDATE))  # of most columns of words, none
        rest = text.filter(pa.array(~may_be))
        marker = ~may_be
        marker[marker] = [word.strip().lower() in options.markers for word in rest.to_pylist()]
        words = _first(text.filter(pa.array(~may_be & ~marker)).to_pylist())
        marked = _first(text.filter(pa.array(marker)).to_pylist())
        text, those = text.filter(pa.array(may_be)), counts[may_be]
        tallies = tuple((style, _tally(text, those, style, words, options)) for style in options.styles)
        widths, zeros = list[int](), False
        if len(text):
            widths = pc.unique(pc.utf8_length(text.filter(pc.match_substring_regex(text, DIGITS)))).to_pylist()
            zeros = bool(pc.any(pc.match_substring_regex(text, r"^[+\-]?0\d"), min_count=0).as_py())
        return cls(int(counts.sum()), int(counts[marker].sum()), marked, tallies, zeros, _two(widths))

    def __add__(self, other: Profile) -> Profile:
        if not self.cells or not other.cells:
            return self if self.cells else other
        theirs = dict(other.tallies)
        tallies = tuple((style, mine + theirs[style]) for style, mine in self.tallies if style in theirs)
        return Profile(
            self.cells + other.cells,
            self.markers + other.markers,
            _first(self.marked | other.marked),
            tallies,
            self.zeros or other.zeros,
            _two({*self.widths, *other.widths}),
        )

    def may_be(self) -> bool:
        """Whether the column may turn out to be in one style, with more cells."""
        return any(len(tally.strange) <= MOST_STRANGE and self._one(style, tally) for style, tally in self.tallies)

    def complete(self) -> bool:
        """Whether some style is that of all cells."""
        return any(not tally.strange and tally.parsed for _, tally in self.tallies)

    def notation(self) -> Notation | None:
        """The style that all cells are written in but a few; None if there is none."""
        good = [(style, tally) for style, tally in self.tallies if self._fits(style, tally)]
        if not good:
            return None
        style, tally = max(good, key=lambda found: found[1].parsed)  # the first of equal ones: 1,234 is 1234
        return Notation(style, tuple(sorted({*tally.strange, *self.marked})))

    def doubt(self) -> tuple[Style, tuple[str, ...]] | None:
        """The style of most cells, and texts that are not written in it, if that is why there is no notation."""
        style, tally = max(self.tallies, key=lambda found: found[1].parsed, default=(None, None))
        if style is None or tally is None or self.notation() is not None or not tally.strange:
            return None
        most = tally.parsed >= DOUBTFUL_SHARE * (self.cells - self.markers) and len(tally.values) == DOUBTFUL_VALUES
        if not most or not self._one(style, tally) or self._are_codes(tally):
            return None
        return style, tuple(sorted(tally.strange))[:MOST_STRANGE]

    def other_date(self) -> str | None:
        """A date in a notation that is not read, if the first texts are dates in such notations."""
        strange = sorted(dict(self.tallies)["date"].strange) if "date" in dict(self.tallies) else []
        if len(strange) <= MOST_STRANGE or self.notation() is not None:
            return None
        return strange[0] if all(OTHER_DATES.fullmatch(text.strip()) for text in strange) else None

    def _fits(self, style: Style, tally: Tally) -> bool:
        written = self.cells - self.markers
        few = len(tally.strange) <= MOST_STRANGE and written - tally.parsed <= STRANGE_SHARE * written
        return few and tally.parsed > 0 and self._one(style, tally) and not self._are_codes(tally)

    def _are_codes(self, tally: Tally) -> bool:
        """Digits alone are text because somebody wants categories, unless another cell is why they are text."""
        return tally.bare and (len(self.widths) == 1 or not (self.markers or tally.strange))

    def _one(self, style: Style, tally: Tally) -> bool:
        """Whether numbers are no identifiers, and of one unit."""
        if style not in NUMBERS:
            return True
        units = tally.units - {""}
        return not self.zeros and len(units) <= 1 and not ("%" in units and "" in tally.units)


def _tally(text: Any, counts: NDArray[np.int64], style: Style, words: frozenset[str], options: Options) -> Tally:
    """That of texts that may be written in some style, beside words that are written in none."""
    bare = style in NUMBERS and not options.digits_are_numbers
    if not len(text):
        return Tally(0, words, frozenset(), frozenset(), bare)
    there = _array(parsed(text, style).is_valid())
    written = text.filter(pa.array(there))
    strange = _first([*words, *text.filter(pa.array(~there)).to_pylist()])
    units = frozenset[str]()
    if style in NUMBERS and len(written):
        bare = bare and pc.all(pc.match_substring_regex(written, DIGITS)).as_py()
        fields = _fields(written, style)
        joined = pc.binary_join_element_wise(fields.field("before"), fields.field("after"), "")
        units = frozenset(pc.unique(joined).to_pylist())
    values = _first(written.to_pylist(), DOUBTFUL_VALUES)
    return Tally(int(counts[there].sum()), strange, units, values, bare)


def _array(booleans: Any) -> NDArray[np.bool_]:
    return np.array(booleans.to_numpy(zero_copy_only=False), np.bool_)


def require_written(text: Any, values: Any, options: Options) -> None:
    """That each text was parsed, or stands for a missing value."""
    lost = text.filter(pc.and_(text.is_valid(), values.is_null()))
    lower = pc.utf8_lower(pc.utf8_trim_whitespace(lost))
    marker = pc.is_in(lower, pa.array(sorted(options.markers), pa.string()))
    if not pc.all(marker, min_count=0).as_py():
        raise pa.ArrowInvalid("a cell is written in another style")


def written_as(column: Any, style: Style, *, strict: bool, options: Options = PLAIN) -> Any:
    """A column of text, in chunks, as what is written there; `strict`: all of it must be written so."""
    chunks = []
    for chunk in column.chunks:
        coded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        words = coded.dictionary.cast(pa.string())
        values = parsed(words, style)
        if strict:
            require_written(words, values, options)
        chunks.append(values.take(coded.indices))
    return pa.chunked_array(chunks, parsed(pa.array([], pa.string()), style).type)


def require_undecided(table: Any, names: Collection[str], options: Options = PLAIN) -> None:
    """That no cell of these columns of text is a date or a number: then all cells have to be looked at."""
    for name in names:
        for chunk in table.column(name).chunks if name in table.column_names else ():
            if any(tally.parsed for _, tally in profile_of(chunk, options).tallies):
                raise pa.ArrowInvalid("a cell of text is a date or a number")


def _first(texts: Iterable[str], most: int = MOST_STRANGE + 1) -> frozenset[str]:
    return frozenset(nsmallest(most, texts))


def _two(widths: Iterable[int]) -> frozenset[int]:
    return frozenset(sorted(widths)[:2])


def profile_of(text: Any, options: Options = PLAIN) -> Profile:
    """The profile of an Arrow array of text, which may be a dictionary."""
    coded = text if pa.types.is_dictionary(text.type) else text.dictionary_encode()
    places = coded.indices.drop_null().to_numpy(zero_copy_only=False)
    counts = np.bincount(places, minlength=len(coded.dictionary)).astype(np.int64)
    kept = (counts > 0) & np.asarray(coded.dictionary.is_valid().to_numpy(zero_copy_only=False))
    values = coded.dictionary.filter(pa.array(kept)).cast(pa.string())
    try:
        return Profile.of(values, counts[kept], options)
    except (pa.ArrowInvalid, UnicodeDecodeError):  # bytes that are not UTF-8 are words
        return Profile(int(counts.sum()))


def doubts(profiles: Mapping[Any, Profile]) -> list[str]:
    """What to say of columns that are categories, though most of their cells are numbers or dates."""
    said = []
    for name, profile in profiles.items():
        if (date := profile.other_date()) is not None:
            said.append(
                f"column {name!r} is taken for categories: {date!r} looks like a date, but only 2026-12-31 and the "
                "like are read as dates; convert the column, with pandas.to_datetime for one"
            )
            continue
        found = profile.doubt()
        if found is not None:
            style, strange = found
            others = ", ".join(map(repr, strange)) + (" and others" if len(strange) == MOST_STRANGE else "")
            said.append(
                f"column {name!r} is taken for categories: most of its cells are {STYLES[style]}, but not {others}; "
                "replace these by missing values, or make it a column of categories"
            )
    return said
