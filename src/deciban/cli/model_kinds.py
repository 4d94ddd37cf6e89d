"""The kinds of models that `deciban fit` fits, and the options for their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from importlib import import_module
from math import inf
from typing import Any, Literal

import deciban
from deciban.cli.options import OptionGroup, option, require_column
from deciban.families import FAMILIES

CELL_TYPES: dict[str, Literal["number", "text"]] = {"number": "number", "text": "text", "category": "text"}


def family_words() -> dict[str, str]:
    """The words for families in --columns, with the names of their classes."""
    return {family.word: name for name, family in FAMILIES.items() if family.word}


def column_words() -> list[str]:
    """The words that --columns takes: families and types."""
    return [*family_words(), *CELL_TYPES]


def cell_type(word: str) -> Literal["number", "text"] | None:
    """The type to read a column as; None if it is inferred."""
    if word in CELL_TYPES:
        return CELL_TYPES[word]
    return "number" if _family(word).reads_numbers else None


def _family(word: str) -> Any:
    name = family_words()[word]
    return getattr(import_module(FAMILIES[name].module), name)


@dataclass(frozen=True)
class Kind:
    """A kind of model: its class, the parameters that options may set, and those that define the kind."""

    name: str
    takes: tuple[str, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    streams: bool = True  # is fitted batch by batch


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


@dataclass(frozen=True)
class Number:
    """The range of a numeric parameter, and words allowed in place of a number."""

    least: int = 0
    most: float = inf
    whole: bool = False
    words: tuple[str, ...] = ()


model_option = partial(option, rich_help_panel="Model")


def number_option(help: str, *words: str, **limits: Any) -> Any:
    """An option that takes a number or one of the words."""
    text_option = model_option(metavar="|".join((*words, "NUMBER")), help=help)
    return field(default=None, metadata={**text_option.metadata, "number": Number(words=words, **limits)})


class ModelSettings(OptionGroup):
    """Parameters of models, by name; None is the model's default."""

    families: str | None = model_option(
        "--families", among=["auto"], help="naive-bayes: select families of numbers by leave-one-out."
    )
    smoothing: str | None = number_option("naive-bayes: the Laplace pseudocount (default 1).", "auto")
    missing: str | None = model_option(
        "--missing",
        among=["skip", "category"],
        help="naive-bayes: skip missing values, or make them a category of their own.",
    )
    class_prior: str | None = model_option(
        "--prior", among=["empirical", "laplace", "uniform"], help="The prior probabilities of classes."
    )
    shrinkage: str | None = number_option(
        "lda, qda: shrinkage of the covariance, from 0 to 1.", "auto", "oas", most=1.0
    )
    l2: str | None = number_option("logistic, softmax: the L2 penalty.")
    pairs: str | None = number_option("evidence: the maximum number of pairs to model jointly.", "auto", whole=True)
    trees: str | None = number_option("evidence: the number of decision trees (default 128, 0 for none).", whole=True)
    max_weight_rows: str | None = number_option(
        "evidence: the maximum number of rows for trees and weights (default 200000).", least=2, whole=True
    )
    random_state: str | None = number_option(
        "evidence: the seed for growing trees and sampling rows (default 0).", whole=True
    )

    @property
    def params(self) -> dict[str, str]:
        """The parameters that were given."""
        return {name: value for name, value in vars(self).items() if value is not None}


NUMBERS: dict[str, Number] = {f.name: f.metadata["number"] for f in fields(ModelSettings) if "number" in f.metadata}


def option_for(parameter: str) -> str:
    """
    >>> option_for("class_prior"), option_for("max_weight_rows")
    ('--prior', '--max-weight-rows')
    """
    return "--prior" if parameter == "class_prior" else f"--{parameter.replace('_', '-')}"


def model_of(name: str, values: Mapping[str, str], words: Mapping[str, str], calibrate: str | None) -> Any:
    """An unfitted model of a kind, from the values of options and the words (families, types) for columns."""
    kind, params = KINDS[name], {key: _parsed(key, value) for key, value in values.items()}
    families = {column: word for column, word in words.items() if word in family_words()}
    text = [column for column, word in words.items() if word == "text"]
    if text and "families" in kind.takes:
        families |= dict.fromkeys(text, "text")
    elif text and "text" not in kind.takes:
        raise deciban.DecibanError(f"--text {text[0]}: {name} reads no documents; use --model {_kinds_with('text')}")
    if families and "families" in params:
        raise deciban.DecibanError("--families auto selects the families: use only category and number in --columns")
    if families and "families" not in kind.takes:
        column, word = next(iter(families.items()))
        raise deciban.DecibanError(
            f"--columns {column}={word}: {name} takes no families, only text, category and number; "
            f"use --model {_kinds_with('families')}"
        )
    for key in params:
        if key not in kind.takes:
            raise deciban.DecibanError(f"{option_for(key)} is for --model {_kinds_with(key)}, not for {name}")
    if families:
        params["families"] = _families(families)
    elif text:
        params["text"] = text
    model = getattr(deciban, kind.name)(**kind.params, **params)
    return model if calibrate is None else deciban.CalibratedClassifier(model, method=calibrate)  # type: ignore[arg-type]


def _kinds_with(parameter: str) -> str:
    """
    >>> _kinds_with("l2")
    'logistic or softmax'
    """
    return " or ".join(name for name, kind in KINDS.items() if parameter in kind.takes)


def parse_columns(values: Sequence[str] | None, names: Sequence[str]) -> dict[str, str]:
    """The family or type of each column in --columns a=gaussian,b=category. Names may contain a comma or a "=".

    >>> parse_columns(["a=gaussian,b=category", "x,y=z=poisson"], ["a", "b", "x,y=z"])
    {'a': 'gaussian', 'b': 'category', 'x,y=z': 'poisson'}
    """
    words: dict[str, str] = {}
    for value in values or ():
        for pair in [value] if value.rpartition("=")[0] in names else value.split(","):
            name, equals, word = pair.rpartition("=")
            if not equals:
                raise deciban.DecibanError(f"--columns: {pair!r} is not of the form COLUMN=FAMILY")
            require_column(names, name, "--columns")
            if word not in column_words():
                raise deciban.DecibanError(
                    f"--columns: there is no family {word!r}; there are {', '.join(column_words())}"
                )
            if name in words:
                raise deciban.DecibanError(f"--columns: column {name!r} is given twice")
            words[name] = word
    return words


def _families(words: Mapping[str, str]) -> dict[Any, Any]:
    """A family for each column; the columns of a joint family, such as a Multinomial, are one block."""
    families: dict[Any, Any] = {}
    for word in dict.fromkeys(words.values()):
        family = deciban.families.Text if word == "text" else _family(word)
        columns = tuple(column for column, other in words.items() if other == word)
        joint = family.joint and word != "text"  # each column of documents is a block
        families |= {columns: family()} if joint else {column: family() for column in columns}
    return families


def _parsed(parameter: str, text: str) -> Any:
    allowed = NUMBERS.get(parameter)
    if allowed is None or text in allowed.words:
        return text
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not allowed.least <= value <= allowed.most or value == inf or (allowed.whole and value != int(value)):
        words = "".join(f"{word}, or " for word in allowed.words)
        numbers = f"a {'whole ' * allowed.whole}number of at least {allowed.least}"
        numbers = numbers if allowed.most > 1 else "a number from 0 to 1"
        raise deciban.DecibanError(f"{option_for(parameter)} must be {words}{numbers}, not {text!r}")
    return value if not allowed.whole else int(text) if text.isdecimal() else int(value)
