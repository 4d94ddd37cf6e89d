// The page: figures → sections. Every name goes in as text (textContent), never as markup.

const figures = JSON.parse(document.getElementById("figures").textContent);
const charts = JSON.parse(document.getElementById("charts").textContent);
const byId = (id) => document.getElementById(id);
const reading = matchMedia("print");

const MOST_BARS = 20, MOST_CHARTS = 6, MOST_TERMS = 15, MOST_FIELDS = 40, MOST_PARTS = 15;
const MOST_OPTIONS = 30, MOST_LEVELS = 50, MOST_TABLE_ROWS = 1000;
const DECIBANS = 10 / Math.LN10; // in one nat
const BAR = 20, AXIS = 45; // pixels of a row of bars, and of the axis below
const FAR = 1.1; // an infinite number is drawn so many times as far out as the farthest finite one

// Elements ------------------------------------------------------------------------------------------------------------

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

function options(names, values = names) {
  return names.map((name, i) => element("option", { value: values[i] }, String(name)));
}

let labelled = 0;

// A label above its control.
function control(label, input, attributes = {}) {
  input.id = input.id || `control-${++labelled}`;
  return element("div", { class: "control", ...attributes }, element("label", { for: input.id }, label), input);
}

// A cell or a label as Python writes it.
const written = (value) => (value === true ? "True" : value === false ? "False" : String(value));

