"""Columns of dates, times and numbers written as text, in all models and from all containers."""

import json
from functools import cache

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deciban as db
from deciban.data.batch import DerivedColumn, Notation
from deciban.data.schema import Schema
from tests.data.files.written import as_parquet

N = 200
MAKE = {
    "evidence": lambda: db.EvidenceClassifier(pairs=1, trees=2),
    "naive bayes": db.NaiveBayes,
    "logistic": lambda: db.LogisticRegression(l2=1.0),
}


@cache
def shop():
    """Orders: late after weekends, and where they took long. Returns the table, classes and their true log-odds."""
    rng = np.random.default_rng(0)
    n = 2400
    ordered = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700 * 24 * 60, n), unit="min")
    sent = ordered + pd.to_timedelta((rng.exponential(30, n) * 1440).astype(int), unit="min")
    log_odds = 2.0 * (ordered.day_of_week >= 5) + 1.5 * ((sent - ordered) > pd.Timedelta("30D")) - 1.5
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-log_odds)), "late", "paid")
    price = rng.lognormal(6, 1, n).round(2)
    table = pd.DataFrame({"ordered": ordered, "sent": sent, "price": price, "kind": rng.choice(["a", "b"], n)})
    return table, y, log_odds.to_numpy() if hasattr(log_odds, "to_numpy") else np.asarray(log_odds)


def as_text(table):
    """The same table with dates and numbers as people write them."""
    written = table.assign(ordered=table["ordered"].astype(str), sent=table["sent"].dt.strftime("%Y/%m/%dT%H:%M"))
    return written.assign(price=[f"${price:,.2f}" for price in table["price"]])


def log_loss(log_odds, y):
    return float(np.mean(np.logaddexp(0, np.where(y == "late", -log_odds, log_odds))))


# What is learned
def evidence_classifier():
    return db.EvidenceClassifier(pairs=2, trees=10)


@cache
def learned():
    table, y, _ = shop()
    return evidence_classifier().fit(table[:1200], y[:1200])


def test_weekdays_and_gaps_are_learned():
    table, y, log_odds = shop()
    model = learned()
    bayes = log_loss(log_odds[1200:], y[1200:])
    assert db.evaluate(model, table[1200:], y[1200:]).log_loss < bayes + 0.03
    assert db.evaluate(db.NaiveBayes().fit(table[:1200], y[:1200]), table[1200:], y[1200:]).log_loss > bayes + 0.05
    weighted = {name for columns in model.weights_.columns for name in columns}
    assert {"ordered[weekday]", "sent − ordered"} <= weighted
    assert model.feature_names_in_.tolist() == ["ordered", "sent", "price", "kind"]


def test_parts_are_grouped_under_their_column():
    table, _, _ = shop()
    explanation = learned().explain(table[1200:1210])
    assert {line.name for line in explanation.parts if line.columns} == {*table.columns}
    proba = np.exp(explanation.joint - np.logaddexp.reduce(explanation.joint, axis=1)[:, np.newaxis])
    np.testing.assert_allclose(proba, learned().predict_proba(table[1200:1210]), atol=1e-12)
    assert "'ordered[" not in str(learned().summary()).partition("note:")[2]


