"""Writes cpp/kernels/unicode.hpp: what each character is to a word, and how it is folded.

    python cpp/unicode.py > cpp/kernels/unicode.hpp

The tables are kept in the sources, so that a text has the same terms wherever deciban was built.
"""

import sys
import unicodedata

SEPARATOR, LETTER, DIGIT, ALONE, IGNORED, APOSTROPHE, POINT = range(7)
IDEOGRAPHS = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA")  # names of what is written without spaces
VARIANTS = (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))  # they choose among shapes of a character


def kind_of(code: int) -> int:
    """What a character is to a word."""
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


def main() -> None:
    kinds = [kind_of(code) for code in range(sys.maxunicode + 1)]
    runs = [code for code in range(len(kinds)) if code == 0 or kinds[code] != kinds[code - 1]]
    print("// Made by cpp/unicode.py from Unicode", unicodedata.unidata_version, "and not to be changed by hand.")
    print("#pragma once\n#include <cstdint>\n\nnamespace deciban::unicode {\n")
    print("enum Kind : std::uint8_t { SEPARATOR, LETTER, DIGIT, ALONE, IGNORED, APOSTROPHE, POINT };\n")
    begins = [f"{code << 3 | kinds[code]}u" for code in runs]
    _print_array("std::uint32_t RUNS", begins, "where a kind begins, · 8 + the kind")
    folded = {chr(code): chr(code).casefold() for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000}
    folds = [(ord(a), [*map(ord, b)]) for a, b in folded.items() if a != b]
    cells = [f"{{{a}u, {{{', '.join(f'{c}u' for c in b + [0] * (3 - len(b)))}}}}}" for a, b in folds]
    print("struct Fold {\n    std::uint32_t from;\n    std::uint32_t to[3];  // 0: no more\n};\n")
    _print_array("Fold FOLDS", cells, "full case folding, by what it is of")
    print("}  // namespace deciban::unicode")


def _print_array(name: str, cells: list[str], note: str) -> None:
    print(f"constexpr {name}[] = {{  // {note}")
    line = "   "
    for cell in cells:
        if len(line) + len(cell) > 116:
            print(line)
            line = "   "
        line += f" {cell},"
    print(line)
    print("};\n")


if __name__ == "__main__":
    main()
