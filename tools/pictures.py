"""The pictures of the documentation, drawn from models that are fitted here: `make pictures`."""

from __future__ import annotations

import shutil
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

import deciban as db

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
INK, SOFT, FOR, AGAINST = "#1f2937", "#eef2ff", "#0072B2", "#D55E00"  # bars that colour-blind readers can distinguish
LINE = 22  # line height of text
MARGIN = 24
# the index of the row with the most certain prediction
SUREST = """() => {
  const sure = ({ proba }) => Math.max(...proba);
  const scored = deciban.figures.rows.cells.map((row) => sure(deciban.scorer.score(row)));
  return scored.indexOf(Math.max(...scored));
}"""


def main() -> None:
    """Writes all pictures."""
    PICTURES.mkdir(exist_ok=True)
    for name, text in {"mark.svg": mark(), "one-idea.svg": one_idea(), "rooms.svg": rooms()}.items():
        (PICTURES / name).write_text(text, encoding="utf-8")
    for name, chart in charts().items():
        chart.save(str(PICTURES / f"{name}.svg"))
    screenshots()


def charts() -> dict[str, Any]:
    """Charts of all plot methods: those of evaluations, then those of models and reports."""
    return {**quality_charts(), **tumour_charts(), **linear_charts(), **term_charts()}


def quality_charts() -> dict[str, Any]:
    """Charts of an evaluation, and the boundary of a model of two columns."""
    X, y = load_breast_cancer(return_X_y=True)
    names = np.array(["malignant", "benign"])[y]
    held_out = db.GaussianDiscriminant().fit(X, names).leave_one_out(X, names)
    iris = load_iris(as_frame=True)
    two = iris.target > 0  # without setosa, which is separable
    petals = iris.data[two].iloc[:, 2:].rename(columns=lambda name: name.removesuffix(" (cm)"))
    species = iris.target_names[iris.target[two]]
    model = db.GaussianDiscriminant("per-class").fit(petals, species)
    return {
        "roc": held_out.plot_roc(),
        "precision-recall": held_out.plot_precision_recall(),
        "calibration": held_out.plot_calibration(),
        "confusion": held_out.plot_confusion(),
        "boundary": model.plot_boundary(petals, species),
    }


def tumour_charts() -> dict[str, Any]:
    """Charts of an EvidenceClassifier, for the table of docs/quickstart.md."""
    train, test = tumours()
    model = db.EvidenceClassifier().fit(train, "diagnosis")
    report = model.report(test, "diagnosis")
    return {
        "explanation-chart": model.explain(test).plot(2),
        "evidence": report.plot_evidence(),
        "column-number": report.plot_column("worst radius"),
        "column-category": report.plot_column("symmetry"),
    }


def linear_charts() -> dict[str, Any]:
    """Charts of linear models, and a learning curve."""
    import altair as alt

    train, test = tumours()
    table = pd.concat([train, test]).dropna()
    numbers, kind = table.drop(columns=["symmetry", "diagnosis"]), table["diagnosis"]
    body, progression = load_diabetes(return_X_y=True, as_frame=True)
    models = [db.GaussianDiscriminant(), db.LogisticRegression(l2=1)]
    curve = db.learning_curve(models, numbers, kind, repeats=20)
    loss = alt.Y("mean(log_loss)").title("log-loss").scale(type="log", nice=False)
    line = alt.Chart(curve.to_frame()).mark_line(point=True)
    amount = db.GeneralizedLinearModel("gaussian").fit(body[:300], progression[:300])
    return {
        "coefficients": db.GeneralizedLinearModel("bernoulli").fit(numbers, kind).plot_coefficients(),
        "path": db.LogisticRegression(l2=1).fit(numbers, kind).plot_path(),
        "residuals": amount.report(body[300:], progression[300:]).plot_residuals(),
        "learning-curve": line.encode(x=alt.X("rows").scale(type="log", nice=False), y=loss, color="model"),
    }


def term_charts() -> dict[str, Any]:
    """The terms of the tickets in docs/text.md."""
    money = [
        "please send the invoice again",
        "invoice has a wrong sum",
        "when is the invoice due",
        "send the March invoice",
    ]
    tech = ["cannot log in today", "the login page is broken", "password reset fails", "login fails with my password"]
    texts, team = money + tech, ["money"] * 4 + ["tech"] * 4
    return {"terms": db.NaiveBayes().fit(texts, team).report(texts, team, held_out=False).plot_terms()}