def test_a_gap_belongs_to_both_of_its_dates():
    """Whichever comes first: what the gap says is shared out evenly."""
    rng = np.random.default_rng(0)
    y = rng.random(400) < 0.4
    sent = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 500, 400), unit="D")
    paid = sent + pd.to_timedelta(np.where(y, rng.integers(1, 20, 400), rng.integers(10, 50, 400)), unit="D")
    table = pd.DataFrame({"sent": sent, "paid": paid})
    one, other = (
        db.EvidenceClassifier(trees=0, pairs=0).fit(table[list(order)], y) for order in (table, table.columns[::-1])
    )
    np.testing.assert_allclose(one.feature_importances_, other.feature_importances_[::-1], rtol=0.1)
    assert one.feature_importances_.min() > 0.4 * one.feature_importances_.max()
    explanation = one.explain(table[:20])
    log_odds = np.diff(one.predict_log_proba(table[:20]), axis=1)[:, 0]
    np.testing.assert_allclose(np.diff(explanation.nats.sum(axis=1), axis=1)[:, 0], log_odds, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("column", ["ordered", "sent"])
def test_either_date_of_a_gap_may_be_unknown(column):
    table, y, _ = shop()
    whole = learned()
    without = evidence_classifier().fit(table[:1200].drop(columns=column), y[:1200])
    blank = table[1200:].assign(**{column: pd.NaT})
    expected = db.evaluate(without, table[1200:].drop(columns=column), y[1200:]).log_loss
    assert db.evaluate(whole, blank, y[1200:]).log_loss < 1.03 * expected


def test_dates_that_are_noise_say_nothing():
    rng = np.random.default_rng(1)
    table, _, _ = shop()
    y = rng.random(600) < 0.5
    model = evidence_classifier().fit(table[["ordered", "sent"]][:600], y)
    proba = model.predict_proba(table[["ordered", "sent"]][600:])
    assert -np.log(np.where(rng.random(1800) < 0.5, *proba.T)).mean() < np.log(2) * 1.02


# Containers
WAYS = {
    "pandas": lambda table, path: table,
    "polars": lambda table, path: pl.from_pandas(table),
    "pyarrow": lambda table, path: pa.Table.from_pandas(table, preserve_index=False),
    "duckdb": lambda table, path: duckdb.from_arrow(pa.Table.from_pandas(table, preserve_index=False)),
    "parquet": lambda table, path: db.scan(
        as_parquet(path, "t.parquet", pa.Table.from_pandas(table, preserve_index=False))
    ),
}
DATES = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.random.default_rng(2).integers(0, 10**6, N), unit="min")
TYPES = {  # a column, and the same as numbers
    "datetime": (pd.Series(DATES), DATES),
    "seconds": (pd.Series(DATES).astype("datetime64[s]"), DATES),
    "zone": (pd.Series(DATES).dt.tz_localize("America/New_York", ambiguous=True), DATES),
    "date": (pd.Series(DATES.date), DATES.normalize()),
    "missing": (pd.Series(DATES).where(np.arange(N) % 7 > 0), pd.Series(DATES).where(np.arange(N) % 7 > 0)),
    "period": (pd.Series(DATES.to_period("M")), DATES.to_period("M").to_timestamp()),
}
Y = np.where((DATES.month < 7) ^ (np.arange(N) % 5 == 0), "a", "b")


NOT_KEPT = {("zone", "duckdb"), ("period", "polars"), ("period", "duckdb"), ("period", "parquet")}


@pytest.mark.parametrize("kind", TYPES)
def test_every_container_of_every_type_gives_the_same_model(kind, tmp_path):
    column, moments = TYPES[kind]
    days = (pd.Series(pd.DatetimeIndex(moments)) - pd.Timestamp("1970-01-01")) / pd.Timedelta("1D")
    expected = db.NaiveBayes().fit(pd.DataFrame({"when": days}), Y).predict_proba(pd.DataFrame({"when": days}))
    table = pd.DataFrame({"when": column, "y": Y})
    for way in (way for way in WAYS if (kind, way) not in NOT_KEPT):
        model = db.NaiveBayes().fit(WAYS[way](table, tmp_path), "y")
        assert model.generative_.schema.kinds == ("date",), way
        np.testing.assert_allclose(model.predict_proba(WAYS[way](table, tmp_path)), expected, rtol=1e-12, err_msg=way)


def test_times_and_durations_are_hours_and_days(tmp_path):
    table = pd.DataFrame({"time": DATES.time, "span": DATES - DATES[0], "y": Y})
    hours = DATES.hour + DATES.minute / 60
    plain = pd.DataFrame({"time": hours, "span": (DATES - DATES[0]) / pd.Timedelta("1D")})
    expected = db.NaiveBayes().fit(plain, Y).predict_proba(plain)
    for way in WAYS:
        model = db.NaiveBayes().fit(WAYS[way](table, tmp_path), "y")
        assert model.generative_.schema.kinds == ("time", "number"), way
        np.testing.assert_allclose(model.predict_proba(WAYS[way](table, tmp_path)), expected, rtol=1e-9, err_msg=way)


