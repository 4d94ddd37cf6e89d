// One prediction: scored anew whenever a cell changes, and explained part by part.

const MOST_PARTS = 15;
const MOST_CLASSES = 12;
const DECIBANS = 10 / Math.LN10; // in one nat
let scorer = null;
let explanation = []; // the parts that are shown
let waterfall = null; // their figure, if there is any
const sideSelects = () => [byId("target"), byId("against")].filter(there);

async function prediction() {
  const section = byId("prediction");
  const { scoring } = figures;
  if (!scoring?.columns) {
    const why = scoring?.why ? `: ${scoring.why}` : ".";
    return section.append(element("p", {}, `This model is not scored inside the page${why}`));
  }
  scorer = await Scoring.load(scoring);
  const said = `${figures.rows?.sentence ?? ""} Change a cell and see what it says; an empty cell is missing.`;
  section.append(element("p", {}, said), rowControls(), form(scoring.columns), result());
  reset();
  judgeRows();
}

// Why there is no sum to show, if there is none.
function noSum() {
  if (figures.kind !== "numbers" && figures.classes.length < 2) return "It is the only class there is.";
  const { corrections } = figures.scoring.finish;
  const curved = corrections.some(({ curves }) => curves);
  return curved ? "Probabilities are corrected by curves, so they are no sum of what columns say." : "";
}

function result() {
  const said = [
    element("p", { class: "problem", id: "problem", role: "alert" }),
    element("p", { class: "result", id: "result", "aria-live": "polite" }),
    element("div", { class: "bars", id: "probabilities" }),
  ];
  return block(...said, ...(noSum() ? [quiet(noSum())] : explanationParts()));
}

function explanationParts() {
  waterfall = picture({
    label: "Waterfall of evidence, from the prior to the log-odds",
    least: 240,
    make: (width) => {
      drawings.get(waterfall.box).bars = namesOf(explanation);
      return filled("waterfall", width, { parts: barsOf(explanation) }, { height: BAR * explanation.length });
    },
  });
  const all = element("summary", {}, "All parts as a table");
  return [
    figures.classes.length > 1 ? sideControls() : null,
    quiet("", { id: "waterfall-note" }),
    waterfall,
    element("details", { id: "parts" }, all, element("div", { id: "parts-table" })),
  ];
}

function sideControls() {
  const side = (id, first) => {
    const values = [-1, ...figures.classes.keys()];
    const select = element("select", { id }, options([first, ...figures.classes], values));
    select.addEventListener("change", rescore);
    return select;
  };
  const target = side("target", "the class predicted");
  return controls(control("Explain", target), control("against", side("against", "the runner-up")));
}

// Scoring -------------------------------------------------------------------------------------------------------------

function rescore() {
  const { cells, problem } = cellsRead();
  const found = problem ? { problem } : scorer.score(cells);
  byId("problem").textContent = found.problem ?? "";
  if (!found.problem) showResult(found);
}

// The cells of the form, and what is wrong with the first that cannot be read.
function cellsRead() {
  const cells = new Array(fields.length).fill(null);
  let problem = "";
  for (const one of fields) {
    const cell = one.read();
    const bad = cell !== null && typeof cell === "object";
    one.input?.setAttribute("aria-invalid", bad);
    if (bad) problem = problem || cell.problem;
    else cells[one.place] = cell;
  }
  return { cells, problem };
}

function showResult(found) {
  const { predicted, proba, mean } = found;
  if (figures.kind === "numbers") {
    byId("result").textContent = `Mean ${shown(mean)}`;
  } else {
    byId("result").textContent = `${figures.classes[predicted]}, with probability ${probability(proba[predicted])}`;
    showProbabilities(proba);
  }
  if (waterfall) showExplanation(found);
}

function showExplanation(found) {
  const numbers = figures.kind === "numbers";
  const sides = numbers ? [0, 0] : sidesOf(found);
  const all = allParts(found, sides);
  const total = all[all.length - 1].value;
  const [target, against] = sides.map((k) => figures.classes[k]);
  byId("waterfall-note").textContent = numbers
    ? `The linear predictor is ${shown(total)}.`
    : `${target} against ${against}: ${signed(total)} decibans, ${odds(total)}.`;
  const rows = all.map(({ name, value }) => [name, value]);
  const table = tableOf(["", numbers ? "predictor" : "decibans"], rows);
  byId("parts-table").replaceChildren(boxed(table, "All parts", true));
  showWaterfall(telling(all));
}

const namesOf = (parts) => JSON.stringify(parts.map(({ name }) => name));

