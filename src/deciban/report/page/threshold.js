// Threshold: counts and rates when a class is predicted from a probability on, and ROC and precision-recall curves.

const COUNTS = ["tp", "fp", "tn", "fn"];
const RATES = ["sensitivity", "specificity", "precision", "f1"];
const CURVES = ["roc", "precision_recall"];
const now = { curve: 0, step: 0 }; // the threshold is step / steps of the curve
const curvePictures = {}; // {box, data} by the curve's name
const curveAt = () => figures.quality.curves[now.curve];

function curves(all) {
  const range = element("input", {
    type: "range",
    id: "threshold",
    min: 0,
    max: 1,
    "aria-describedby": "threshold-note",
  });
  const number = element("input", { type: "number", id: "threshold-number", min: 0, max: 1, inputmode: "decimal" });
  const which = indexSelect(
    "curve",
    all.map((curve) => curve.class),
  );
  const set = (value) => threshold(Math.round(value * curveAt().steps));
  range.addEventListener("input", () => set(range.value));
  number.addEventListener("change", () => {
    const typed = number.valueAsNumber; // NaN if it is not a number: then the threshold stays
    set(Number.isNaN(typed) ? now.step / curveAt().steps : Math.min(1, Math.max(0, typed)));
  });
  which.addEventListener("change", () => threshold(undefined, Number(which.value)));
  const above = controls(
    all.length > 1 ? control("Class", which) : null,
    control("Predict the positive class from this probability on", range, { class: "control slider" }),
    control("Threshold", number),
  );
  const pictures = [
    curvePicture("roc", "ROC", "Sensitivity against the false positive rate, for every threshold"),
    curvePicture("precision_recall", "Precision and recall", "Precision against recall, for every threshold"),
  ];
  const note = quiet("", { id: "threshold-note" });
  return [
    block(element("h3", {}, "Threshold"), note, above, rates()),
    element("div", { class: "grid block" }, pictures),
  ];
}

function rates() {
  const cell = (id) => element("td", { id: `confusion-${id}` });
  const predicted = [
    element("th", { scope: "col", id: "predicted-positive" }),
    element("th", { scope: "col", id: "predicted-negative" }),
  ];
  const body = [
    element("tr", {}, element("th", { scope: "row", id: "is-positive" }), cell("tp"), cell("fn")),
    element("tr", {}, element("th", { scope: "row", id: "is-negative" }), cell("fp"), cell("tn")),
  ];
  const matrix = headed([element("td", { class: "corner" }), ...predicted], body, { class: "matrix short" });
  const list = RATES.flatMap((name) => [
    element("dt", {}, name === "f1" ? "F1" : name),
    element("dd", { id: `rate-${name}` }),
  ]);
  const beside = element("dl", { class: "rates-list" }, list);
  return element("div", { class: "rates", role: "status" }, boxed(matrix, "Rows at this threshold"), beside);
}

// Curves --------------------------------------------------------------------------------------------------------------

function curvePicture(name, title, label) {
  const figure = picture({ title, level: "h3", label, least: 340, make: (width) => curveChart(name, width) });
  figure.querySelector("figcaption").append(element("p", { id: `${name}-note` }));
  const data = folded("Data", () => boxed(tableOf(curveAt()[name].fields, curveAt()[name].rows), "Data", true));
  figure.append(data);
  curvePictures[name] = { box: figure.box, data };
  return figure;
}

function curveChart(name, width) {
  const curve = curveAt()[name].rows.map(([x, y, t], order) => ({ line: "", order, x, y, threshold: t }));
  const data = { curve, diagonal: name === "roc" ? DIAGONAL : atRandom(curveAt()), threshold: pointsAt(name) };
  return filled(name, Math.min(width, 400), data, { height: Math.min(340, width * 0.92) });
}

// The precision of random predictions.
function atRandom({ positives, negatives }) {
  return [0, 1].map((x) => ({ x, y: positives / (positives + negatives) }));
}

// The point of the threshold on a curve; none if a rate is 0/0.
function pointsAt(name) {
  const { sensitivity, specificity, precision } = ratesAt(now.step, now.curve);
  const [x, y] = name === "roc" ? [1 - specificity, sensitivity] : [sensitivity, precision];
  return Number.isNaN(x) || Number.isNaN(y) ? [] : [{ x, y }];
}

// Counts and rates where a class is predicted at probabilities of step/steps or more.
function ratesAt(step, place) {
  const { positives, negatives, ...curve } = figures.quality.curves[place];
  const tp = curve.tp[step];
  const fp = curve.fp[step];
  const fn = positives - tp;
  const tn = negatives - fp;
  const share = (part, all) => (all ? part / all : NaN);
  return {
    ...{ tp, fp, tn, fn },
    sensitivity: share(tp, tp + fn),
    specificity: share(tn, tn + fp),
    precision: share(tp, tp + fp),
    f1: share(2 * tp, 2 * tp + fp + fn),
  };
}

// Changing it ---------------------------------------------------------------------------------------------------------

function threshold(step, place = now.curve) {
  const curve = figures.quality.curves[place];
  const moved = place !== now.curve;
  now.step = step ?? Math.round((now.step / curveAt().steps) * curve.steps);
  now.curve = place;
  const rates = ratesAt(now.step, place);
  showThreshold(curve, rates);
  showCounts(curve, rates);
  showCurveNotes(curve);
  for (const name of CURVES) moved ? drawOther(name) : movePoint(name);
  return rates;
}

function showThreshold(curve, { sensitivity, specificity }) {
  const value = now.step / curve.steps;
  for (const input of [byId("threshold"), byId("threshold-number")]) {
    input.step = 1 / curve.steps;
    input.value = value;
  }
  const text = `${value}: sensitivity ${percent(sensitivity)}, specificity ${percent(specificity)}`;
  byId("threshold").setAttribute("aria-valuetext", text);
  if (byId("curve")) byId("curve").value = now.curve;
  const { class: name, positives, negatives } = curve;
  byId("threshold-note").textContent = `The positive class is ${name}: ${shown(positives)} rows against ${shown(negatives)}.`;
}

function showCounts(curve, rates) {
  const { classes } = figures.quality;
  const other = classes.length === 2 ? classes.find((name) => name !== curve.class) : "others";
  byId("predicted-positive").textContent = `predicted ${curve.class}`;
  byId("predicted-negative").textContent = `predicted ${other}`;
  byId("is-positive").textContent = `true ${curve.class}`;
  byId("is-negative").textContent = `true ${other}`;
  for (const name of COUNTS) {
    const whole = name === "tp" || name === "fn" ? curve.positives : curve.negatives;
    const cell = shaded(byId(`confusion-${name}`), whole ? rates[name] / whole : 0);
    cell.textContent = shown(rates[name]);
  }
  for (const name of RATES) byId(`rate-${name}`).textContent = percent(rates[name]);
}

function showCurveNotes({ class: name, auc, auc_low: low, auc_high: high, average_precision: precision }) {
  const interval = low === null ? "" : ` (95% interval ${fixed(low, 4)} to ${fixed(high, 4)})`;
  byId("roc-note").textContent = `${name}: area ${fixed(auc, 4)}${interval}.`;
  byId("precision_recall-note").textContent =
    `${name}: average precision ${fixed(precision, 4)}. Dashed: random predictions.`;
}

function drawOther(name) {
  const { box, data } = curvePictures[name];
  data.renew();
  redraw(box);
}

// Moves the point of the threshold, also while the chart is being drawn.
async function movePoint(name) {
  const drawing = drawings.get(curvePictures[name].box);
  await drawing.done;
  drawing.view?.data("threshold", pointsAt(name)).run();
}