def test_arrays_of_dates():
    array = DATES.to_numpy()[:, np.newaxis]
    for rows in (array, array.astype(object), [[moment] for moment in DATES], [[str(moment)] for moment in DATES]):
        model = db.NaiveBayes().fit(rows, Y)
        assert model.generative_.schema.kinds == ("date",)
        assert model.predict_proba(rows).tobytes() == db.NaiveBayes().fit(array, Y).predict_proba(array).tobytes()


# Text
@pytest.mark.parametrize("name", MAKE)
def test_text_is_read_as_the_types_are(name, tmp_path):
    table, y = shop()[0][:N], shop()[1][:N]
    text = as_text(table)
    typed, written = MAKE[name]().fit(table, y), MAKE[name]().fit(text, y)
    assert written.n_features_in_ == 4
    expected = typed.predict_proba(table)
    assert written.predict_proba(text).tobytes() == written.predict_proba(table).tobytes() == expected.tobytes()
    assert typed.predict_proba(text.assign(price=table["price"])).tobytes() == expected.tobytes()  # dates go together
    with pytest.raises(db.DecibanError, match="column 'price' held numbers so far and holds text now"):
        typed.predict(text)
    assert "'price' is text that is read as numbers" in str(written.summary())
    written.save(tmp_path / "m.deciban")
    assert db.load(tmp_path / "m.deciban").predict_proba(text).tobytes() == expected.tobytes()


@pytest.mark.parametrize(("form", "size"), [("csv", 2000), ("csv", 1 << 22), ("jsonl", 2000), ("parquet", 1 << 22)])
def test_files_are_read_as_tables_in_memory(form, size, tmp_path):
    table, y = as_text(shop()[0][:N]).assign(y=shop()[1][:N]), shop()[1][:N]
    table.loc[[3, 150], "price"] = ["call us", None]
    path = tmp_path / f"t.{form}"
    if form == "csv":
        table.to_csv(path, index=False)
    elif form == "jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_parquet(path)
    scan = db.scan(path, block_size=size)
    rows = table.drop(columns="y")
    for name, make in MAKE.items():
        in_memory, of_file = make().fit(rows, y), make().fit(scan, "y")
        assert of_file.schema_ == in_memory.schema_
        for each in (rows, scan):
            proba = of_file.predict_proba(each)
            np.testing.assert_allclose(proba, in_memory.predict_proba(rows), rtol=1e-9, err_msg=name)
    assert scan.columns == {"ordered": "date", "sent": "date", "price": "formatted", "kind": "text", "y": "text"}


def test_the_order_of_rows_decides_nothing(tmp_path):
    """A word that stands in 0.5 % of the rows, all of them first or last."""
    cells = ["$5.50", "$12", "$3"] * 66
    for order in (["ask", *cells], [*cells, "ask"]):
        path = tmp_path / "t.csv"
        path.write_text("x,y\n" + "".join(f"{cell},{'ab'[i % 2]}\n" for i, cell in enumerate(order)))
        scan = db.scan(path, block_size=60)
        model = db.NaiveBayes().fit(scan, "y")
        assert model.generative_.schema.notations == (Notation("formatted", ("ask",)),)


def test_what_the_user_says_goes(tmp_path):
    table, y = as_text(shop()[0][:N]), shop()[1][:N]
    kinds = db.NaiveBayes().fit(table.astype({"price": "category", "ordered": "category"}), y).generative_.schema.kinds
    assert kinds == ("category", "date", "category", "category")
    assert (
        db.NaiveBayes()
        .fit(pl.from_pandas(table).with_columns(pl.col("price").cast(pl.Categorical)), y)
        .schema_.kinds[2]
        == "category"
    )
    table.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    scan = db.scan(tmp_path / "t.csv", types={"price": "category", "sent": "date"})
    assert scan.columns["price"] == "text"
    assert db.NaiveBayes().fit(scan, "y").schema_.kinds == ("date", "date", "category", "category")


