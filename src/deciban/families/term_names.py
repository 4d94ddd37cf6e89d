"""Names of terms that are the shapes of numbers, links and mail addresses."""

from __future__ import annotations

SHAPES = (("url:", "a link", "a link to"), ("address:", "a mail address", "a mail address at"))


def describe_shapes(term: str) -> str:
    """A term with its shapes described.

    >>> [describe_shapes(term) for term in ("call", "00000000000", "£ 0,000", "url:example.com")]
    ['call', 'a number of 11 digits', '£ [a number like 0,000]', 'a link to example.com']
    """
    if term.startswith("~"):
        return term
    words = term.split(" ")
    shapes = [_shape(word) for word in words]
    if len(words) == 1:
        return shapes[0] or term
    return " ".join(word if shape is None else f"[{shape}]" for word, shape in zip(words, shapes, strict=True))


def _shape(word: str) -> str | None:
    """The description of a shape; None for any other word."""
    for mark, alone, at in SHAPES:
        if word.startswith(mark):
            return f"{at} {word[len(mark) :]}" if word != mark else alone
    if "0" not in word or word.strip("0.,"):
        return None
    digits = len(word)
    return f"a number of {digits} digit{'s' if digits > 1 else ''}" if word == "0" * digits else f"a number like {word}"
