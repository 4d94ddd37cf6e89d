"""Imports go downward only, heavy libraries stay in their rooms, and every public name says what it does."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import deciban as db
from deciban.codec.registry import HOMES

ROOT = Path(db.__file__).parent
ROOMS = [  # from the bottom up; a room imports from itself and from rooms below
    {"late"},
    {"types", "errors"},
    {"table"},
    {"charts"},
    {"packing"},
    {"storage"},
    {"_kernels"},
    {"batch"},
    {"contributions"},
    {"schema"},
    {"sources"},
    {"statistics"},
    {"separation", "responses"},
    {"families"},
    {"priors"},
    {"plans"},
    {"choices"},
    {"generative"},
    {"held_out"},
    {"weighing"},
    {"design"},
    {"linear"},
    {"explain", "summary"},
    {"choosing"},
    {"codec"},
    {"evaluation"},
    {"report"},
    {"models", "filtering"},
    {"engines"},
    {"cli"},
]
HEIGHT = {name: height for height, names in enumerate(ROOMS) for name in names}
FILES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
HEAVY = {"scipy", "pyarrow", "sklearn", "typer", "rich", "pandas", "hypothesis"}
LAZY = "__init__.py"  # the public names, each imported when it is asked for


def room(path):
    return path.parts[0].removesuffix(".py")


def imports(path):
    """Every module imported anywhere in a file, inside functions or late too, as dotted names."""
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "late":
            (name,) = node.args
            assert isinstance(name, ast.Constant), f"{path}: late() is given the name of a module"
            yield name.value


def rooms_imported(path):
    return {name.split(".")[1] for name in imports(path) if name.startswith("deciban.")}


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_go_downward_only(path):
    if str(path) == LAZY:
        return
    assert room(path) in HEIGHT, f"{path}: give the room a place in ROOMS"
    for other in rooms_imported(path):
        assert other == room(path) or HEIGHT[other] < HEIGHT[room(path)], f"{path} imports upward, from {other}"


def test_the_rooms_are_those_that_exist():
    assert {room(path) for path in FILES} - {"__init__"} == set(HEIGHT) - {"_kernels"}


@pytest.mark.parametrize(
    ("library", "owners"),
    [
        # the demo takes iris from scikit-learn's data sets
        ("sklearn", {"models", "cli"}),
        ("pyarrow", {"sources", "engines", "cli", "table"}),
        ("dask", {"engines"}),
        ("distributed", {"engines"}),
        ("pyspark", {"engines"}),
        ("pandas", set()),
        ("polars", set()),
        ("duckdb", set()),
        ("altair", {"charts"}),
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
    assert {"pyarrow", "pyarrow.compute"} <= set(imports(Path("sources/arrow.py")))
    assert "deciban.design" in set(imports(Path("codec/soundness.py")))


def test_a_file_imports_nothing_above_the_codec():
    for module, _ in HOMES.values():
        package, name, *_ = module.split(".")
        assert package == "deciban"
        assert HEIGHT[name] < HEIGHT["codec"], module


def test_import_alone_is_light():
    assert not modules_after("import deciban") & {"sklearn", "pyarrow", "pandas", "scipy", "altair"}
    assert not modules_after("import deciban; deciban.CalibratedClassifier, deciban.evaluate") & {"altair", "contourpy"}
    assert "sklearn" not in modules_after("import deciban; deciban.families.Gaussian(); deciban.priors.Laplace()")
    assert "sklearn" not in modules_after("import deciban.cli")
    for room in ("weighing.weighed", "explain", "held_out", "choosing", "codec.parts", "sources.sampling", "plans"):
        assert not modules_after(f"import deciban.{room}") & HEAVY, room


# Public names --------------------------------------------------------------------------------------------------------


def public_classes():
    for name in db.__all__:
        found = getattr(db, name)
        if isinstance(found, type):
            yield name, found
    for module in (db.families, db.priors):
        for name, found in ((name, getattr(module, name)) for name in module.__all__):
            if (
                isinstance(found, type)
                and found.__module__.startswith("deciban.families")
                and "__init__" in vars(found)
            ):
                yield f"{module.__name__}.{name}", found


def test_public_names_are_there_and_listed():
    assert set(db.__all__) <= set(dir(db))
    for name in db.__all__:
        assert getattr(db, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(db, "nothing")  # noqa: B009


@pytest.mark.parametrize(("name", "found"), dict(public_classes()).items())
def test_public_names_have_an_example(name, found):
    machinery = {"Context"}  # what families speak of, not what people call
    assert name.split(".")[-1] in machinery or ">>>" in (found.__doc__ or ""), name
