/* Scores of two classes and a threshold: confusion matrix, rates, and the ROC curve with its ties. */
"use strict";

lectures.register("threshold", (box, options) => {
  const { tables, controls, format, fixed } = lectures;
  // Hundredths; some are equal, also across classes.
  const POSITIVES = [31, 42, 48, 50, 55, 55, 61, 64, 66, 70, 70, 74, 77, 81, 84, 88, 91, 95];
  const NEGATIVES = [4, 7, 11, 15, 15, 19, 22, 26, 28, 31, 35, 38, 42, 45, 48, 50, 50, 55, 58, 63, 70, 82];
  const state = tables.withOptions({ threshold: 0.5, rounding: 0.01 }, options);

  const row = controls(box);
  const slider = row.slider({
    label: "threshold", min: 0, max: 1.01, step: 0.01, value: state.threshold, show: (value) => fixed(value),
    change: (value) => figure.set({ threshold: value }),
  });
  const rounding = row.select({
    label: "scores rounded to", value: `${state.rounding}`, options: ["0.01", "0.05", "0.1", "0.25", "1"],
    change: (value) => figure.set({ rounding: Number(value) }),
  });
  const scores = lectures.chart(box, {
    label: "Scores of positives, above, and of negatives, below", height: 180, margin: { left: 16, top: 24 },
  });
  const handle = scores.handle({
    label: "threshold", look: "series-text", axis: "x", step: 0.01,
    move: (x) => figure.set({ threshold: Number(x.toFixed(2)) }),
  });
  const [left, right] = lectures.columns(box, 2);
  const curve = lectures.chart(left, { label: "ROC curve", height: (width) => Math.min(width, 320), maxWidth: 340 });
  const confusion = lectures.table(right, {
    caption: "Confusion matrix", head: ["", "predicted +", "predicted −"],
  });
  const rates = lectures.table(right, { head: ["rate", "counts", "≈"] });
  lectures.legend(box, [
    { label: "positive", look: "series-1", shape: "circle" },
    { label: "negative", look: "series-0", shape: "square" },
    { label: "this threshold", look: "series-text", shape: "circle" },
    { label: "tied across classes: one diagonal segment", look: "series-5" },
  ]);
  const note = lectures.note(box);

  function rowsOf(step) {
    const round = (hundredths) => (Math.round(hundredths / step) * step) / 100;
    const one = (positive) => (hundredths) => ({ score: round(hundredths), positive });
    return [...POSITIVES.map(one(true)), ...NEGATIVES.map(one(false))];
  }

  const figure = lectures.figure(box, state, {
    results(now) {
      const rows = rowsOf(Math.round(100 * now.rounding));
      const { points, positives, negatives, auc } = tables.rocOf(rows);
      const roc = points.map(({ threshold, tp, fp }) => [threshold, fp, tp]);
      return { ...tables.ratesAt(rows, now.threshold), rows, roc, positives, negatives, auc };
    },
    draw(now, found) {
      slider.set(now.threshold);
      rounding.set(`${now.rounding}`);
      drawScores(now, found);
      drawCurve(found);
      drawTables(found);
      const ties = tied(found.roc);
      note.textContent =
        `AUC = ${format(found.auc, 4)}, the area under the trapezoids. ` +
        `${ties.length} of ${found.roc.length - 1} segments ${ties.length === 1 ? "is" : "are"} diagonal: ` +
        "positives and negatives share a score there.";
    },
  });

  function drawScores(now, { rows }) {
    const heights = new Map();
    const place = rows.map(({ score, positive }) => {
      const key = `${score} ${positive}`;
      heights.set(key, (heights.get(key) ?? 0) + 1);
      return [score, (positive ? 1 : -1) * heights.get(key)];
    });
    const most = Math.max(3, ...heights.values()) + 1;
    scores.frame({ x: [-0.02, 1.02], y: [-most, most], xLabel: "score", yTicks: [], xTicks: [0, 0.2, 0.4, 0.6, 0.8, 1], grid: false });
    scores.rect([now.threshold, 1.02], [-most, most], "series-1 figure-region");
    scores.line([[-0.02, 0], [1.02, 0]], "series-soft figure-thin");
    scores.line([[now.threshold, -most], [now.threshold, most]], "series-text");
    const size = Math.min(5, scores.width / 100, (0.42 * (scores.inner.bottom - scores.inner.top)) / (2 * most));
    place.forEach(([x, y], i) => dot(x, y, rows[i].positive, size));
    const near = now.threshold > 0.6;
    scores.text(now.threshold, most, "predicted positive →", "", { dx: near ? 0 : 4, dy: -6, anchor: near ? "end" : "start" });
    handle.place(lectures.clamp(now.threshold, scores.x.domain), -most);
  }
  function dot(x, y, positive, size) {
    if (positive) scores.dot(x, y, "series-1", size);
    else {
      const [px, py] = [scores.x(x), scores.y(y)];
      scores.marks.append(lectures.svg("rect", { class: "figure-dot series-0", x: px - size, y: py - size, width: 2 * size, height: 2 * size }));
    }
  }

  /* Segments that go right and up. */
  const tied = (roc) =>
    roc.slice(1).map((point, i) => [roc[i], point]).filter(([from, to]) => to[1] > from[1] && to[2] > from[2]);

  function drawCurve({ roc, tp, fp, positives, negatives }) {
    const at = ([, falsely, truly]) => [falsely / negatives, truly / positives];
    curve.frame({ x: [-0.02, 1.02], y: [-0.02, 1.02], xLabel: "1 − specificity", yLabel: "sensitivity", xTicks: [0, 0.5, 1], yTicks: [0, 0.5, 1] });
    curve.line([[0, 0], [1, 1]], "series-soft figure-thin figure-dashed");
    curve.area([...roc.map(at)], "series-2");
    curve.line(roc.map(at), "series-2");
    for (const pair of tied(roc)) curve.line(pair.map(at), "series-5 figure-thick");
    for (const point of roc) curve.dot(...at(point), "series-2", 2.5);
    curve.dot(fp / negatives, tp / positives, "series-text", 6);
  }
  function drawTables(found) {
    const { tp, fp, tn, fn } = found;
    confusion.set([
      ["positive", { text: `${tp} TP`, look: "series-1" }, `${fn} FN`],
      ["negative", `${fp} FP`, { text: `${tn} TN`, look: "series-0" }],
    ]);
    const rate = (name, top, bottom, value) => [name, `${top} / ${bottom}`, Number.isNaN(value) ? "–" : fixed(value, 3)];
    rates.set([
      rate("sensitivity", tp, tp + fn, found.sensitivity),
      rate("specificity", tn, tn + fp, found.specificity),
      rate("precision", tp, tp + fp, found.precision),
      rate("F1", 2 * tp, 2 * tp + fp + fn, found.f1),
      rate("accuracy", tp + tn, tp + fp + tn + fn, found.accuracy),
    ]);
  }
  return figure;
});
