"""Imports go downward only, heavy libraries stay in their rooms, and every public name says what it does."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import deciban as db
from deciban.persist.registry import HOMES

ROOT = Path(db.__file__).parent
ROOMS = [  # from the bottom up; a room imports from itself and from rooms below
    {"errors", "types", "table", "contributions", "lazy", "_kernels", "_version"},
    {"data", "plots"},
    {"statistics", "export", "display"},
    {"families"},
    {"generative"},
    {"linear", "evidence"},
    {"evaluation", "persist"},
    {"report", "mail"},
    {"estimators", "engines"},
    {"cli"},
]
BASE = ROOMS[0]  # loose modules that every room speaks of, and each other
HEIGHT = {name: height for height, names in enumerate(ROOMS) for name in names}
FILES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
HEAVY = {"scipy", "pyarrow", "sklearn", "typer", "rich", "pandas", "hypothesis"}
PUBLIC = {"__init__.py", "priors.py"}  # namespaces of public names


def room(path):
    return path.parts[0].removesuffix(".py")


@cache
def nodes(path):
    """All nodes of a file's syntax tree."""
    return list(ast.walk(ast.parse((ROOT / path).read_text())))


@cache
def imports(path):
    """Every module imported anywhere in a file, inside functions or lazily too, as dotted names."""
    return list(imported(path))


def imported(path):
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "lazy":
            (name,) = node.args
            assert isinstance(name, ast.Constant), f"{path}: lazy() is given the name of a module"
            yield name.value


def rooms_imported(path):
    return {name.split(".")[1] for name in imports(path) if name.startswith("deciban.")}


def test_imports_go_downward_only():
    for path in FILES:
        if str(path) in PUBLIC:
            continue
        assert room(path) in HEIGHT, f"{path}: give the room a place in ROOMS"
        for other in rooms_imported(path):
            below = other == room(path) or {other, room(path)} <= BASE or HEIGHT[other] < HEIGHT[room(path)]
            assert below, f"{path} imports upward, from {other}"


def test_the_rooms_are_those_that_exist():
    built = {"_kernels", "_version"}  # by CMake
    assert {room(path) for path in FILES if str(path) not in PUBLIC} - built == set(HEIGHT) - built


@pytest.mark.parametrize(
    ("library", "owners"),
    [
        # the demo takes iris from scikit-learn's data sets
        ("sklearn", {"estimators", "cli"}),
        ("pyarrow", {"data", "engines", "cli", "table"}),
        ("dask", {"engines"}),
        ("distributed", {"engines"}),
        ("pyspark", {"engines"}),
        ("pandas", set()),
        ("polars", set()),
        ("duckdb", set()),
        ("altair", {"plots"}),
        ("typer", {"cli"}),
    ],
)
def test_heavy_libraries_stay_in_their_rooms(library, owners):
    users = {room(path) for path in FILES if any(name.split(".")[0] == library for name in imports(path))}
    assert users <= owners


def test_only_models_use_scikit_learn_for_more_than_data():
    used = {name for path in FILES if room(path) == "cli" for name in imports(path) if name.startswith("sklearn")}
    assert used <= {"sklearn.datasets.load_iris"}


def modules_after(statement):
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_late_imports_are_seen():
    """The rules above hold for them, too."""
    assert {"pyarrow", "pyarrow.compute"} <= set(imports(Path("data/arrow.py")))
    assert "deciban.evidence.folds" in set(imports(Path("evidence/weights.py")))


def test_a_file_imports_nothing_above_the_codec():
    for module, _ in HOMES.values():
        package, name, *_ = module.split(".")
        assert package == "deciban"
        assert HEIGHT[name] < HEIGHT["persist"], module


def test_import_alone_is_light():
    assert not modules_after("import deciban") & {"sklearn", "pyarrow", "pandas", "scipy", "altair"}
    assert not modules_after("import deciban; deciban.CalibratedClassifier, deciban.evaluate") & {"altair", "contourpy"}
    used = "import deciban.cli; deciban.families.Gaussian(); deciban.priors.Laplace()"
    assert "sklearn" not in modules_after(used)
    light = "evidence.weighted_evidence display.explanation generative.held_out generative.selection generative.plan"
    light += " persist.model_file data.sampling"
    assert not modules_after("; ".join(f"import deciban.{module}" for module in light.split())) & HEAVY