// A number for people: four digits, thousands parted.
function shown(value) {
  if (value === null || value === undefined) return "–";
  if (value === "inf" || value === Infinity) return "∞";
  if (value === "-inf" || value === -Infinity) return "−∞";
  if (typeof value !== "number") return String(value);
  if (Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return value.toLocaleString("en-US");
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(2);
  return value.toLocaleString("en-US", { maximumSignificantDigits: size >= 1000 ? 6 : 4 });
}

const signed = (value) => (Number.isFinite(value) ? (value < 0 ? "−" : "+") + Math.abs(value).toFixed(1) : shown(value));
const percent = (share) => (share === null || Number.isNaN(share) ? "–" : `${(100 * share).toFixed(1)}%`);

function tableOf(fields, rows, { caption = null, className = null } = {}) {
  const numeric = fields.map((_, j) => rows.length > 0 && rows.every((row) => row[j] === null || isNumber(row[j])));
  const head = fields.map((name, j) => element("th", { scope: "col", class: numeric[j] ? "number" : null }, name));
  const body = rows.map((row) => element("tr", {}, row.map((value, j) =>
    j === 0 && !numeric[0] ? element("th", { scope: "row" }, shown(value)) : element("td", { class: numeric[j] ? "number" : String(value).length > 24 ? "long" : null }, shown(value)))));
  return element("table", { class: className }, caption ? element("caption", {}, caption) : null,
    element("thead", {}, element("tr", {}, head)), element("tbody", {}, body));
}

const isNumber = (value) => typeof value === "number" || value === "inf" || value === "-inf";
// A wide table scrolls in its own box, which the keyboard reaches.
const boxed = (table, label, tall = false) => element("div", { class: tall ? "scroll tall" : "scroll", tabindex: 0, role: "region", "aria-label": label }, table);

// What a summary hides is made when it is opened.
function folded(summary, make) {
  const details = element("details", {}, element("summary", {}, summary));
  details.addEventListener("toggle", () => details.append(make()), { once: true });
  return details;
}

function foldedTable(summary, table) {
  return folded(summary, () => {
    const more = table.rows.length - MOST_TABLE_ROWS;
    const part = boxed(tableOf(table.fields, table.rows.slice(0, MOST_TABLE_ROWS)), summary, true);
    return more > 0 ? element("div", {}, part, element("p", { class: "quiet" }, `… and ${shown(more)} more rows.`)) : part;
  });
}

// Charts --------------------------------------------------------------------------------------------------------------

const PLAIN = getComputedStyle(document.documentElement).getPropertyValue("--plain").trim();
const CONFIG = {
  aria: false, background: "transparent", font: PLAIN, view: { stroke: null },
  axis: { labelColor: "var(--soft)", titleColor: "var(--soft)", titleFontWeight: "normal", domainColor: "var(--faint)", tickColor: "var(--faint)",
    gridColor: "var(--rule)", labelFontSize: 12, titleFontSize: 12, titlePadding: 8, labelSeparation: 6 },
  legend: { labelColor: "var(--soft)", titleColor: "var(--soft)", titleFontWeight: "normal" },
};

const EMBED = { mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false, tooltip: tip, hover: true, logLevel: 1, config: CONFIG };

const drawings = new Map(); // box → {make, view, width}; view is null until it is drawn
const near = new IntersectionObserver((entries) => entries.forEach(({ isIntersecting, target }) => isIntersecting && draw(target)), { rootMargin: "500px" });

async function draw(box) {
  const drawing = drawings.get(box), width = box.clientWidth;
  if (!width || drawing.width === width) return;
  drawing.width = width;
  near.unobserve(box);
  drawing.view?.finalize();
  drawing.view = null;
  const inside = element("div"); // Vega gives its container a role and a name of its own
  box.replaceChildren(inside);
  const { view } = await vegaEmbed(inside, drawing.make(Math.min(width, 760)), EMBED);
  if (drawing.width === width) drawing.view = view;
}

function again(box) {
  const drawing = drawings.get(box);
  if (!drawing) return;
  drawing.width = 0;
  near.unobserve(box);
  near.observe(box);
}

const drawAll = () => Promise.all([...drawings.keys()].map(draw));
addEventListener("beforeprint", drawAll);

let resizing = 0;
addEventListener("resize", () => {
  clearTimeout(resizing);
  if (!reading.matches) resizing = setTimeout(() => drawings.forEach((drawing, box) => Math.abs(drawing.width - box.clientWidth) > 8 && again(box)), 150);
});

// A figure: what it shows in words, the chart when it comes near, and its data as a table.
function picture({ title = null, level = "h4", note = null, label, least = 200, make, table = null }) {
  const box = element("div", { class: "chart", role: "img", "aria-label": label });
  box.style.setProperty("--least", `${least}px`);
  drawings.set(box, { make, view: null, width: 0 });
  near.observe(box);
  const caption = title || note ? element("figcaption", {}, title ? element(level, {}, title) : null, note ? element("p", {}, note) : null) : null;
  const made = element("figure", {}, caption, box, table ? foldedTable("Data", table) : null);
  made.box = box;
  return made;
}

// A chart with data put in, for a width in pixels.
function filled(name, width, datasets, { chosen, height, labels = 60 } = {}) {
  const spec = structuredClone(charts[name]);
  spec.datasets = { zero: [{}], ...Object.fromEntries(Object.entries(datasets).map(([key, rows]) => [key, apart(rows)])) };
  for (const param of spec.params ?? []) if (param.name === "chosen") [{ chosen: param.value }] = apart([{ chosen }]);
  if (spec.hconcat) {
    const inside = Math.max(120, width - labels - 30);
    spec.hconcat.forEach((part, i) => { part.width = Math.round(inside * (i ? 0.36 : 0.64)); });
  } else if (spec.vconcat) {
    spec.vconcat.forEach((part) => { part.width = width - labels; });
    if (height) spec.vconcat[0].height = height;
  } else {
    Object.assign(spec, { width, autosize: { type: "fit-x", contains: "padding" } }, height ? { height } : {});
  }
  return spec;
}

// Vega groups rows in objects, and would find there what every object has: such names end in a space of no width.
const taken = (value) => typeof value === "string" && value in Object.prototype;
const apart = (rows) => rows.map((row) => (Object.values(row).some(taken) ? Object.fromEntries(Object.entries(row).map(([key, value]) => [key, taken(value) ? `${value}\u200b` : value])) : row));

const rowsOf = (table) => table.rows.map((row) => Object.fromEntries(table.fields.map((field, j) => [field, row[j]])));

// Infinite numbers a little farther out than all finite ones, where they can be drawn.
function drawable(rows, ...names) {
  const sizes = rows.flatMap((row) => names.map((name) => row[name])).filter(Number.isFinite).map(Math.abs);
  const far = FAR * Math.max(1, sizes.reduce((a, b) => Math.max(a, b), 0));
  const within = (value) => (value === "inf" || value === Infinity ? far : value === "-inf" || value === -Infinity ? -far : value);
  return rows.map((row) => ({ ...row, ...Object.fromEntries(names.filter((name) => name in row).map((name) => [name, within(row[name])])) }));
}

// Vega's tooltips, as text.
function tip(_, event, item, value) {
  const box = byId("tip");
  box.hidden = value === null || value === undefined || value === "";
  if (box.hidden) return;
  box.textContent = typeof value === "object" ? Object.entries(value).map(([name, inner]) => `${name}: ${inner}`).join("\n") : String(value);
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - width - 4))}px`;
  box.style.top = `${event.clientY + 14 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 14}px`;
}

// Head ----------------------------------------------------------------------------------------------------------------

function head() {
  const { head: about, classes } = figures;
  const changed = about.settings.filter((setting) => !setting.default);
  const settings = { fields: ["setting", "value", ""], rows: about.settings.map((s) => [s.name, String(s.value), s.default ? "default" : "set"]) };
  byId("head").append(
    element("h1", {}, figures.title),
    element("p", { class: "lead" }, about.sentence),
    element("p", { class: "quiet" }, [
      about.label ? `Label: ${about.label}. ` : "",
      about.learned.rows === null ? "" : `Learned from ${shown(about.learned.rows)} rows${counts(classes, about.learned.by_class)}. `,
      `Judged on ${shown(about.judged.rows)} rows${counts(classes, about.judged.by_class)}.`,
    ].join("")),
    ...(about.notes.length ? [element("ul", { class: "notes" }, about.notes.map((note) => element("li", {}, note)))] : []),
    ...(about.settings.length ? [element("p", {}, changed.length ? `Settings: ${changed.map((s) => `${s.name} = ${s.value}`).join(", ")}; all others are defaults.` : "All settings are defaults."), foldedTable("All settings", settings)] : []),
    columnsTable(about.columns),
  );
  byId(figures.kind === "numbers" ? "reading-classes" : "reading-numbers").remove();
  byId("version").textContent = `Made by deciban ${figures.version}.`;
}

function counts(classes, byClass) {
  if (!byClass || classes.length > 8) return "";
  return ` (${classes.map((name, k) => `${name} ${shown(byClass[k])}`).join(", ")})`;
}

function columnsTable(columns) {
  const unit = figures.evidence?.unit ?? "decibans";
  const fields = ["column", "kind", "missing", "values", "what the model did with it", "why", `mean |${unit}|`];
  const rows = columns.map((c) => [c.name, c.kind, percent(c.missing), valuesOf(c), c.treatment, c.why, c.decibans]);
  return element("div", { class: "block" }, element("h2", { class: "small" }, "Columns"), boxed(tableOf(fields, rows), "Columns", columns.length > 14));
}

function valuesOf(column) {
  if (column.kind === "boolean") return "";
  if (column.low !== null && column.high !== null) return `${shown(column.low)} to ${shown(column.high)}`;
  return column.levels === null ? "" : `${shown(column.levels)} different`;
}

// Quality -------------------------------------------------------------------------------------------------------------

const HOW = { "held-out": "Held-out rows.", "leave-one-out": "Leave-one-out.", learned: "Rows that were learned." };
const state = { curve: 0, step: 0, chosen: null };

function quality() {
  const q = figures.quality, section = byId("quality");
  if (!q) return section.remove();
  section.append(element("p", { class: "how", id: "how" }, element("strong", {}, HOW[q.how] ?? q.how), ` ${q.sentence}`), metricsTable(q.metrics));
  if (q.residuals) section.append(residuals(q.residuals));
  if (q.curves?.length) section.append(...curves(q.curves));
  if (q.confusion) section.append(confusion(q));
  if (q.calibration?.length) section.append(calibration(q.calibration));
}

function metricsTable(metrics) {
  const some = metrics.some((m) => m.prior !== null && m.prior !== undefined);
  const head = ["", "model", "95% interval", ...(some ? ["prior alone"] : []), ""];
  const rows = metrics.map((m) => element("tr", {}, element("th", { scope: "row" }, m.title),
    element("td", { class: "number strong" }, shown(m.value)), element("td", { class: "number" }, m.low === null || m.low === undefined ? "" : `${shown(m.low)} to ${shown(m.high)}`),
    some ? element("td", { class: "number" }, m.prior === null || m.prior === undefined ? "" : shown(m.prior)) : null, element("td", { class: "meaning" }, m.meaning ?? "")));
  return boxed(element("table", { class: "short", id: "metrics" }, element("thead", {}, element("tr", {}, head.map((name, j) => element("th", { scope: "col", class: j && j < head.length - 1 ? "number" : null }, name)))), element("tbody", {}, rows)), "Metrics");
}

function residuals(table) {
  const numbers = table.rows.flat().filter(Number.isFinite), low = Math.min(...numbers), high = Math.max(...numbers);
  const data = { residuals: rowsOf(table), diagonal: [{ x: low, y: low }, { x: high, y: high }] };
  return element("div", { class: "block grid" }, picture({ title: "Observed against predicted", level: "h3", note: "A perfect model lies on the diagonal.", label: "Scatter of observed numbers against predicted means", least: 340, table, make: (width) => filled("residuals", width, data, { height: 340 }) }));
}

// Threshold

function curves(all) {
  const block = element("div", { class: "block" }, element("h3", {}, "Threshold"));
  const range = element("input", { type: "range", id: "threshold", min: 0, max: 1, "aria-describedby": "threshold-note" });
  const number = element("input", { type: "number", id: "threshold-number", min: 0, max: 1, inputmode: "decimal" });
  const which = element("select", { id: "curve" }, options(all.map((curve) => curve.class), all.map((_, i) => i)));
  range.addEventListener("input", () => threshold(Math.round(range.value * all[state.curve].steps)));
  number.addEventListener("change", () => threshold(Math.round(Math.min(1, Math.max(0, Number(number.value) || 0)) * all[state.curve].steps)));
  which.addEventListener("change", () => threshold(undefined, Number(which.value)));
  block.append(element("p", { class: "quiet", id: "threshold-note" }), element("div", { class: "controls" }, all.length > 1 ? control("Class", which) : null,
    control("A row is called positive from this probability on", range, { class: "control slider" }), control("Threshold", number)), rates());
  const pictures = element("div", { class: "grid block" }, curvePicture("roc", "ROC", "Sensitivity against the false positive rate, for every threshold"), curvePicture("precision_recall", "Precision and recall", "Precision against recall, for every threshold"));
  return [block, pictures];
}

function rates() {
  const cell = (id) => element("td", { id: `confusion-${id}` });
  const matrix = element("table", { class: "matrix short" },
    element("thead", {}, element("tr", {}, element("td", { style: "background: none" }), element("th", { scope: "col", id: "called-positive" }), element("th", { scope: "col" }, "others called"))),
    element("tbody", {}, element("tr", {}, element("th", { scope: "row", id: "is-positive" }), cell("tp"), cell("fn")), element("tr", {}, element("th", { scope: "row" }, "are others"), cell("fp"), cell("tn"))));
  const list = ["sensitivity", "specificity", "precision", "F1"].flatMap((name) => [element("dt", {}, name), element("dd", { id: `rate-${name.toLowerCase()}` })]);
  return element("div", { class: "rates", role: "status" }, boxed(matrix, "Rows at this threshold"), element("dl", { class: "rates-list" }, list));
}

function curvePicture(name, title, label) {
  const made = picture({ title, level: "h3", label, least: 340, make: (width) => {
    const curve = figures.quality.curves[state.curve], point = pointAt(name);
    const rows = curve[name].rows.map(([x, y, t], order) => ({ line: "", order, x, y, threshold: t }));
    return filled(name, Math.min(width, 400), { curve: rows, diagonal: [{ x: 0, y: 0 }, { x: 1, y: 1 }], threshold: point ? [point] : [] }, { height: Math.min(340, width * 0.92) });
  } });
  const caption = made.querySelector("figcaption");
  caption.append(element("p", { id: `${name}-note` }));
  made.append(folded("Data", () => boxed(tableOf(figures.quality.curves[state.curve][name].fields, figures.quality.curves[state.curve][name].rows), "Data", true)));
  state[name] = made.box;
  return made;
}

// The counts and rates where a class is called at probabilities of step/steps or more.
function ratesAt(step, place) {
  const { positives, negatives, tp: above, fp: wrong } = figures.quality.curves[place];
  const tp = above[step], fp = wrong[step], fn = positives - tp, tn = negatives - fp;
  const share = (part, all) => (all ? part / all : NaN);
  return { tp, fp, tn, fn, sensitivity: share(tp, tp + fn), specificity: share(tn, tn + fp), precision: share(tp, tp + fp), f1: share(2 * tp, 2 * tp + fp + fn) };
}

function pointAt(name) {
  const at = ratesAt(state.step, state.curve);
  const [x, y] = name === "roc" ? [1 - at.specificity, at.sensitivity] : [at.sensitivity, at.precision];
  return Number.isNaN(x) || Number.isNaN(y) ? null : { x, y };
}

function threshold(step, place = state.curve) {
  const curve = figures.quality.curves[place], moved = place !== state.curve;
  state.step = step ?? Math.round(state.step / figures.quality.curves[state.curve].steps * curve.steps);
  state.curve = place;
  const value = state.step / curve.steps, at = ratesAt(state.step, place);
  for (const input of [byId("threshold"), byId("threshold-number")]) {
    input.step = 1 / curve.steps;
    input.value = value;
  }
  byId("threshold").setAttribute("aria-valuetext", `${value}: sensitivity ${percent(at.sensitivity)}, specificity ${percent(at.specificity)}`);
  byId("curve") && (byId("curve").value = place);
  byId("threshold-note").textContent = `Positive is ${curve.class}: ${shown(curve.positives)} rows against ${shown(curve.negatives)}.`;
  byId("called-positive").textContent = `${curve.class} called`;
  byId("is-positive").textContent = `are ${curve.class}`;
  for (const name of ["tp", "fp", "tn", "fn"]) {
    const whole = name === "tp" || name === "fn" ? curve.positives : curve.negatives;
    byId(`confusion-${name}`).textContent = shown(at[name]);
    byId(`confusion-${name}`).style.setProperty("--share", whole ? at[name] / whole : 0);
  }
  for (const name of ["sensitivity", "specificity", "precision", "f1"]) byId(`rate-${name}`).textContent = percent(at[name]);
  curveNotes(curve);
  for (const name of ["roc", "precision_recall"]) moved ? again(state[name]) : movePoint(name);
  return at;
}

function curveNotes(curve) {
  const interval = curve.auc_low === null ? "" : ` (95% interval ${shown(curve.auc_low)} to ${shown(curve.auc_high)})`;
  byId("roc-note").textContent = `${curve.class}: area ${shown(curve.auc)}${interval}.`;
  byId("precision_recall-note").textContent = `${curve.class}: average precision ${shown(curve.average_precision)}.`;
}

function movePoint(name) {
  const point = pointAt(name);
  drawings.get(state[name]).view?.data("threshold", point ? [point] : []).run();
}

// Confusion and calibration

// Of all classes that were judged, known to the model or not.
function confusion({ confusion: counted, by_class: each, classes: names = figures.classes }) {
  const rows = counted.map((row, i) => {
    const total = row.reduce((a, b) => a + b, 0);
    return element("tr", {}, element("th", { scope: "row" }, names[i]), row.map((n) => {
      const cell = element("td", {}, shown(n));
      cell.style.setProperty("--share", total ? n / total : 0);
      return cell;
    }));
  });
  const table = element("table", { class: names.length > 12 ? "matrix" : "matrix short", id: "confusion" },
    element("thead", {}, element("tr", {}, element("td", { style: "background: none" }), names.map((name) => element("th", { scope: "col", title: name }, name)))), element("tbody", {}, rows));
  return element("div", { class: "block" }, element("h3", {}, "Confusion"), element("p", { class: "quiet" }, "Rows are true classes, columns the most probable ones."), boxed(table, "Confusion", names.length > 20), each ? foldedTable("Each class against the others", each) : null);
}

function calibration(all) {
  let place = 0;
  const title = (c) => c.title || (c.class === null ? "the predicted class" : c.class);
  const which = element("select", { id: "calibration-class" }, options(all.map(title), all.map((_, i) => i)));
  const note = element("p", { id: "calibration-note" });
  const say = () => { note.textContent = `Of ${title(all[place])}: expected calibration error ${shown(all[place].ece)}. A calibrated model lies on the diagonal; bars are 95% intervals, rows are counted below.`; };
  const made = picture({ label: "Share of rows that are of the class, against the probability given to it, with rows below", least: 420, make: (width) => {
    const fitted = Math.min(width, 420);
    return filled("calibration", fitted, { bins: rowsOf(all[place].bins), diagonal: [{ x: 0, y: 0 }, { x: 1, y: 1 }] }, { height: Math.min(330, fitted * 0.85) });
  } });
  which.addEventListener("change", () => { place = Number(which.value); say(); again(made.box); });
  say();
  made.prepend(element("figcaption", {}, note));
  made.append(folded("Data", () => boxed(tableOf(all[place].bins.fields, all[place].bins.rows), "Data", true)));
  return element("div", { class: "block" }, element("h3", {}, "Calibration"), all.length > 1 ? element("div", { class: "controls" }, control("Of", which)) : null, made);
}

// Evidence ------------------------------------------------------------------------------------------------------------

const explained = []; // boxes that show evidence for the chosen class

// The chosen class if the table speaks of it: of two classes only the second is there.
function classIn(table) {
  const place = table.fields.indexOf("class"), there = new Set(table.rows.map((row) => row[place]));
  return there.has(state.chosen) ? state.chosen : table.rows[0]?.[place] ?? "";
}

function evidence() {
  const e = figures.evidence, section = byId("evidence");
  if (!e) return section.remove();
  state.chosen = figures.classes[figures.classes.length === 2 ? 1 : 0] ?? "";
  section.append(element("p", {}, e.sentence), rankingPicture(e));
  section.append(...classKey());
  if (e.columns.length) section.append(element("h3", {}, "Columns"), ...columnNotes(e.columns), element("div", { class: "grid" }, e.columns.slice(0, MOST_CHARTS).map(columnPicture)));
  if (e.columns.length > MOST_CHARTS) section.append(otherColumns(e.columns));
  if (e.pairs?.length) section.append(element("h3", {}, "Pairs"), element("p", { class: "quiet" }, "What two columns say together, in decibans: the stronger, the deeper the colour."), element("div", { class: "grid" }, e.pairs.map(pairPicture)));
  if (e.terms?.length) section.append(element("h3", {}, "Terms"), element("div", { class: "grid" }, e.terms.map(termsPicture)));
}

function rankingPicture(e) {
  const top = e.ranking.slice(0, MOST_BARS), more = e.ranking.length - top.length;
  const table = { fields: ["name", `mean |${e.unit}|`, "what"], rows: e.ranking.map((r) => [r.name, r.value, r.what]) };
  const made = picture({ title: "What tells most", level: "h3", note: `Mean |${e.unit}| over ${shown(e.rows)} rows${more > 0 ? `; the first ${top.length} of ${e.ranking.length}` : ""}.`,
    label: `Bars of the most telling columns: ${top.slice(0, 5).map((r) => `${r.name} ${shown(r.value)}`).join(", ")}`, least: AXIS + BAR * top.length,
    make: (width) => filled("ranking", width, { ranking: drawable(top, "value") }, { height: BAR * top.length }) });
  made.append(foldedTable(`All ${e.ranking.length}`, table));
  return made;
}

function classKey() {
  if (figures.kind === "numbers") return [];
  const binary = figures.classes.length === 2;
  const which = element("select", { id: "evidence-class" }, options(figures.classes));
  which.value = state.chosen;
  const key = element("p", { class: "key", id: "evidence-key" });
  const say = () => {
    const other = binary ? figures.classes[0] : "the other classes";
    const marks = [[`for ${state.chosen}, and how common values are in it`, "--for"], [`against it, and how common values are in ${other}`, "--against"]];
    key.replaceChildren(...marks.map(([text, colour]) => element("span", { style: `--mark: var(${colour})` }, text)));
  };
  which.addEventListener("change", () => { state.chosen = which.value; say(); explained.forEach(again); });
  say();
  return [element("div", { class: "block" }, binary || figures.classes.length < 2 ? null : element("div", { class: "controls" }, control("Evidence for class", which)), key)];
}

function remembered(made) {
  explained.push(made.box);
  return made;
}

// Said once if it holds for all, else beside each.
function columnNotes(columns) {
  const notes = [...new Set(columns.map(columnNote))];
  state.notesApart = notes.length > 1;
  return state.notesApart || !notes[0] ? [] : [element("p", { class: "quiet" }, notes[0])];
}

function columnNote({ exact, density_title: common }) {
  const mean = exact ? "" : "Means over rows, which other columns move; ranges hold 10% to 90% of them. ";
  return `${mean}${common ? `Behind or beside: ${common}.` : ""}`;
}

function columnPicture(column) {
  const { name, chart, evidence: table, density } = column, levels = chart === "levels";
  const values = new Set(table.rows.map((row) => String(row[0])));
  const labels = levels ? Math.min(120, 12 + 6.5 * [...values].reduce((most, value) => Math.max(most, value.length), 3)) : 0;
  const data = () => ({ evidence: drawable(rowsOf(table), "decibans", "low", "high"), density: chart === "numbers" ? outline(rowsOf(density)) : rowsOf(density) });
  return remembered(picture({ title: name, note: state.notesApart ? columnNote(column) : null, label: `What the values of ${name} say, in decibans`, table,
    least: levels ? AXIS + BAR * values.size : 230, make: (width) => filled(chart, width, data(), { chosen: classIn(table), height: levels ? null : 210, labels }) }));
}

// A density in steps as points of a line, two for each step; other densities are lines already.
const outline = (density) => density.flatMap((row) => ("from" in row ? [{ ...row, value: row.from }, { ...row, value: row.to }] : [row]));

function otherColumns(columns) {
  const rest = columns.slice(MOST_CHARTS), place = element("div", { class: "grid" });
  const show = (name) => {
    const column = rest.find((c) => c.name === name);
    if (column) place.replaceChildren(columnPicture(column));
  };
  const input = searchable(rest.map((c) => c.name), "other-column", show);
  show(rest[0].name);
  return element("div", { class: "block" }, element("div", { class: "controls" }, control(`Another of ${shown(rest.length)} columns`, input)), place);
}

// A select, or with many names an input that finds them.
function searchable(names, id, choose) {
  if (names.length <= MOST_OPTIONS) {
    const select = element("select", { id }, options(names));
    select.addEventListener("change", () => choose(select.value));
    return select;
  }
  const input = element("input", { id, list: `${id}-names`, value: names[0], autocomplete: "off", placeholder: "a column's name" });
  input.addEventListener("focus", () => byId(`${id}-names`) ?? input.after(element("datalist", { id: `${id}-names` }, names.map((name) => element("option", { value: name })))), { once: true });
  input.addEventListener("input", () => choose(input.value));
  return input;
}

function pairPicture({ names, cells }) {
  const across = new Set(cells.rows.map((row) => row[0])).size, down = new Set(cells.rows.map((row) => row[1])).size;
  const height = Math.max(90, Math.min(320, 28 * down));
  const made = picture({ title: names.join(" × "), note: `${names[0]} across, ${names[1]} down.`, label: `Decibans of ${names.join(" and ")} together`, least: height + AXIS, table: cells, make: (width) => {
    const spec = filled("pair", width, { cells: drawable(rowsOf(cells), "decibans") }, { chosen: classIn(cells), height });
    if ((width - 110) / across < 26) spec.layer.pop(); // numbers would not fit
    return spec;
  } });
  return remembered(made);
}

function termsPicture({ name, terms }) {
  return remembered(picture({ title: name || null, label: `Terms for and against the class, in decibans`, least: AXIS, table: terms, make: (width) => {
    const chosen = classIn(terms);
    const mine = drawable(rowsOf(terms).filter((row) => row.class === chosen), "decibans").sort((a, b) => b.decibans - a.decibans);
    const telling = mine.length <= 2 * MOST_TERMS ? mine : [...mine.slice(0, MOST_TERMS), ...mine.slice(-MOST_TERMS)];
    return filled("terms", width, { terms: telling }, { height: BAR * telling.length });
  } }));
}

// One prediction ------------------------------------------------------------------------------------------------------

const fields = []; // {column, place, read() → cell, write(cell)}
let scorer = null;

async function prediction() {
  const section = byId("prediction"), { scoring } = figures;
  if (!scoring?.columns) return section.append(element("p", {}, `This model is not scored inside the page${scoring?.why ? `: ${scoring.why}` : "."}`));
  scorer = await Scoring.load(scoring);
  section.append(element("p", {}, figures.rows?.sentence ?? "", " Change a cell and see what it says; an empty cell is missing."), rowControls(), form(scoring.columns), result());
  reset();
  labelRows();
}

function rowControls() {
  const numbers = figures.rows?.numbers ?? [];
  const which = element("select", { id: "row" }, options(numbers.length ? numbers.map((n, i) => rowName(n, figures.rows.labels[i])) : ["empty"], numbers.length ? numbers.map((_, i) => i) : [0]));
  const button = element("button", { type: "button", id: "reset" }, "Reset");
  which.addEventListener("change", reset);
  button.addEventListener("click", reset);
  return element("div", { class: "controls" }, control("Row", which), button);
}

const rowName = (number, label, word = "") => `${number}${label === null || label === undefined ? "" : `: ${written(label)}`}${word ? `, ${word}` : ""}`;

// 1.0 is 1 in JSON, and the class "1.0".
const isLabel = (name, label) => name === written(label) || (typeof label === "number" && Number(name) === label);

// Right or wrong, where the label is known; when there is time for it.
function labelRows() {
  const { numbers = [], labels = [], cells = [] } = figures.rows ?? {}, select = byId("row");
  const some = (first) => {
    for (let i = first; i < Math.min(first + 20, numbers.length); i++) {
      if (labels[i] === null || figures.kind === "numbers") continue;
      const found = scorer.score(cells[i]);
      if (!found.problem) select.options[i].textContent = rowName(numbers[i], labels[i], isLabel(figures.classes[found.predicted], labels[i]) ? "right" : "wrong");
    }
    if (first + 20 < numbers.length) setTimeout(() => some(first + 20));
  };
  setTimeout(() => some(0));
}

function form(columns) {
  const telling = new Map((figures.evidence?.ranking ?? []).map((r, i) => [r.name, i]));
  const order = columns.map((_, i) => i).sort((a, b) => (telling.get(columns[a].name) ?? 1e9) - (telling.get(columns[b].name) ?? 1e9) || a - b);
  const made = element("form", { class: "form", id: "cells", autocomplete: "off" });
  made.addEventListener("submit", (event) => event.preventDefault());
  made.addEventListener("input", rescore);
  const first = element("div", { class: "fields" }, order.slice(0, MOST_FIELDS).map((i) => field(columns[i], i)));
  made.append(first);
  const rest = order.slice(MOST_FIELDS);
  rest.forEach((i) => fields.push({ place: i, kept: null, read() { return this.kept; }, write(cell) { this.kept = cell; } }));
  if (rest.length) made.append(folded(`Show all: ${rest.length} more columns`, () => element("div", { class: "fields" }, rest.map((i) => {
    const at = fields.findIndex((f) => f.place === i), { kept } = fields.splice(at, 1)[0], input = field(columns[i], i);
    fields[fields.length - 1].write(kept);
    return input;
  }))));
  return made;
}

function field(column, place) {
  const made = column.kind === "text" ? writtenField(element("textarea", { rows: 5 }), column) : column.kind === "boolean" ? chosenField(column, [false, true])
    : column.levels && column.levels.length <= MOST_LEVELS ? chosenField(column, column.levels)
      : writtenField(element("input", { inputmode: column.kind === "number" ? "decimal" : null, placeholder: "missing" }), column);
  made.place = place;
  fields.push(made);
  const about = figures.head.columns.find((c) => c.name === column.name);
  const hint = column.kind === "number" && about && about.low !== null ? ` (${shown(about.low)} to ${shown(about.high)})` : "";
  made.control = control(column.name + hint, made.input, { class: column.kind === "text" ? "control wide" : "control" });
  if (column.levels && column.levels.length > MOST_LEVELS) listed(made.input, column.levels);
  return made.control;
}

// Many levels: a list that is made when it is first needed.
function listed(input, levels) {
  input.setAttribute("list", `${input.id}-levels`);
  input.addEventListener("focus", () => input.after(element("datalist", { id: `${input.id}-levels` }, levels.map((level) => element("option", { value: String(level) })))), { once: true });
}

function writtenField(input, column) {
  return { input, read: () => Scoring.read(column, input.value), write: (cell) => { input.value = cell === null || cell === undefined ? "" : String(cell); } };
}

// A value that is not among the levels, such as one never seen, is added when a row has it.
function chosenField(column, levels) {
  const known = [null, ...levels], input = element("select", {}, options(["(missing)", ...levels.map(written)], known.map((_, i) => i)));
  const write = (cell) => {
    let at = known.findIndex((level) => level === (cell ?? null));
    if (at < 0) {
      at = known.push(cell) - 1;
      input.append(element("option", { value: at }, `${cell} (not seen)`));
    }
    input.value = at;
  };
  return { input, read: () => known[input.value], write };
}

function result() {
  const target = element("select", { id: "target" }), against = element("select", { id: "against" });
  for (const [select, first] of [[target, "the class predicted"], [against, "the next likely"]]) {
    select.append(...options([first, ...figures.classes], [-1, ...figures.classes.map((_, k) => k)]));
    select.addEventListener("change", rescore);
  }
  state.waterfall = picture({ label: "Waterfall of evidence, from the prior to the log-odds", least: 240, make: waterfall });
  return element("div", { class: "block" }, element("p", { class: "problem", id: "problem", role: "alert" }), element("p", { class: "result", id: "result", "aria-live": "polite" }),
    element("div", { class: "bars", id: "probabilities" }), figures.classes.length > 1 ? element("div", { class: "controls" }, control("Explain", target), control("against", against)) : null,
    element("p", { class: "quiet", id: "waterfall-note" }), state.waterfall, element("details", { id: "parts" }, element("summary", {}, "All parts as a table"), element("div", { id: "parts-table" })));
}

function reset() {
  const cells = figures.rows?.cells?.[Number(byId("row").value)];
  fields.forEach((f) => f.write(cells ? cells[f.place] : null));
  rescore();
}

function rescore() {
  const cells = new Array(fields.length).fill(null);
  let problem = "";
  for (const f of fields) {
    const cell = f.read(), bad = cell !== null && typeof cell === "object";
    f.control?.toggleAttribute("data-problem", bad);
    if (bad) problem = problem || cell.problem;
    else cells[f.place] = cell;
  }
  const found = problem ? { problem } : scorer.score(cells);
  byId("problem").textContent = found.problem ?? "";
  if (!found.problem) showResult(found);
}

function showResult(found) {
  const numbers = figures.kind === "numbers";
  const sides = numbers ? [0, 0] : sidesOf(found);
  const parts = partsOf(found, sides);
  state.shown = { parts, unit: figures.evidence?.unit ?? "decibans" };
  byId("result").textContent = numbers ? `Mean ${shown(found.mean)}` : `${figures.classes[found.predicted]}, with probability ${probability(found.proba[found.predicted])}`;
  if (!numbers) showProbabilities(found.proba);
  const total = parts[parts.length - 1].value;
  byId("waterfall-note").textContent = numbers ? `The linear predictor is ${shown(total)}.` : `${figures.classes[sides[0]]} against ${figures.classes[sides[1]]}: ${signed(total)} decibans, ${odds(total)}.`;
  byId("parts-table").replaceChildren(boxed(tableOf(["", numbers ? "predictor" : "decibans"], allParts(found, sides).map((p) => [p.name, p.value])), "All parts", true));
  const { box } = state.waterfall, drawing = drawings.get(box);
  box.setAttribute("aria-label", `Waterfall: ${parts.map((p) => `${p.name} ${signed(p.value)}`).join(", ")}`);
  box.style.setProperty("--least", `${AXIS + BAR * parts.length}px`);
  if (drawing.view && drawing.bars === parts.length) drawing.view.data("parts", apart(barsOf(parts))).run();
  else again(box);
}

// Close to 0 and 1 with the digits that tell them from it.
function probability(p) {
  if (p > 0.9999) return p === 1 ? "1" : `1 − ${(1 - p).toPrecision(2)}`;
  return p >= 0.0001 ? p.toFixed(4) : p.toPrecision(2);
}

function showProbabilities(proba) {
  const order = proba.map((_, k) => k), many = order.length > 12;
  if (many) order.sort((a, b) => proba[b] - proba[a]);
  const first = proba.indexOf(Math.max(...proba));
  byId("probabilities").replaceChildren(...order.slice(0, many ? 12 : undefined).flatMap((k) => {
    const bar = element("i");
    bar.style.width = `${100 * proba[k]}%`;
    const strong = k === first ? " first" : "";
    return [element("span", { class: `name${strong}`, title: figures.classes[k] }, figures.classes[k]), element("span", { class: "bar" }, bar), element("span", { class: `number${strong}` }, probability(proba[k]))];
  }));
}

// The class explained and the one it is weighed against: by default the one predicted, and the next likely.
function sidesOf({ joint, predicted }) {
  const asked = [byId("target"), byId("against")].map((select) => Number(select?.value ?? -1));
  const target = asked[0] < 0 ? predicted : asked[0];
  if (asked[1] >= 0) return [target, asked[1]];
  const others = joint.map((value, k) => (k === target ? -Infinity : value)), best = others.indexOf(Math.max(...others));
  return [target, best === target ? (target + 1) % joint.length : best];
}

// Prior, parts from the strongest on, and their sum.
function allParts({ names, nats, joint }, [target, against]) {
  const numbers = figures.kind === "numbers";
  const value = (row) => (numbers ? row[0] : row[target] === -Infinity && row[against] === -Infinity ? 0 : (row[target] - row[against]) * DECIBANS);
  const [first, ...rest] = names.map((name, i) => ({ name, value: value(nats[i]) }));
  rest.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const neither = !numbers && joint[target] === -Infinity && joint[against] === -Infinity; // the prior alone is left
  const total = neither ? first.value : first.value + rest.reduce((sum, part) => sum + part.value, 0);
  return [first, ...rest, { name: numbers ? "predictor" : "log-odds", value: total, total: true }];
}

function partsOf(found, sides) {
  const all = allParts(found, sides), first = all[0], total = all[all.length - 1], rest = all.slice(1, -1);
  if (rest.length <= MOST_PARTS + 1) return all;
  const others = rest.slice(MOST_PARTS);
  return [first, ...rest.slice(0, MOST_PARTS), { name: `${others.length} others`, value: others.reduce((sum, part) => sum + part.value, 0) }, total];
}

function barsOf(parts) {
  const finite = drawable(parts, "value"), taken = new Map();
  let end = 0;
  return finite.map((part, i) => {
    const start = part.total ? 0 : end, times = (taken.get(part.name) ?? 0) + 1;
    taken.set(part.name, times);
    end = part.total ? (Number.isFinite(parts[i].value) ? part.value : end) : end + part.value;
    return { name: times > 1 ? `${part.name} ${times}` : part.name, value: part.value, start, end, text: signed(parts[i].value), what: part.total ? "sum" : "part" };
  });
}

function waterfall(width) {
  const { parts } = state.shown;
  drawings.get(state.waterfall.box).bars = parts.length;
  return filled("waterfall", width, { parts: barsOf(parts) }, { height: BAR * parts.length });
}

function odds(decibans) {
  if (!Number.isFinite(decibans)) return Number.isNaN(decibans) ? "undecided" : decibans > 0 ? "certain" : "impossible";
  const bans = Math.abs(decibans) / 10;
  const times = bans > 300 ? `10^${bans.toFixed(1)}` : bans < 6 ? (10 ** bans).toLocaleString("en-US", { maximumFractionDigits: 1, minimumFractionDigits: 1 }) : (10 ** bans).toExponential(1);
  return decibans >= 0 ? `odds ${times} to 1` : `odds 1 to ${times}`;
}

// Coefficients and boundary -------------------------------------------------------------------------------------------

function linear() {
  const l = figures.linear, section = byId("linear");
  if (!l) return section.remove();
  section.append(element("p", {}, l.sentence), ...(l.notes?.length ? [element("ul", { class: "notes" }, l.notes.map((note) => element("li", {}, note)))] : []));
  section.append(element("div", { class: "grid" }, l.coefficients.map(coefficientsPicture), l.path?.rows.length ? pathPicture(l.path) : null));
}

function coefficientsPicture({ title, rows: table }) {
  const rows = drawable(rowsOf(table), "estimate", "low", "high").sort((a, b) => Math.abs(b.estimate) - Math.abs(a.estimate)).slice(0, 40);
  const note = table.rows.length > rows.length ? `The largest ${rows.length} of ${shown(table.rows.length)}.` : null;
  return picture({ title, level: "h3", note, label: `Coefficients of ${title}`, least: AXIS + BAR * rows.length, table, make: (width) => filled("coefficients", width, { coefficients: rows }, { height: BAR * rows.length }) });
}

function pathPicture(table) {
  const rows = rowsOf(table), last = Math.min(...rows.map((row) => row.objective));
  rows.forEach((row) => { row.above = row.objective > last ? row.objective - last : null; row.gradient = row.gradient > 0 ? row.gradient : null; });
  return picture({ title: "The way to the optimum", level: "h3", note: "By iteration; both sides logarithmic.", label: "Objective and gradient by iteration", least: 300, table, make: (width) => filled("path", width, { path: rows }, { labels: 70 }) });
}

function boundary() {
  const b = figures.boundary, section = byId("boundary");
  if (!b) return section.remove();
  const data = { points: rowsOf(b.points), densities: rowsOf(b.densities), ties: rowsOf(b.ties) };
  section.append(element("ul", { class: "notes" }, b.notes.map((note) => element("li", {}, note))), picture({ label: `Where the most probable class changes, over ${b.names.join(" and ")}`, least: 380, table: b.points, make: (width) => {
    const spec = filled("boundary", width, data, { height: Math.min(420, width * 0.8) });
    return width < 500 ? { ...spec, config: { legend: { orient: "bottom", direction: "vertical" } } } : spec;
  } }));
}

// All of it -----------------------------------------------------------------------------------------------------------

function contents() {
  const links = [...document.querySelectorAll("main section")].map((section) => element("li", {}, element("a", { href: `#${section.id}` }, section.querySelector("h2").textContent)));
  document.querySelector("#contents ol").append(...links);
  const watch = new IntersectionObserver((entries) => entries.forEach(({ isIntersecting, target }) => {
    const link = document.querySelector(`#contents a[href="#${target.id}"]`);
    isIntersecting ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
  }), { rootMargin: "-20% 0px -75% 0px" });
  document.querySelectorAll("main section").forEach((section) => watch.observe(section));
  byId("theme").addEventListener("change", ({ target }) => {
    target.value === "auto" ? delete document.documentElement.dataset.theme : (document.documentElement.dataset.theme = target.value);
  });
}

async function build() {
  head();
  quality();
  evidence();
  linear();
  boundary();
  contents();
  if (byId("threshold")) threshold(Math.round(figures.quality.curves[0].steps / 2));
  await prediction();
}

window.deciban = { figures, threshold, drawAll, ready: null, get scorer() { return scorer; }, get drawings() { return drawings; } };
window.deciban.ready = build();
