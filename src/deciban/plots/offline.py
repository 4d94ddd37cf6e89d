"""Charts whose HTML needs no network: altair's, with Vega inside the file instead of loaded from a CDN."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import altair

NOT_INLINE = {"base_url", "fullhtml", "requirejs", "inline"}  # options of to_html that ask for something else


class SafeEncoder(json.JSONEncoder):
    r"""JSON that cannot end the script element around it.

    >>> json.dumps("</script>", cls=SafeEncoder)
    '"\\u003c/script>"'
    """

    def encode(self, value: Any) -> str:
        return super().encode(value).replace("<", "\\u003c")


class OfflineHtml:
    """`save("chart.html")` and `to_html()` with `inline=True`; other formats and options are altair's."""

    def save(self, fp: Any, format: Any = None, *args: Any, **options: Any) -> None:
        """As altair's; an HTML file holds all that it needs, unless `inline=False`."""
        suffix = Path(fp).suffix.lstrip(".") if isinstance(fp, (str, Path)) else None
        defaults = {"inline": True, "json_kwds": {"cls": SafeEncoder}} if (format or suffix) == "html" else {}
        super().save(fp, format, *args, **(defaults | options))  # type: ignore[misc]

    def to_html(self, *args: Any, **options: Any) -> str:
        """As altair's; the page holds all that it needs, unless an option says otherwise."""
        inline = not args and not NOT_INLINE & options.keys()
        defaults: dict[str, Any] = {"json_kwds": {"cls": SafeEncoder}} | ({"inline": True} if inline else {})
        html: str = super().to_html(*args, **(defaults | options))  # type: ignore[misc]
        return html


class Chart(OfflineHtml, altair.Chart):
    """A single chart."""


class LayerChart(OfflineHtml, altair.LayerChart):
    """Charts over one another."""


class HConcatChart(OfflineHtml, altair.HConcatChart):
    """Charts side by side."""


class VConcatChart(OfflineHtml, altair.VConcatChart):
    """Charts below one another."""


KINDS = {
    altair.Chart: Chart,
    altair.LayerChart: LayerChart,
    altair.HConcatChart: HConcatChart,
    altair.VConcatChart: VConcatChart,
}


def offline(chart: Any) -> Any:
    """The same chart, with HTML that needs no network."""
    if type(chart) in KINDS:
        object.__setattr__(chart, "__class__", KINDS[type(chart)])  # altair's own __setattr__ would set a property
    return chart
