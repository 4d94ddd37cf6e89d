"""What holds for every cluster: it gives the model and the figures of all rows in one process."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import deciban as db
from tests.engines.data import (
    ALL,
    CUTS,
    PLAIN,
    SEVERAL,
    TABLE,
    assert_close,
    assert_same_bits,
    cut,
    evidence,
    impossible_rows,
    in_memory,
    of,
    replace_cell,
    rounding,
    same_probabilities,
    selected,
    two_classes,
)

ROOT = str(Path(__file__).parents[2])

HIDDEN = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "{library}":
            raise ModuleNotFoundError(f"No module named {{name!r}}")
sys.meta_path.insert(0, Hidden())
import deciban
deciban.NaiveBayes().fit([[0.0], [1.0]], ["a", "b"])
try:
    import deciban.engines.{engine}
except ImportError as error:
    print(error)
"""


def run(code, timeout=60):
    """In a process of its own."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=timeout, env=environment
    )


class EngineLaws:
    """A test class of an engine has `engine` (its module), `library`, `frame` and `computed`.

    `frame(tables, on_read=None)` has a partition for each table; a task that reads one calls `on_read(partition,
    attempt)`. `computed(frame)` is a pyarrow table.
    """

    # Fitting ---------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("kind", [*SEVERAL, "selected families"])
    def test_partitions_fit_the_model_of_one_process_to_the_last_bit(self, kind):
        make, table, weight = selected(kind)
        model = self.engine.fit(make(), self.frame(cut(table)), "class", sample_weight=weight)
        assert_same_bits(model, in_memory(kind), table)

    @pytest.mark.parametrize("kind", ["per-class", "selected shrinkage"])
    def test_covariances_agree_to_rounding(self, kind):
        make, table, weight = selected(kind)
        model = self.engine.fit(make(), self.frame(cut(table)), "class", weight)
        assert_close(model, in_memory(kind), table, rounding(kind))

    def test_an_evidence_classifier(self):
        table, cuts = two_classes(("height", "city", "note"))
        model, expected = (db.EvidenceClassifier(trees=2, pairs=1, max_weight_rows=60) for _ in range(2))
        expected.fit(table, "class", sample_weight="weight")
        self.engine.fit(model, self.frame(cut(table, cuts)), "class", "weight")
        assert_close(model, expected, table, 1e-8)

    def test_a_linear_model(self):
        table = of(("height", "city"))
        expected = db.SoftmaxRegression(l2=1.0).fit(table, "class", sample_weight="weight")
        model = self.engine.fit(
            db.SoftmaxRegression(l2=1.0), self.frame(cut(table, (0, 100, 100, 340))), "class", "weight"
        )
        same_probabilities(model.predict_proba(table), expected.predict_proba(table), 1e-8)

    def test_labels_keep_their_type(self):
        for labels in ([3, 7] * 10, [False, True] * 10):
            table = pa.table({"x": [float(i) for i in range(20)], "class": labels})
            frame = self.frame(cut(table, (0, 7, 7, 20)))
            model = self.engine.fit(db.NaiveBayes(), frame, "class")
            expected = db.NaiveBayes().fit(table, "class")
            assert model.classes_.dtype == expected.classes_.dtype
            predicted = self.computed(self.engine.predict(model, frame))["prediction"].to_pylist()
            assert predicted == expected.predict(table).tolist()
            assert type(predicted[0]) is type(labels[0])

    def test_rows_are_added_forgotten_and_left_out(self):
        table = of(ALL)
        parts = cut(table)
        first, second, whole = (
            self.engine.rows(self.frame(some), "class", "weight") for some in (parts[:4], parts[4:], parts)
        )
        model = db.NaiveBayes().fit(first)
        alone = evidence(model)
        assert evidence(model.partial_fit(second)) == evidence(in_memory(PLAIN))
        assert model.leave_one_out(whole) == in_memory(PLAIN).leave_one_out(table, "class", sample_weight="weight")
        assert evidence(model.forget(second)) == alone

    # Bad rows --------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("column", "value", "message"),
        [("height", np.inf, "column 'height': inf is infinite"), ("weight", -1.0, "sample_weight: -1 is not a weight")],
    )
    def test_the_first_bad_row_is_named_and_no_partition_is_read_again(self, column, value, message, tmp_path):
        attempts = str(tmp_path / "attempts")

        def note(number, attempt):
            with open(attempts, "a") as file:
                file.write(f"{number}.{attempt} ")

        parts = replace_cell(replace_cell(cut(of(ALL)), 7, column, 1, value), 4, column, 3, value)
        with pytest.raises(db.DecibanError, match=f"partition 4, row 3: {message}"):
            self.engine.fit(db.NaiveBayes(), self.frame(parts, note), "class", "weight")
        assert sorted(Path(attempts).read_text().split()) == [f"{number}.0" for number in range(len(parts))]

    def test_a_bad_cell_to_predict_is_named(self):
        model = db.NaiveBayes().fit(pa.table({"x": [1.0, 2.0], "y": ["a", "b"]}), "y")
        parts = cut(pa.table({"x": [1.0] * 120 + [np.inf]}), (0, 1, 121))
        with pytest.raises(Exception, match="partition 1, row 119: column 'x'"):
            self.computed(self.engine.predict(model, self.frame(parts)))

    def test_columns_that_are_not_there(self):
        frame = self.frame(cut(of(("height",)), (0, 340)))
        for label, weight, message in (("nope", None, "'nope' to use as label"), ("class", "no", "'no' to use as wei")):
            with pytest.raises(db.DecibanError, match=f"no column {message}"):
                self.engine.fit(db.NaiveBayes(), frame, label, weight)
        with pytest.raises(db.DecibanError, match=f"pass a .*{self.library} DataFrame"):
            self.engine.fit(db.NaiveBayes(), TABLE, "class")
        with pytest.raises(db.DecibanError, match=f"pass a {self.library} DataFrame"):
            self.engine.predict(in_memory(PLAIN), TABLE)
        model = db.NaiveBayes().fit(of(("height", "age")), "class", sample_weight="weight")
        with pytest.raises(db.DecibanError, match=r"lacks.*'age'"):
            model.partial_fit(self.engine.rows(frame, "class", "weight"))

    def test_all_partitions_are_empty(self):
        with pytest.raises(db.DecibanError, match="no rows"):
            self.engine.fit(db.NaiveBayes(), self.frame([of(ALL).slice(0, 0)] * 2), "class", "weight")

    def test_warnings_of_partitions_arrive_once(self):
        model, parts = impossible_rows()
        with pytest.warns(db.DecibanWarning) as caught:
            evaluation = self.engine.evaluate(model, self.frame(parts), "class")
        (message,) = [str(w.message) for w in caught if w.category is db.DecibanWarning]
        assert message.startswith("3 rows are impossible under every class")
        with pytest.warns(db.DecibanWarning, match="3 rows"):
            assert evaluation == db.evaluate(model, pa.concat_tables(parts), "class")

    # Predicting and evaluating ---------------------------------------------------------------------------------------

    def test_predictions_are_lazy_columns_beside_the_others(self, tmp_path):
        table = of(ALL).append_column("prediction", pa.array(range(340)))
        model, marker = in_memory(PLAIN), str(tmp_path / "read")

        def note(number, attempt):
            with open(marker, "a"):
                pass

        frame = self.frame(cut(table), note)
        predictions = self.engine.predict(model, frame)
        assert not os.path.exists(marker)
        names = ["prediction 2", *(f"proba_{name}" for name in model.classes_)]  # the first is taken
        assert list(predictions.columns) == [*table.column_names, *names]
        actual = self.computed(predictions)
        assert actual[names[0]].to_pylist() == model.predict(table).tolist()
        for k, name in enumerate(names[1:]):
            assert actual[name].to_pylist() == model.predict_proba(table)[:, k].tolist()
        assert actual.select(table.column_names).to_pylist() == table.to_pylist()
        labels = self.engine.predict(model, frame, probabilities=False)
        assert list(labels.columns) == [*table.column_names, names[0]]

    def test_evaluation_and_folds_are_those_of_all_rows(self):
        table = of(ALL, TABLE, "fold")
        frame, model = self.frame(cut(table)), in_memory(PLAIN)
        assert self.engine.evaluate(model, frame, "class", "weight") == db.evaluate(model, table, "class", "weight")
        actual = self.engine.cross_validate(db.NaiveBayes(), frame, "class", "fold", sample_weight="weight")
        fold, weight = table["fold"].to_numpy(), table["weight"].to_numpy()
        plain = table.drop(["fold", "weight"])
        expected = db.cross_validate(db.NaiveBayes(), plain, "class", fold, sample_weight=weight)
        assert actual == expected
        assert list(actual.parts) == list(expected.parts)

    def test_folds_do_not_depend_on_the_partitions(self):
        table = of(("height", "city"))
        one, other = (
            self.engine.cross_validate(
                db.NaiveBayes(), self.frame(cut(table, cuts)), "class", 5, random_state=1, sample_weight="weight"
            )
            for cuts in (CUTS, (0, 340))
        )
        assert one == other
        assert one.rows == pytest.approx(sum(table["weight"].to_pylist()))
        assert len(one.parts) == 5

    def test_without_the_library_the_error_says_how_to_install_it(self):
        engine = self.library.lower()
        code = HIDDEN.format(engine=engine, library="pyspark" if engine == "spark" else engine)
        assert f"pip install deciban[{engine}]" in run(code).stdout