# What a room may ask of another ---------------------------------------------------------------------------------------

OTHERS = {  # names with an underscore that other libraries document or leave no other way to
    "_replace": "a named tuple's public method",
    "_fields": "a named tuple's public attribute",
    "_asdict": "a named tuple's public method",
    "_getframe": "sys._getframe, to find the caller that a warning is about",
    "_get_param_names": "scikit-learn's list of an estimator's parameters",
    "_meta": "Dask's empty example of a collection",
    "_jdf": "Spark's plan, which only the Java object has",
}
ADAPTERS = {  # where models of other libraries are recognised by their methods
    "evaluation/fitted_model.py": "capabilities of our own models",
    "evaluation/evaluation_rows.py": "any classifier with predict_proba can be evaluated",
    "evaluation/learning_curve.py": "one model or several, of any library",
    "evaluation/boundary.py": "any classifier's boundary can be drawn",
}
MODELS = {"model", "models", "own", "estimator", "fitted", "classifier", "inner"}
SAME_SUBJECT = {  # a file name that occurs in several rooms, and why it means the same there
    "__init__.py": "every package has one",
    "bernoulli.py": "the distribution: a density of features, and of a response",
    "exponential.py": "the distribution: a density of features, and of a response",
    "gaussian.py": "the distribution: a density of features, and of a response",
    "multinomial.py": "the distribution: a density of features, and of a response",
    "poisson.py": "the distribution: a density of features, and of a response",
    "priors.py": "deciban.priors, the public name of families/priors.py",
}


def private(name):
    return name.startswith("_") and not name.startswith("__") and not name.endswith("_")


def defined_in(path):
    """Names that are defined in a file: functions, classes, attributes, fields."""
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own(node.value):
            yield node.attr


def is_own(node):
    """Whether an expression is the object itself, or its class."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in {"super", "vars"} or (node.func.id == "type" and is_own(node.args[0]))
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}


def test_private_attributes_stay_in_their_room():
    defined = {}  # the private names of each room
    for path in FILES:
        defined.setdefault(room(path), set()).update(filter(private, defined_in(path)))
    for path in FILES:
        known = defined[room(path)] | set(OTHERS)
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and private(node.attr) and not is_own(node.value):
                words = f"{path}:{node.lineno} uses {ast.unparse(node)}, which is private to another room"
                assert node.attr in known, words


def test_models_are_not_probed():
    """What a model can do is asked of the protocol FittedModel; one adapter tells models of other libraries apart."""
    for path in FILES:
        if room(path) == "estimators" or str(path) in ADAPTERS:
            continue
        for node in nodes(path):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if called and node.func.id in {"hasattr", "getattr"}:
                asked = ast.unparse(node.args[0]).split(".")[-1]
                assert asked not in MODELS, f"{path}:{node.lineno} probes a model: {ast.unparse(node)}"


def test_file_names_are_used_once():
    places = {}
    for path in FILES:
        places.setdefault(path.name, []).append(str(path))
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert set(twice) <= set(SAME_SUBJECT), {name: twice[name] for name in set(twice) - set(SAME_SUBJECT)}


def test_there_are_at_most_ten_layers():
    assert len(ROOMS) <= 10


# Public names --------------------------------------------------------------------------------------------------------


def public_classes():
    for name in db.__all__:
        if isinstance(kind := getattr(db, name), type):
            yield name, kind
    for module in (db.families, db.priors):
        for name, kind in ((name, getattr(module, name)) for name in module.__all__):
            ours = isinstance(kind, type) and kind.__module__.startswith("deciban.families")
            if ours and "__init__" in vars(kind):
                yield f"{module.__name__}.{name}", kind


def test_public_names_are_there_and_listed():
    assert set(db.__all__) <= set(dir(db))
    for name in db.__all__:
        assert getattr(db, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(db, "nothing")  # noqa: B009


def test_public_names_have_an_example():
    machinery = {"Context"}  # what families speak of, not what people call
    for name, kind in public_classes():
        assert name.split(".")[-1] in machinery or ">>>" in (kind.__doc__ or ""), name