def test_labels_that_look_like_dates_are_classes(tmp_path):
    labels = ["2026-01-01", "2026-01-02"] * 20
    table = pd.DataFrame({"x": np.arange(40.0), "y": labels})
    table.to_csv(tmp_path / "t.csv", index=False)
    for model in (db.NaiveBayes().fit(table, "y"), db.NaiveBayes().fit(db.scan(tmp_path / "t.csv"), "y")):
        assert model.classes_.tolist() == ["2026-01-01", "2026-01-02"]


def test_a_later_cell_that_is_written_otherwise_is_missing():
    table, y = as_text(shop()[0][:N]), shop()[1][:N]
    model = db.NaiveBayes().fit(table, y)
    odd = table[:2].assign(price=["$5", "five"], sent=["2026-02-28", "2026-02-30"])
    expected = shop()[0][:2].assign(price=[5.0, np.nan], sent=[pd.Timestamp("2026-02-28"), pd.NaT])
    assert model.predict_proba(odd).tobytes() == model.predict_proba(expected).tobytes()
    with pytest.warns(db.DecibanWarning, match="column 'price' is read as numbers, and no cell here is one: 'five'"):
        model.predict(odd[1:].assign(sent=None))


# Going on
def test_parts_merge_and_are_forgotten():
    table, y = shop()[0][:N], shop()[1][:N]
    text = as_text(table)
    whole = MAKE["evidence"]().fit(table, y)
    parts = [
        whole.empty_copy().partial_fit(table[:80], y[:80]),
        whole.empty_copy().partial_fit(text.assign(price=table["price"])[80:], y[80:]),
    ]
    for merged in (parts[0] + parts[1], parts[1] + parts[0]):
        np.testing.assert_allclose(merged.predict_proba(table), whole.predict_proba(table), rtol=1e-9)
    turned = table[["kind", "price", "sent", "ordered"]]
    assert whole.predict_proba(turned).tobytes() == whole.predict_proba(table).tobytes()
    less = MAKE["evidence"]().fit(table, y).forget(table[:50], y[:50])
    assert less.class_count_.sum() == N - 50


def test_gaps_of_many_dates_are_those_of_neighbours():
    few = Schema(("a", "b", "c"), ("date", "number", "date")).with_calendar()
    parts = [f"{name}[{part}]" for name in "ac" for part in ("year", "month", "day", "weekday", "hour")]
    assert few.all_names[3:] == (*parts, "c − a")
    assert few.source_columns([0, 4, 9, 13]) == (0, 2)
    assert few.source_columns([13]) == (0, 2)  # a gap counts for both of its dates
    many = Schema(tuple("abcdefgh"), ("date",) * 8).with_calendar()
    assert sum(derived.part == "gap" for derived in many.derived) == 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda schema: schema["derived"][0].update(part="century"), "part"),
        (lambda schema: schema["derived"][0].update(columns=[2]), "derived from a column that is not a date"),
        (lambda schema: schema["derived"][0].update(columns=[9]), "derived from a column that is not a date"),
        (lambda schema: schema["derived"][0].update(columns=[0, 1]), "columns"),
        (lambda schema: schema["derived"].append(dict(schema["derived"][0])), "twice"),
        (lambda schema: schema["notations"][0].update(style="formatted"), "is read as another"),
        (lambda schema: schema["notations"].pop(), "3 notations of 4 columns"),
        (lambda schema: schema["notations"][0].update(missing=["x"] * 99), "99 texts"),
    ],
)
def test_hostile_schemas_are_refused(change, message):
    from deciban.persist.codec import Codec

    codec = Codec()
    schema = Schema(
        ("a", "b", "c", "d"), ("date", "date", "number", "category"), (Notation("date"), None, None, None)
    ).with_calendar()
    assert schema.derived[0] == DerivedColumn("year", (0,))
    tree = json.loads(json.dumps(codec.encode(schema, "schema", {})))
    assert codec.decode(tree, "schema", {}) == schema
    change(tree)
    with pytest.raises(db.DecibanError, match=message):
        codec.decode(tree, "schema", {})
