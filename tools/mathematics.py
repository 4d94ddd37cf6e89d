"""Mathematics of the pages: LaTeX between dollars becomes MathML, which browsers show without a script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import groupby, pairwise
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert

FENCE = re.compile(r"(`{3,}|~{3,})")
CONTAINER = re.compile(r"(\?\?\?\+?|!!!|[-*+]|\d+\.) ")  # what is indented below is not code
TOKEN = re.compile(
    r"""(?P<kept> (`+)(?!`) .*? (?<!`)\2(?!`) | <!--.*?--> | </?[a-zA-Z][^<>]*> )
    | \\(?P<dollar>\$)
    | \$\$ (?P<block> (?: \\. | [^$\\] )+? ) \$\$
    | \$ (?P<inline> (?=\S) (?: \\. | (?!\n\s*\n)[^$\\] )+? (?<=\S) ) \$
    | (?P<stray>\$)""",
    re.VERBOSE | re.DOTALL,
)
SPELLINGS = [  # what latex2mathml does not know, or shows worse
    (re.compile(r"\\(begin|end)\{aligned\}"), r"\\\1{split}"),
    (re.compile(r"\\mathrm\{([\w ]+)\}"), r"\\text{\1}"),
    (re.compile(r"\\arg\s*\\(max|min)(?![a-zA-Z])"), r"\\operatorname{arg\1}"),
    (re.compile(r"\\l([vV])ert(?![a-zA-Z])"), r"\\left\\l\1ert"),
    (re.compile(r"\\r([vV])ert(?![a-zA-Z])"), r"\\right\\r\1ert"),
    (re.compile(r"\{,\}"), r"\\text{,}"),
]
CHILDREN = {"mfrac": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "mroot": 2, "msubsup": 3, "munderover": 3}
SCRIPTS = ("msub", "msup", "msubsup", "munder", "mover", "munderover")
LIMITS = ("max", "min", "argmax", "argmin")  # what is below them in a formula on a line of its own
LETTERS = "∞⊤∂∇"  # symbols without space around them
CLOSING = (")", "]", "}", "|", "!", "⟩")
THIN = "0.167em"


def typeset(markdown: str, page: str) -> str:
    r"""Formulas of a page, `$...$` in the text and `$$...$$` on lines of their own; code is left alone.

    >>> print(typeset(r"`$a$` is $a$, for \$5", "page.md"))
    `$a$` is <span class="math"><math><mrow><mi>a</mi></mrow></math></span>, for $5
    >>> print(typeset("| $|a_1|$ |\n|---|", "page.md").partition("<mi>")[0])
    | <span class="math"><math><mrow><mo stretchy="false" lspace="0" rspace="0">&#124;</mo><msub>
    >>> print(typeset("$$\nx^2\n$$", "page.md"))
    <span class="formula"><math display="block"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math></span>
    >>> typeset(r"half is $\half$", "page.md")
    Traceback (most recent call last):
        ...
    ValueError: page.md: '\\half' cannot be typeset: there is no \half
    """

    def replace(token: re.Match[str]) -> str:
        if token["stray"]:
            line = token.string.count("\n", 0, token.start())
            raise ValueError(f"{page}: a dollar that is not a formula is written \\$: {lines(token.string)[line]!r}")
        latex = token["block"] or token["inline"]
        if latex is None:
            return token["dollar"] or token["kept"]
        try:
            return mathml(latex.strip(), display=token["block"] is not None)
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise ValueError(f"{page}: {latex.strip()!r} cannot be typeset: {reason}") from error

    parts = ((code, "".join(group)) for code, group in runs(lines(markdown)))
    return "".join(text if code else TOKEN.sub(replace, text) for code, text in parts)


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def runs(text: list[str]) -> Iterator[tuple[bool, Iterator[str]]]:
    """Successive lines that are code, or that are not."""
    for code, group in groupby(zip(are_code(text), text, strict=True), key=lambda pair: pair[0]):
        yield code, (line for _, line in group)


def are_code(text: list[str]) -> Iterator[bool]:
    """Whether each line is code: between fences, or indented further than its container requires."""
    fence, limit, starts, code = "", 4, True, False
    for line in text:
        bare = line.strip()
        indent = len(line) - len(line.lstrip())
        if fence:
            yield True
            fence = "" if bare == fence else fence
        elif opening := FENCE.match(bare):
            fence, starts, code = opening[0], False, False
            yield True
        elif not bare:
            starts = True
            yield code
        else:
            code = indent >= limit and (starts or code)
            if not code and CONTAINER.match(bare):
                limit = indent + 8
            elif not code and starts:
                limit = min(limit, indent // 4 * 4 + 4)
            starts = bare.startswith(":::")  # options of the reference follow
            yield code


def mathml(latex: str, display: bool) -> str:
    """Markup that Markdown leaves as it is, in a paragraph as in a cell of a table."""
    if len(re.findall(r"(?<!\\)\{", latex)) != len(re.findall(r"(?<!\\)\}", latex)):
        raise ValueError("braces do not match")
    for pattern, spelling in SPELLINGS:
        latex = pattern.sub(spelling, latex)
    root = ElementTree.fromstring(convert(latex, display="block" if display else "inline", xmlns=""))
    root.attrib = {"display": "block"} if display else {}
    for element in list(root.iter()):
        check(element)
        respell(element, display)
    for element in list(root.iter()):
        space_signs(element)
        space_names(element)
    text = ElementTree.tostring(root, encoding="unicode")
    text = re.sub(r">([^<]+)<", lambda match: ">" + escaped(match[1]) + "<", text)
    return f'<span class="{"formula" if display else "math"}">{text}</span>'


def escaped(text: str) -> str:
    """Punctuation as entities, so that Markdown does not read it."""
    return re.sub(r"&\w+;|[!-/:-@\[-`{-~]", lambda match: match[0] if match[0][1:] else f"&#{ord(match[0])};", text)


def check(element: Element) -> None:
    """What latex2mathml passes over in silence."""
    if len(element) != CHILDREN.get(element.tag, len(element)):
        raise ValueError(f"{element.tag} with {len(element)} of {CHILDREN[element.tag]} parts")
    if element.tag != "mtext" and (element.text or "").startswith("\\") and (element.text or "") != "\\":
        raise ValueError(f"there is no {element.text}")


def respell(element: Element, display: bool) -> None:
    """Letters, names and relations as MathML Core, the part that browsers know, expects them."""
    text, variant = element.text or "", element.get("mathvariant", "normal")
    if text == "~" and element.tag == "mi":
        text = "∼"
    if element.tag in ("mi", "mo") and len(text) == 1:
        if text in LETTERS:
            element.tag = "mi"
        elif unicodedata.category(text) == "Sm":
            element.tag = "mo"
        if element.tag == "mi" and (text == "∇" or "Α" <= text <= "Ω"):  # capital Greek letters are upright
            element.set("mathvariant", "normal")
    if element.tag == "mo" and text.isalpha() and len(text) > 1 and text != "mod":
        element.tag = "mi"
        element.attrib = {}
    if element.tag == "mo" and text in ("|", "/") and "form" not in element.attrib:
        element.attrib |= {"lspace": "0", "rspace": "0"}
    if variant != "normal":
        del element.attrib["mathvariant"]
        text = "".join(in_style(letter, variant) for letter in text) if variant != "italic" else text
    if element.tag == "msup" and set(element[1].text or " ") <= set("′″‴"):  # these are raised, and small, already
        element.tag, element[1].tag = "mrow", "mi"
    if element.get("width") == "negativethinmathspace":
        element.set("width", f"-{THIN}")
    if display and element.tag == "msub" and element[0].text in LIMITS:
        element.tag = "munder"
    element.text = text or None


def in_style(letter: str, variant: str) -> str:
    """A letter of mathematics: μ in bold-italic is 𝝁."""
    name = re.sub(r"(LATIN|GREEK) (SMALL|CAPITAL) LETTER", r"\2", unicodedata.name(letter))
    return unicodedata.lookup(f"MATHEMATICAL {variant.replace('bold-', 'bold ').upper()} {name}")


def space_signs(row: Element) -> None:
    """A minus after an operator belongs to what follows."""
    for before, sign in pairwise(row):
        follows = before.tag in ("mo", "mspace") and before.text not in CLOSING
        if follows and sign.tag == "mo" and sign.text in ("−", "+", "±"):
            sign.set("form", "prefix")


def space_names(row: Element) -> None:
    """Thin spaces around log, max and the like, except beside brackets and operators."""
    if row.tag in CHILDREN:
        return
    for i in reversed(range(len(row))):
        if is_name(row[i]):
            if i + 1 < len(row) and not is_operator(row[i + 1]):
                row.insert(i + 1, Element("mspace", width=THIN))
            if i and (not is_operator(row[i - 1]) or "".join(row[i - 1].itertext()).endswith(CLOSING)):
                row.insert(i, Element("mspace", width=THIN))


def is_name(element: Element) -> bool:
    base = element[0] if element.tag in SCRIPTS else element
    return base.tag == "mi" and len(base.text or "") > 1 and (base.text or "").isalpha()


def is_operator(element: Element) -> bool:
    first = element[0] if element.tag == "mrow" and len(element) else element
    return first.tag in ("mo", "mspace") or (first.tag == "mi" and not first.text)
