"""The HTML page of a report: one self-contained file."""

from __future__ import annotations

import html as escaping
import json
import re
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from deciban.errors import DecibanError
from deciban.plots import boundary_chart as boundary
from deciban.plots import evidence_charts as evidence
from deciban.plots import linear_charts as linear
from deciban.plots import quality_charts as quality
from deciban.plots.colours import AGAINST, FOR, GREY, INK, MAGENTA

# colours that the page's style sheet sets, so that one drawing serves light, dark and print
STYLED = {FOR: "var(--for)", AGAINST: "var(--against)", INK: "var(--ink)", GREY: "var(--faint)"}
STYLED |= {MAGENTA: "var(--twin)", "white": "var(--paper)"}
# scripts of the page, each of which may use those before it
SCORING = ("cells", "formulas", "scoring")
SCRIPTS = ("parts", "charts", "head", "quality", "threshold", "evidence", "form", "prediction", "linear", "page")


def html(figures: dict[str, Any]) -> str:
    """The page, with figures, charts, style and scripts."""
    require_libraries()
    parts = {
        "title": escaping.escape(figures["title"]),
        "style": _asset("page.css"),
        "vega": _script(_vega()),
        "figures": _json(figures),
        "charts": _json(_charts(figures)),
        "scripts": _script("\n".join(map(_asset, _scripts(figures)))),
    }
    # in one pass, so that nothing inside a part is replaced
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def _scripts(figures: dict[str, Any]) -> list[str]:
    """The scripts that a report needs: the tokenizer only for models that read text."""
    columns = (figures["scoring"] or {}).get("columns", ())
    reads_text = any(column["kind"] == "text" for column in columns)
    scoring = [*(["terms"] if reads_text else []), *(SCORING if columns else [])]
    return [f"{name}.js" for name in (*scoring, *SCRIPTS)]


def _asset(name: str) -> str:
    return files("deciban.report").joinpath("page", name).read_text(encoding="utf-8")


def require_libraries() -> None:
    """Raise an error if a library that the page needs is not installed, before a report is computed."""
    for module, package in (("altair", "altair"), ("vl_convert", "vl-convert-python")):
        try:
            installed = find_spec(module) is not None
        except ValueError:  # it was removed from sys.modules
            installed = False
        if not installed:
            raise DecibanError(f"a page needs {package}: pip install 'deciban[plot]'")


@cache
def _vega() -> str:
    """Vega and Vega-Lite; bundling them takes seconds."""
    bundle: str = import_module("vl_convert").javascript_bundle()
    return bundle


def _json(value: Any) -> str:
    r"""JSON that is safe inside a script element.

    >>> _json("</script>")
    '"\\u003c/script\\u003e"'
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _script(source: str) -> str:
    r"""A script that cannot end its element early; in strings and regular expressions \x3c is <.

    >>> _script('"</script>"')
    '"\\x3c/script>"'
    """
    return re.sub(r"<(?=/?script|!--)", r"\\x3c", source, flags=re.IGNORECASE)


def _charts(figures: dict[str, Any]) -> dict[str, Any]:
    """The charts without their data, by name."""
    unit = (figures["evidence"] or {}).get("unit", "decibans")
    templates = _templates(unit, (figures["linear"] or {}).get("unit", "coefficient"))
    plane = figures["boundary"]
    return templates | ({"boundary": _template(boundary.boundary(plane, ""))} if plane else {})


@cache
def _templates(unit: str, coefficient: str) -> dict[str, Any]:
    """The charts of every report, without data; building them takes a second."""
    charts = {
        "roc": quality.roc_lines([""], quality.threshold_point()),
        "precision_recall": quality.precision_lines([""], quality.threshold_point()),
        "calibration": quality.calibration_bins("probability given", "share observed"),
        "residuals": quality.scatter(),
        "ranking": evidence.ranking_bars(unit),
        "levels": evidence.levels("", "share", unit),
        "numbers": evidence.numbers("", "density", unit),
        "steps": evidence.steps("", "density", unit),
        "pair": evidence.pair_map(""),
        "terms": evidence.term_bars(),
        "waterfall": evidence.waterfall_bars(unit),
        "coefficients": linear.interval_points(coefficient),
        "path": linear.convergence(),
    }
    return {name: _template(chart) for name, chart in charts.items()}


def _template(chart: Any) -> Any:
    """A chart without data, which the page fills in, and without altair's style."""
    left_out = {"datasets", "config", "title", "$schema"}
    return _styled({key: value for key, value in chart.to_dict().items() if key not in left_out})


def _styled(value: Any) -> Any:
    """Colours replaced by variables of the style sheet."""
    if isinstance(value, dict):
        return {key: _styled(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_styled(inner) for inner in value]
    return STYLED.get(value, value) if isinstance(value, str) else value
