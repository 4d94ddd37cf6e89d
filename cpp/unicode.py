"""Generates the tables of character kinds and case folding, for the kernels and for HTML reports.

    python cpp/unicode.py

The tables are committed (cpp/kernels/unicode.hpp, and a part of src/deciban/report/page/terms.js), so that a text has
the same terms wherever deciban was built, and in any browser.
"""

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from textwrap import wrap

HEADER = Path(__file__).parent / "kernels" / "unicode.hpp"
SCRIPT = Path(__file__).parents[1] / "src" / "deciban" / "report" / "page" / "terms.js"
PART_OF_SCRIPT = re.compile(r" *// Made by cpp/unicode\.py.*// Up to here made by cpp/unicode\.py\.\n", re.DOTALL)
WIDTH = 116  # of lines

SEPARATOR, LETTER, DIGIT, ALONE, IGNORED, APOSTROPHE, POINT = range(7)
SIGNS = "SLDAI'."  # letters for the kinds, in the script
IDEOGRAPHS = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA")  # name prefixes of scripts without spaces
VARIANTS = {*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}  # variation selectors

Runs = list[tuple[int, int, int]]  # runs of one kind: first character, number of characters, kind
Folds = dict[int, tuple[int, ...]]  # character → its fold, where they differ


def kind_of(code: int) -> int:
    """The role of a character in a word."""
    character = chr(code)
    category = unicodedata.category(character)
    if character in "'\u2019":
        return APOSTROPHE
    if character in ".,":
        return POINT
    if category == "Cf" or code in VARIANTS:
        return IGNORED
    if category in ("So", "Sc") or unicodedata.name(character, "").startswith(IDEOGRAPHS):
        return ALONE
    if category == "Nd":
        return DIGIT
    return LETTER if category[0] in "LMN" or character == "_" else SEPARATOR


def runs_of_kinds() -> Runs:
    grouped = ((kind, list(codes)) for kind, codes in groupby(range(sys.maxunicode + 1), kind_of))
    return [(codes[0], len(codes), kind) for kind, codes in grouped]


def full_folds() -> Folds:
    """Full case folding, by character."""
    folded = {code: chr(code).casefold() for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000}
    return {code: tuple(map(ord, to)) for code, to in folded.items() if to != chr(code)}


# The header ----------------------------------------------------------------------------------------------------------


def header(runs: Runs, folds: Folds) -> str:
    """unicode.hpp."""
    begins = (f"{code << 3 | kind}u" for code, _, kind in runs)
    cells = (f"{{{a}u, {{{', '.join(f'{c}u' for c in (*b, 0, 0)[:3])}}}}}" for a, b in folds.items())
    return "\n".join(
        [
            f"// Made by cpp/unicode.py from Unicode {unicodedata.unidata_version} and not to be changed by hand.",
            "#pragma once\n#include <cstdint>\n\nnamespace deciban::unicode {\n",
            "enum Kind : std::uint8_t { SEPARATOR, LETTER, DIGIT, ALONE, IGNORED, APOSTROPHE, POINT };\n",
            *_array("std::uint32_t RUNS", begins, "first character of each run · 8 + its kind"),
            "struct Fold {\n    std::uint32_t from;\n    std::uint32_t to[3];  // padded with 0\n};\n",
            *_array("Fold FOLDS", cells, "full case folding, by character"),
            "}  // namespace deciban::unicode\n",
        ]
    )


def _array(name: str, cells: Iterable[str], note: str) -> Iterator[str]:
    yield f"constexpr {name}[] = {{  // {note}"
    line = "   "
    for cell in cells:
        if len(line) + len(cell) > WIDTH:
            yield line
            line = "   "
        line += f" {cell},"
    yield line
    yield "};\n"


# The script ----------------------------------------------------------------------------------------------------------


def part_of_script(runs: Runs, folds: Folds) -> str:
    """The tables in terms.js. Numbers have base 36."""
    kinds = (f"{_base_36(count) if count > 1 else ''}{SIGNS[kind]}" for _, count, kind in runs)
    shifts = (",".join(map(_base_36, run)) for run in _shifts(folds))
    spelled = (",".join(map(_base_36, (code, *to))) for code, to in folds.items() if len(to) > 1)
    return "\n".join(
        [
            f"  // Made by cpp/unicode.py from Unicode {unicodedata.unidata_version} and not to be changed by hand.",
            "  // All characters in order, as runs: their length (if above 1) and kind. All numbers have base 36.",
            *_string("KINDS", "".join(kinds)),
            "  // Folds to one character, as runs: first character, count, step, shift.",
            *_string("SHIFTS", " ".join(shifts)),
            "  // Folds to several characters: the character, and its fold.",
            *_string("SPELLED", " ".join(spelled)),
            "  // Up to here made by cpp/unicode.py.\n",
        ]
    )


def _shifts(folds: Folds) -> list[tuple[int, int, int, int]]:
    """Folds to one character, as runs with one step and shift: first character, count, step, shift."""
    runs: list[tuple[int, int, int, int]] = []
    for code, to in folds.items():
        if len(to) > 1:
            continue
        first, count, step, shift = runs[-1] if runs else (code, 0, 0, 0)
        distance = code - first - step * (count - 1)
        if count and shift == to[0] - code and distance in ((1, 2) if count == 1 else (step,)):
            runs[-1] = (first, count + 1, distance, shift)
        else:
            runs.append((code, 1, 1, to[0] - code))
    return runs


def _base_36(number: int) -> str:
    if number < 0:
        return "-" + _base_36(-number)
    digit = "0123456789abcdefghijklmnopqrstuvwxyz"[number % 36]
    return _base_36(number // 36) + digit if number >= 36 else digit


def _string(name: str, text: str) -> Iterator[str]:
    """A constant over several lines; line breaks have no meaning."""
    yield f"  const {name} = `"
    yield from wrap(text, WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    yield "  `;"


def main() -> None:
    runs, folds = runs_of_kinds(), full_folds()
    HEADER.write_text(header(runs, folds))
    part = part_of_script(runs, folds)
    SCRIPT.write_text(PART_OF_SCRIPT.sub(lambda _: part, SCRIPT.read_text()))


if __name__ == "__main__":
    main()
