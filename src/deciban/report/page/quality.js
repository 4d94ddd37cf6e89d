// Quality: metrics, residuals, confusion and calibration; see threshold.js for curves.

const HOW = { "held-out": "Held-out rows.", "leave-one-out": "Leave-one-out.", training: "Training rows." };
const DIAGONAL = [
  { x: 0, y: 0 },
  { x: 1, y: 1 },
];

function quality() {
  const q = figures.quality;
  const section = byId("quality");
  if (!q) return section.remove();
  const how = element("p", { class: "how", id: "how" }, element("strong", {}, HOW[q.how] ?? q.how), ` ${q.sentence}`);
  section.append(how, metricsTable(q.metrics));
  if (q.residuals) section.append(residuals(q.residuals));
  if (q.curves?.length) section.append(...curves(q.curves));
  if (q.confusion) section.append(confusion(q));
  if (q.calibration?.length) section.append(calibration(q.calibration));
}

// Metrics -------------------------------------------------------------------------------------------------------------

function metricsTable(metrics) {
  const compared = metrics.some(({ prior }) => present(prior));
  const ranged = metrics.some(({ low }) => present(low));
  const plain = figures.kind === "numbers" ? "one mean for all" : "prior alone";
  const numbers = ["model", ...(ranged ? ["95% interval"] : []), ...(compared ? [plain] : [])];
  const head = [
    element("th", { scope: "col" }),
    numbers.map((name) => element("th", { scope: "col", class: "number" }, name)),
    element("th", { scope: "col" }),
  ];
  const body = metrics.map((metric) => metricRow(metric, ranged, compared));
  return boxed(headed(head.flat(), body, { class: "short", id: "metrics" }), "Metrics");
}

// Metrics of classes have four decimals; those of numbers have the units of the response.
function metricRow({ title, value, low, high, prior, meaning }, ranged, compared) {
  const write = figures.kind === "numbers" ? shown : (metric) => fixed(metric, 4);
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, title),
    element("td", { class: "number strong" }, write(value)),
    ranged ? element("td", { class: "number" }, present(low) ? `${write(low)} to ${write(high)}` : "") : null,
    compared ? element("td", { class: "number" }, present(prior) ? write(prior) : "") : null,
    element("td", { class: "meaning" }, meaning ?? ""),
  );
}

function residuals(table) {
  const numbers = table.rows.flat().filter(Number.isFinite);
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const diagonal = [low, high].map((x) => ({ x, y: x }));
  const figure = picture({
    title: "Observed against predicted",
    level: "h3",
    note: "A perfect model lies on the diagonal.",
    label: "Scatter of observed numbers against predicted means",
    least: 340,
    table,
    make: (width) => filled("residuals", width, { residuals: rowsOf(table), diagonal }, { height: 340 }),
  });
  return element("div", { class: "block grid" }, figure);
}

// Confusion -----------------------------------------------------------------------------------------------------------

// The confusion matrix of all classes of the rows, whether the model knows them or not.
function confusion({ confusion: counted, by_class: each, classes: names }) {
  const corner = element("td", { class: "corner" });
  const head = [corner, ...names.map((name) => element("th", { scope: "col", title: name }, name))];
  const body = counted.map((row, i) => confusionRow(names[i], row));
  const table = headed(head, body, { class: names.length > 12 ? "matrix" : "matrix short", id: "confusion" });
  return block(
    element("h3", {}, "Confusion"),
    quiet("Rows are true classes, columns predicted classes."),
    boxed(table, "Confusion", names.length > 30),
    each ? foldedTable("Each class against the others", each) : null,
  );
}

function confusionRow(name, row) {
  const total = sum(row);
  const cells = row.map((n) => shaded(element("td", {}, shown(n)), total ? n / total : 0));
  return element("tr", {}, element("th", { scope: "row" }, name), cells);
}

// The larger the share, the deeper the colour.
function shaded(cell, share) {
  cell.style.setProperty("--share", share);
  return cell;
}

// Calibration ---------------------------------------------------------------------------------------------------------

const calibratedClass = ({ title, class: name }) => title || (name ?? "the predicted class");

function calibration(all) {
  let at = all[0];
  const which = indexSelect("calibration-class", all.map(calibratedClass));
  const note = element("p", { id: "calibration-note" });
  const figure = picture({
    label: "Observed share of the class against its predicted probability, with rows below",
    least: 420,
    make: (width) => calibrationChart(at, Math.min(width, 420)),
  });
  const data = folded("Data", () => boxed(tableOf(at.bins.fields, at.bins.rows), "Data", true));
  const choose = () => {
    at = all[Number(which.value)];
    note.textContent = calibrationNote(at);
    data.renew();
    redraw(figure.box);
  };
  which.addEventListener("change", choose);
  choose();
  figure.prepend(element("figcaption", {}, note));
  figure.append(data);
  return block(element("h3", {}, "Calibration"), all.length > 1 ? controls(control("Class", which)) : null, figure);
}

function calibrationChart({ bins }, width) {
  const data = { bins: rowsOf(bins), diagonal: DIAGONAL };
  return filled("calibration", width, data, { height: Math.min(330, width * 0.85) });
}

function calibrationNote(at) {
  const how = "A calibrated model lies on the diagonal; bars are 95% intervals, rows are counted below.";
  return `${calibratedClass(at)}: expected calibration error ${fixed(at.ece, 4)}. ${how}`;
}