def tumours() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The table of docs/quickstart.md: training and test rows."""
    data = load_breast_cancer(as_frame=True)
    names = ["mean radius", "mean texture", "mean smoothness", "worst radius", "worst concave points"]
    table = data.data[names].copy()
    table["symmetry"] = pd.cut(data.data["mean symmetry"], 3, labels=["low", "medium", "high"]).astype(str)
    table.loc[::10, "mean smoothness"] = None
    table["diagnosis"] = data.target_names[data.target]
    return table[::2], table[1::2]


def screenshots() -> None:
    """Parts of a report in a browser."""
    from playwright.sync_api import sync_playwright

    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        train, test = customers()
        db.EvidenceClassifier().fit(train, "leaves").report(test, "leaves").save(path)
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1120, "height": 1000})
        page.goto(path.as_uri())
        page.evaluate("window.deciban.ready")
        page.evaluate("window.deciban.drawAll()")
        page.screenshot(path=PICTURES / "report-page.png")
        curves = page.locator("#quality .grid").first
        _screenshot(page, "#quality-title", curves.locator("summary").first, PICTURES / "report.png")
        page.select_option("#row", str(page.evaluate(SUREST)))
        page.evaluate("window.deciban.drawAll()")
        _screenshot(page, "#prediction-title", page.locator("#parts"), PICTURES / "explanation.png")
        browser.close()


def _screenshot(page: Any, first: str, after: Any, path: Path) -> None:
    """The page from one element to the next, as wide as the text, with a margin."""
    column, top, end = (page.locator("main").bounding_box(), page.locator(first).bounding_box(), after.bounding_box())
    sides = {"x": column["x"] - MARGIN, "width": column["width"] + 2 * MARGIN}
    clip = {**sides, "y": top["y"] - MARGIN, "height": end["y"] - top["y"] + MARGIN}
    page.screenshot(path=path, full_page=True, clip=clip)


def customers() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Customers who leave or stay: training and test rows."""
    rng, n = np.random.default_rng(1), 1000
    months, calls = rng.exponential(20, n).round(), rng.poisson(2, n)
    plan = rng.choice(["basic", "family", "plus"], n)
    leaves = rng.logistic(size=n) < 0.7 * calls - 0.05 * months - 1.5 * (plan == "family") - 0.6
    table = pd.DataFrame(
        {
            "plan": plan,
            "months": np.where(rng.random(n) < 0.1, np.nan, months),
            "calls": calls,
            "region": rng.choice(["north", "south"], n),
            "leaves": np.where(leaves, "yes", "no"),
        }
    )
    return table[:700], table[700:]


def mark() -> str:
    """The logo: bars of evidence."""
    bars = [(6, 14, FOR), (13, 22, FOR), (20, 8, AGAINST)]
    drawn = "".join(f'<rect x="{x}" y="{28 - h}" width="6" height="{h}" fill="{fill}"/>' for x, h, fill in bars)
    return _svg(32, 32, drawn)


def one_idea() -> str:
    """Statistics add, parameters are estimated from their sum, decibans add, with the numbers of a model."""
    fever = [38.9, 37.2, 39.4, 37.5, 36.8, 38.6, 36.9]
    cough = ["dry", "wet", "dry", "none", "wet", "wet", "none"]
    ill = ["flu", "cold", "flu", "cold", "cold", "flu", "cold"]
    visits = pd.DataFrame({"fever": fever, "cough": cough, "ill": ill})
    monday, tuesday = visits[:4], visits[4:]
    both = db.NaiveBayes().fit(monday, "ill") + db.NaiveBayes().fit(tuesday, "ill")
    explanation = both.explain(pd.DataFrame({"fever": [38.0], "cough": ["dry"]}))
    day = [
        _box(20, 50, 210, "Monday, here", _sums(monday)),
        _box(20, 190, 210, "Tuesday, elsewhere", _sums(tuesday)),
        _word(125, 178, "+", size=24),
    ]
    total = _box(300, 120, 210, "all rows", _sums(visits))
    fitted = _box(580, 120, 190, "parameters", _parameters(both))
    return _svg(
        1060,
        310,
        _word(125, 28, "1  statistics add", bold=True)
        + _word(540, 28, "2  parameters are made from the sum", bold=True)
        + _word(930, 28, "3  decibans add", bold=True)
        + "".join(day)
        + _arrow(235, 150, 292, 172)
        + _arrow(235, 230, 292, 198)
        + total
        + _arrow(516, 185, 572, 185)
        + fitted
        + _arrow(776, 185, 822, 185)
        + _decibans(835, 100, explanation)
        + _word(405, 268, "forgetting is −", size=13)
        + _word(675, 268, "smoothing and priors enter here", size=13),
    )


