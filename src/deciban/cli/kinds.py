"""The kinds of models that can be fitted, and what is said of them by words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

from deciban.cli.options import require_column

SETTINGS = {  # of models, and the options that set them
    "families": "--families",
    "smoothing": "--smoothing",
    "missing": "--missing",
    "class_prior": "--prior",
    "shrinkage": "--shrinkage",
    "l2": "--l2",
    "pairs": "--pairs",
    "trees": "--trees",
    "max_weight_rows": "--max-weight-rows",
    "random_state": "--random-state",
}
NUMBERS = ("gaussian", "exponential", "uniform", "poisson", "multinomial", "binned")  # families of numbers
FAMILIES = ("bernoulli", "categorical", *NUMBERS)
# what is said of a column → what its cells are read as
READ_AS: dict[str, Literal["number", "text"]] = {
    **dict.fromkeys((*NUMBERS, "number"), "number"),
    **dict.fromkeys(("text", "category"), "text"),
}
WORDS = tuple(dict.fromkeys((*FAMILIES, *READ_AS)))


@dataclass(frozen=True)
class Kind:
    """A kind of model: its class, the settings that a user may give, and those that make it this kind."""

    name: str
    takes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    streams: bool = True  # learns batch by batch


KINDS = {
    "evidence": Kind(
        "EvidenceClassifier", ("class_prior", "pairs", "trees", "max_weight_rows", "random_state", "text")
    ),
    "naive-bayes": Kind("NaiveBayes", ("families", "smoothing", "missing", "class_prior", "text")),
    "lda": Kind("GaussianDiscriminant", ("class_prior", "shrinkage"), {"covariance": "shared"}),
    "qda": Kind("GaussianDiscriminant", ("class_prior", "shrinkage"), {"covariance": "per-class"}),
    "logistic": Kind("LogisticRegression", ("l2",), streams=False),
    "softmax": Kind("SoftmaxRegression", ("l2",), streams=False),
}
DEFAULT = "evidence"


def model_of(name: str, given: Mapping[str, Any], words: Mapping[str, str], calibrate: str | None) -> Any:
    """A model of a kind with the settings that were given, and families for columns of which one was said, or text."""
    import deciban
    from deciban.errors import DecibanError

    kind, settings = KINDS[name], {key: _value(key, value) for key, value in given.items()}
    said = {column: word for column, word in words.items() if word in FAMILIES}
    text = [column for column, word in words.items() if word == "text"]
    if text and "families" in kind.takes:
        said |= dict.fromkeys(text, "text")
    elif text and "text" not in kind.takes:
        raise DecibanError(f"--text {text[0]}: {name} reads no documents; --model {_takers('text')} does")
    if said and "families" in settings:
        raise DecibanError("--families auto chooses families: give none in --columns, only category or number")
    if said and "families" not in kind.takes:
        column, word = next(iter(said.items()))
        raise DecibanError(
            f"--columns {column}={word}: {name} knows no families, only text, category and number; "
            f"--model {_takers('families')} does"
        )
    for key in settings:
        if key not in kind.takes:
            raise DecibanError(f"{SETTINGS[key]} is for --model {_takers(key)}, and the model is {name}")
    if said:
        settings["families"] = _families(said)
    elif text:
        settings["text"] = text
    model = getattr(deciban, kind.name)(**kind.settings, **settings)
    return model if calibrate is None else deciban.CalibratedClassifier(model, method=calibrate)  # type: ignore[arg-type]


def _takers(setting: str) -> str:
    """
    >>> _takers("l2")
    'logistic or softmax'
    """
    return " or ".join(name for name, kind in KINDS.items() if setting in kind.takes)


def words_of(given: Sequence[str] | None, names: Sequence[str]) -> dict[str, str]:
    """What is said of columns: a=gaussian,b=category, or one by one. A name may hold a comma or a "=".

    >>> words_of(["a=gaussian,b=category", "x,y=z=poisson"], ["a", "b", "x,y=z"])
    {'a': 'gaussian', 'b': 'category', 'x,y=z': 'poisson'}
    """
    from deciban.errors import DecibanError

    found: dict[str, str] = {}
    for value in given or ():
        for pair in [value] if value.rpartition("=")[0] in names else value.split(","):
            name, equals, word = pair.rpartition("=")
            if not equals:
                raise DecibanError(f"--columns: {pair!r} is not of the form COLUMN=FAMILY")
            require_column(names, name, "--columns")
            if word not in WORDS:
                raise DecibanError(f"--columns: {word!r} is no family; there are {', '.join(WORDS)}")
            if name in found:
                raise DecibanError(f"--columns: column {name!r} is given twice")
            found[name] = word
    return found


def _families(said: Mapping[str, str]) -> dict[Any, Any]:
    """Columns of a Multinomial are the counts of one row, so they go together; all others are apart."""
    from deciban import families

    counts = tuple(column for column, word in said.items() if word == "multinomial")
    apart = {column: word for column, word in said.items() if word != "multinomial"}
    found: dict[Any, Any] = {column: getattr(families, word.capitalize())() for column, word in apart.items()}
    return found | ({counts: families.Multinomial()} if counts else {})


WHOLE = ("pairs", "trees", "max_weight_rows", "random_state")
MOST = {"smoothing": inf, "shrinkage": 1.0, "l2": inf} | dict.fromkeys(WHOLE, inf)  # of settings that are numbers
LEAST = {"max_weight_rows": 2}  # where it is not 0
INSTEAD = {"smoothing": ("auto",), "shrinkage": ("auto", "oas"), "pairs": ("auto",)}  # of a number


def _value(key: str, given: str) -> Any:
    """A word, or a number from the least to the most that there is."""
    from deciban.errors import DecibanError

    instead, least = INSTEAD.get(key, ()), LEAST.get(key, 0)
    if key not in MOST or given in instead:
        return given
    try:
        value = float(given)
    except ValueError:
        value = -1.0
    whole = "whole " if key in WHOLE else ""
    if not least <= value <= MOST[key] or value == inf or (whole and value != int(value)):
        words = "".join(f"{word}, or " for word in instead)
        numbers = f"a {whole}number of {least} or more" if MOST[key] > 1 else "a number from 0 to 1"
        raise DecibanError(f"{SETTINGS[key]} is {words}{numbers}, not {given!r}")
    return value if not whole else int(given) if given.isdecimal() else int(value)
