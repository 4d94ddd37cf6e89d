"""Docstrings of public names are complete and true: parameters, defaults, fitted attributes, returns, examples."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import warnings
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest

import deciban as db
from deciban.data.files.scan import Scan
from deciban.display.explanation import Explanation
from deciban.display.summary import Summary
from deciban.evaluation.fitted_model import FittedModel
from deciban.evaluation.threshold_rates import Rates
from deciban.report import Report
from deciban.table import Table

griffe = pytest.importorskip("griffe", reason="docstrings are parsed by griffe: pip install '.[docs]'")

RESULTS = [Explanation, Summary, Table, Report, Rates, db.Evaluation, db.Roc]  # their fields are attributes
FAMILY = db.families.Family  # documents what all families do
SELF = {"self", "cls"}
UNFITTED = {"feature_names_in_": "only with names", "classes_": "only with classes", "beta_": "only of a temperature"}


# What is public ------------------------------------------------------------------------------------------------------


def things() -> Iterator[tuple[str, Any]]:
    """Public classes and functions, each once."""
    modules: tuple[Any, ...] = (db, db.families, db.priors)
    found = [(f"{m.__name__}.{name}", getattr(m, name)) for m in modules for name in m.__all__]
    yield from ((name, thing) for name, thing in found if not isinstance(thing, ModuleType) and thing not in RESULTS)
    yield from ((f"{kind.__module__}.{kind.__name__}", kind) for kind in (*RESULTS, Scan))


def classes() -> list[tuple[str, type]]:
    return [(name, thing) for name, thing in things() if inspect.isclass(thing)]


def engine_functions() -> Iterator[tuple[str, Any]]:
    for engine in ("dask", "spark"):
        try:
            module = import_module(f"deciban.engines.{engine}")
        except ImportError:
            continue
        yield from ((f"{module.__name__}.{name}", getattr(module, name)) for name in module.__all__)


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods that this library defines for a class; those of all families only for Family."""
    for name in dir(kind):
        owner = next(base for base in kind.__mro__ if name in vars(base))
        member = inspect.getattr_static(kind, name)
        member = getattr(member, "fn", member)  # behind scikit-learn's available_if
        member = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        shared = kind is not FAMILY and issubclass(kind, FAMILY) and hasattr(FAMILY, name)
        if inspect.isfunction(member) and owner.__module__.startswith("deciban") and name[0] != "_" and not shared:
            yield name, member


def functions() -> dict[str, Any]:
    """Public functions and methods; an inherited method once, by its first name."""
    found = {name: thing for name, thing in (*things(), *engine_functions()) if not inspect.isclass(thing)}
    found |= {f"{name}.{method}": function for name, kind in classes() for method, function in methods(kind)}
    return {name: function for function, name in reversed({f: n for n, f in reversed(found.items())}.items())}


CLASSES, FUNCTIONS = dict(classes()), functions()


def documentation(thing: Any) -> str:
    """The docstring; a method without one has that of the method it overrides."""
    return inspect.getdoc(thing) or ""


def doc_of(name: str, thing: Any) -> str:
    owner, _, method = name.rpartition(".")
    return documentation(getattr_of(CLASSES[owner], method) if owner in CLASSES else thing)


def getattr_of(kind: type, method: str) -> Any:
    """The first definition of a method that has a docstring, from the class up."""
    for base in kind.__mro__:
        member = vars(base).get(method)
        if member is not None and documentation(member):
            return member
    return None


@cache
def sections(text: str) -> dict[str, Any]:
    """The sections of a docstring by kind: items of lists by name."""
    parsed = griffe.Docstring(text).parse("numpy", warnings=False)
    named = {"parameters", "attributes"}
    return {s.kind.value: {i.name: i for i in s.value} if s.kind.value in named else s.value for s in parsed}