def rooms() -> str:
    """The data flow from a file to a prediction, room by room, for docs/architecture.md."""
    boxes = [
        (20, 70, 170, "training rows", ["arrays, tables", "files, streams", "Dask, Spark"]),
        (240, 70, 190, "data/", ["typed columns", "class indices", "summed(work)"]),
        (480, 70, 190, "statistics/", ["exact sums", "zero, +, −"]),
        (740, 35, 270, "families/ generative/", ["parameters from sums"]),
        (740, 135, 270, "evidence/", ["convex weights of evidence"]),
        (740, 235, 270, "linear/", ["linear predictors"]),
        (20, 410, 170, "rows to predict", ["the same sources"]),
        (240, 410, 190, "data/", ["types of the model"]),
        (480, 380, 210, "scorer", ["scores by class", "decibans by feature"]),
        (770, 345, 250, "estimators/ engines/ cli/", ["probabilities, predictions"]),
        (770, 425, 250, "display/ evaluation/", ["explanations, metrics"]),
        (770, 505, 250, "plots/ report/ export/", ["charts, a page, formulas"]),
        (480, 505, 210, "persist/ mail/", ["model files, a filter"]),
    ]
    arrows = [
        (196, 125, 234, 125),
        (436, 125, 474, 125),
        (676, 110, 734, 75),
        (875, 103, 875, 131),
        (335, 184, 734, 265),
        (720, 300, 640, 374),
        (196, 443, 234, 443),
        (436, 443, 474, 443),
        (696, 420, 764, 385),
        (696, 435, 764, 455),
        (696, 450, 764, 530),
        (585, 472, 585, 501),
    ]
    frame = f'<rect x="722" y="18" width="306" height="300" rx="12" fill="none" stroke="{INK}" stroke-dasharray="4 4"/>'
    titles = _word(20, 50, "fit", anchor="start", bold=True) + _word(20, 395, "predict", anchor="start", bold=True)
    drawn = "".join(_box(*box) for box in boxes) + "".join(_arrow(*ends) for ends in arrows)
    return _svg(1060, 590, frame + titles + drawn)


def _sums(rows: pd.DataFrame) -> list[str]:
    """The statistics of fever by class: Σ1, Σx and Σx²."""
    lines = []
    for label in ("cold", "flu"):
        x = rows["fever"][rows["ill"] == label]
        lines.append(f"{label}: {len(x)}, {x.sum():.1f}, {(x**2).sum():.1f}")
    return ["fever: Σ1, Σx, Σx²", *lines]


def _parameters(model: db.NaiveBayes) -> list[str]:
    table = next(table for table in model.summary().tables if table.title.startswith("fever"))
    return ["fever: mean, sd", *(f"{label}: {mean:.2f}, {sd:.2f}" for label, mean, sd in table.rows)]


def _decibans(left: float, top: float, explanation: Any) -> str:
    """The contributions to a prediction as bars, and their sum."""
    lines = [(label.partition(" ")[0], value) for label, value in explanation.lines()]  # their values are in the title
    scale = 60 / max(abs(value) for _, value in lines)
    drawn = [_word(left + 95, top - 18, "fever 38.0, cough dry", size=13)]
    for i, (name, value) in enumerate(lines):
        y = top + 40 * i
        fill = FOR if value > 0 else AGAINST
        width = abs(value) * scale
        x = left + 125 - (width if value < 0 else 0)
        drawn.append(_word(left + 60, y + 16, name, anchor="end", bold=name == "log-odds"))
        drawn.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="22" fill="{fill}"/>')
        drawn.append(_word(left + 122 if value > 0 else x - 4, y + 16, f"{value:+.1f}", anchor="end", size=13))
    return "".join(drawn)


def _box(x: float, y: float, width: float, title: str, lines: list[str]) -> str:
    height = LINE * (len(lines) + 1) + 22
    frame = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{SOFT}" stroke="{INK}"/>'
    words = [_word(x + 14, y + 26, title, anchor="start", bold=True)]
    words += [_word(x + 14, y + 26 + LINE * (i + 1), line, anchor="start") for i, line in enumerate(lines)]
    return frame + "".join(words)


def _arrow(x0: float, y0: float, x1: float, y1: float) -> str:
    return f'<line x1="{x0}" y1="{y0}" x2="{x1}" y2="{y1}" stroke="{INK}" stroke-width="2" marker-end="url(#tip)"/>'


def _word(x: float, y: float, text: str, *, anchor: str = "middle", size: int = 15, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" font-size="{size}"{weight}>{escape(text)}</text>'


def _svg(width: int, height: int, body: str) -> str:
    tip = f'<path d="M0 0L8 4L0 8z" fill="{INK}"/>'
    marker = f'<marker id="tip" markerWidth="8" markerHeight="8" refX="6" refY="4" orient="auto">{tip}</marker>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" fill="{INK}"><defs>{marker}</defs>{body}</svg>\n'
    )


if __name__ == "__main__":
    main()