// Bars move where they are the same in the same order; Vega would leave others in the order that they had.
function showWaterfall(parts) {
  explanation = parts;
  const { box } = waterfall;
  const { view, bars } = drawings.get(box);
  box.setAttribute("aria-label", `Waterfall: ${parts.map(({ name, value }) => `${name} ${signed(value)}`).join(", ")}`);
  box.style.setProperty("--least", `${AXIS + BAR * parts.length}px`);
  if (view && bars === namesOf(parts)) view.data("parts", apart(barsOf(parts))).run();
  else again(box);
}

// Probabilities -------------------------------------------------------------------------------------------------------

// Close to 0 and 1 with the digits that tell them from it.
function probability(p) {
  if (p > 0.9999) return p === 1 ? "1" : `1 − ${(1 - p).toPrecision(2)}`;
  return p >= 0.0001 ? p.toFixed(4) : p.toPrecision(2);
}

// Of many classes the likeliest.
function showProbabilities(proba) {
  const order = [...proba.keys()];
  if (order.length > MOST_CLASSES) order.sort((a, b) => proba[b] - proba[a]).splice(MOST_CLASSES);
  const first = proba.indexOf(Math.max(...proba));
  byId("probabilities").replaceChildren(...order.flatMap((k) => probabilityBar(k, proba[k], k === first)));
}

function probabilityBar(k, p, first) {
  const name = figures.classes[k];
  const strong = first ? " first" : "";
  const bar = element("i");
  bar.style.width = `${100 * p}%`;
  return [
    element("span", { class: `name${strong}`, title: name }, name),
    element("span", { class: "bar" }, bar),
    element("span", { class: `number${strong}` }, probability(p)),
  ];
}

function odds(decibans) {
  if (Number.isNaN(decibans)) return "undecided";
  if (!Number.isFinite(decibans)) return decibans > 0 ? "certain" : "impossible";
  const times = timesLikelier(Math.abs(decibans) / 10);
  return decibans >= 0 ? `odds ${times} to 1` : `odds 1 to ${times}`;
}

function timesLikelier(bans) {
  if (bans > 300) return `10^${bans.toFixed(1)}`;
  if (bans >= 6) return (10 ** bans).toExponential(1);
  return (10 ** bans).toLocaleString("en-US", { maximumFractionDigits: 1, minimumFractionDigits: 1 });
}

// Parts ---------------------------------------------------------------------------------------------------------------

// The class explained and another that it is weighed against: by default the one predicted, and the runner-up.
function sidesOf({ joint, predicted }) {
  const [first, second] = sideSelects().map((select) => Number(select.value));
  const target = first < 0 ? predicted : first;
  if (second >= 0 && second !== target) return [target, second];
  const others = joint.map((value, k) => (k === target ? -Infinity : value));
  const best = others.indexOf(Math.max(...others));
  return [target, best === target ? (target + 1) % joint.length : best];
}

// Prior, parts with their values from the strongest on, what belongs to no column, and the sum.
function allParts({ labels, last, nats, joint }, [target, against]) {
  const numbers = figures.kind === "numbers";
  const neither = (row) => !numbers && row[target] === -Infinity && row[against] === -Infinity;
  const decibans = (row) => (neither(row) ? 0 : (row[target] - row[against]) * DECIBANS);
  const value = (row) => (numbers ? row[0] : decibans(row));
  const [first, ...rest] = labels.map((name, i) => ({ name, value: value(nats[i]), last: last[i] }));
  rest.sort((a, b) => a.last - b.last || Math.abs(b.value) - Math.abs(a.value));
  // where neither is possible the prior alone is left
  const total = neither(joint) ? first.value : first.value + sum(rest.map(({ value }) => value));
  return [first, ...rest, { name: numbers ? "predictor" : "log-odds", value: total, total: true }];
}

// The strongest parts, the others as one.
function telling(all) {
  const rest = all.slice(1, -1).filter(({ last }) => !last);
  if (rest.length <= MOST_PARTS + 1) return all;
  const others = rest.slice(MOST_PARTS);
  const one = { name: `${others.length} others`, value: sum(others.map(({ value }) => value)) };
  return [all[0], ...rest.slice(0, MOST_PARTS), one, ...all.slice(1 + rest.length)];
}

// Each bar begins where the last one ended. Where a part is infinite, the sum is drawn as far as its parts are.
function barsOf(parts) {
  const times = new Map();
  let end = 0;
  return drawable(parts, "value").map(({ name, value, total }, i) => {
    const start = total ? 0 : end;
    end = total && !Number.isFinite(parts[i].value) ? end : start + value;
    times.set(name, (times.get(name) ?? 0) + 1);
    const called = times.get(name) > 1 ? `${name} ${times.get(name)}` : name;
    return { name: called, value, start, end, text: signed(parts[i].value), what: total ? "sum" : "part" };
  });
}