def parameters(thing: Any) -> dict[str, inspect.Parameter]:
    if inspect.isclass(thing) and thing.__init__ in (object.__init__, Exception.__init__):
        return {}
    if inspect.isclass(thing) and issubclass(thing, BaseException) and "__init__" not in vars(thing):
        return {}
    return {name: p for name, p in inspect.signature(thing).parameters.items() if name not in SELF}


# Parameters ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*CLASSES, *FUNCTIONS])
def test_parameters_are_those_of_the_signature(name: str) -> None:
    thing = CLASSES.get(name) or FUNCTIONS[name]
    found = sections(documentation(thing) if name in CLASSES else doc_of(name, thing))
    documented, expected = found.get("parameters", {}), parameters(thing)
    if thing in RESULTS or thing is FAMILY:
        assert not documented, f"{name} has attributes"
        documented = {field: found["attributes"][field] for field in expected}
    assert list(documented) == list(expected), name
    for parameter, item in documented.items():
        assert item.annotation, f"{name}: {parameter} has no type"
        assert item.description, f"{name}: {parameter} has no meaning"


@pytest.mark.parametrize("name", [*CLASSES, *FUNCTIONS])
def test_defaults_are_those_of_the_signature(name: str) -> None:
    thing = CLASSES.get(name) or FUNCTIONS[name]
    if thing in RESULTS:
        return
    documented = sections(documentation(thing) if name in CLASSES else doc_of(name, thing)).get("parameters", {})
    for parameter, declared in parameters(thing).items():
        default = documented[parameter].default
        if declared.default is inspect.Parameter.empty:
            assert default is None, f"{name}: {parameter} has no default"
        else:
            assert default is not None, f"{name}: the default of {parameter} is {declared.default!r}"
            assert ast.literal_eval(default) == declared.default, f"{name}: {parameter}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_and_targets_have_types(name: str) -> None:
    for parameter, declared in parameters(FUNCTIONS[name]).items():
        if parameter in ("X", "y", "collection", "sample_weight"):
            assert declared.annotation is not inspect.Parameter.empty, f"{name}: {parameter}"
            assert "Any" not in str(declared.annotation).replace("Sequence[Any]", ""), f"{name}: {parameter}"


# Attributes ----------------------------------------------------------------------------------------------------------


@cache
def fitted() -> list[Any]:
    """Every estimator, fitted once; tables with names, since arrays have no feature_names_in_."""
    table = {"a": [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0], "b": list("xyxyxxyy")}
    numbers, y = {"a": table["a"]}, [0, 0, 0, 1, 0, 1, 1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # eight rows are few
        models = [db.EvidenceClassifier(), db.NaiveBayes(), db.LogisticRegression(), db.SoftmaxRegression()]
        models += [
            db.CalibratedClassifier(),
            db.GeneralizedLinearModel("bernoulli"),
            db.GeneralizedLinearModel("poisson"),
        ]
        return [m.fit(table, y) for m in models] + [
            m.fit(numbers, y) for m in (db.GaussianDiscriminant(), db.Halfspace())
        ]


def properties(kind: type) -> set[str]:
    found = {name for name in dir(kind) if isinstance(inspect.getattr_static(kind, name), (property, cached_property))}
    return {name for name in found if not name.startswith("_")}


def test_every_estimator_is_fitted() -> None:
    estimators = {kind for kind in CLASSES.values() if issubclass(kind, FittedModel)}
    assert {type(model) for model in fitted()} == estimators
    assert len(estimators) == 8


@pytest.mark.parametrize("i", range(9))
def test_fitted_attributes_are_documented(i: int) -> None:
    model = fitted()[i]
    kind = type(model)
    learned = {name for name in {*vars(model), *properties(kind)} if name.endswith("_") and not name.startswith("_")}
    documented = sections(documentation(kind))["attributes"]
    assert not learned - set(documented), f"{kind.__name__} does not document these"
    assert not set(documented) - learned - set(UNFITTED), f"{kind.__name__} has no such attributes"
    for name, item in documented.items():
        assert item.annotation, f"{kind.__name__}: {name} has no type"
        assert len(item.description.split()) > 2 or item.description == "−d.", f"{kind.__name__}: what is {name}?"


@pytest.mark.parametrize("name", [name for name, kind in CLASSES.items() if not issubclass(kind, FittedModel)])
def test_attributes_of_other_classes_are_documented(name: str) -> None:
    kind = CLASSES[name]
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    own = {f for f in fields | properties(kind) if not f.startswith("_")}
    if issubclass(kind, FAMILY) and kind is not FAMILY:
        own -= properties(FAMILY)
    found = sections(documentation(kind))
    documented = found.get("attributes", {})
    assert not own - {*documented, *found.get("parameters", {})}, f"{name} does not document these"
    set_by_init = {"where", "row", "problem", "fragments", "on_progress"}
    absent = {a for a in documented if a not in own | set_by_init and not hasattr(kind, a)}
    assert not absent, f"{name} has no such attributes"
    assert all(item.annotation and item.description for item in documented.values()), name


# Returns, examples, references ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_returned_is_documented(name: str) -> None:
    function = FUNCTIONS[name]
    returns = str(inspect.signature(function).return_annotation) not in ("None", "NoneType")
    found = sections(doc_of(name, function))
    assert ("returns" in found) == returns, name
    assert all(item.description for item in found.get("returns", ())), f"{name}: what is it?"


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_a_purpose_and_examples(name: str) -> None:
    text = documentation(CLASSES[name])
    purpose = text.partition("\n")[0]
    assert purpose.endswith("."), f"{name}: the first line is a sentence"
    assert "=" not in purpose.partition('="')[0], f"{name}: the first line is the purpose, the formula follows"
    assert "examples" in sections(text), name
    assert "See Also\n--------" in text, name


@pytest.mark.parametrize("name", [name for name, thing in things() if not inspect.isclass(thing)])
def test_functions_have_examples(name: str) -> None:
    text = documentation(FUNCTIONS[name])
    assert "examples" in sections(text), name
    assert "See Also\n--------" in text, name


@pytest.mark.parametrize("name", [*CLASSES, *FUNCTIONS])
def test_sections_are_in_order_and_have_titles(name: str) -> None:
    thing = CLASSES.get(name) or FUNCTIONS[name]
    text = documentation(thing) if name in CLASSES else doc_of(name, thing)
    order = ["Parameters", "Attributes", "Returns", "Raises", "Warns", "See Also", "Notes", "Examples"]
    lines = text.split("\n")
    titles = [line for line, below in pairwise(lines) if below and set(below) == {"-"}]
    assert titles == sorted(titles, key=order.index), name
    assert ">>>" not in text.partition("Examples\n--------")[0], f"{name}: sessions are under Examples"


@pytest.mark.parametrize("name", [*CLASSES, *FUNCTIONS])
def test_references_exist(name: str) -> None:
    thing = CLASSES.get(name) or FUNCTIONS[name]
    text = documentation(thing) if name in CLASSES else doc_of(name, thing)
    for line in text.partition("See Also\n--------\n")[2].partition("\n\n")[0].splitlines():
        target, separator, purpose = line.partition(" : ")
        assert separator, f"{name}: {line}"
        assert purpose, f"{name}: {line}"
        if target.startswith("deciban."):
            assert resolved(target) is not None, f"{name}: there is no {target}"
        else:
            assert target in text + " ".join(FUNCTIONS), f"{name}: there is no {target}"


def resolved(target: str) -> Any:
    """The thing at a dotted name."""
    thing: Any = db
    for part in target.split(".")[1:]:
        try:
            thing = inspect.getattr_static(thing, part) if inspect.isclass(thing) else getattr(thing, part)
        except AttributeError:
            try:
                thing = import_module(f"{thing.__name__}.{part}")
            except ImportError as error:
                return object() if "engines" in target and "needs" in str(error) else None
    return thing
