// One prediction: scored again whenever a value changes, with its explanation.

const MOST_PARTS = 15;
const MOST_CLASSES = 12;
const DECIBANS = 10 / Math.LN10; // in one nat
let scorer = null;
let explanation = []; // the parts that are shown
let waterfall = null; // their figure, if there is one
const sideSelects = () => [byId("target"), byId("against")].filter(present);

async function prediction() {
  const section = byId("prediction");
  const { scoring } = figures;
  if (!scoring?.columns) {
    const why = scoring?.why ? `: ${scoring.why}` : ".";
    return section.append(element("p", {}, `This model cannot be scored in the page${why}`));
  }
  scorer = await Scoring.load(scoring);
  const text = `${figures.rows?.sentence ?? ""} Change a value to see its evidence; an empty field is a missing value.`;
  const inputs = element("div", { class: "what-if" }, answer(), form(scoring.columns));
  section.append(element("p", {}, text), rowControls(), inputs, result());
  reset();
  markRows();
}

// Why there is no explanation, or "".
function noSum() {
  if (figures.kind !== "numbers" && figures.classes.length < 2) return "There is only one class.";
  const { corrections } = figures.scoring.finish;
  const curved = corrections.some(({ curves }) => curves);
  return curved ? "Probabilities are calibrated by curves, so they are not a sum over features." : "";
}

// The prediction, which stays visible beside the inputs, or above them on a phone.
function answer() {
  const parts = [
    element("p", { class: "problem", id: "problem", role: "alert" }),
    element("p", { class: "result", id: "result", "aria-live": "polite" }),
    element("p", { class: "quiet", id: "answer-odds" }),
  ];
  const bars = element("div", { class: "bars", id: "probabilities" });
  return element("div", { class: "beside" }, element("div", { class: "answer", id: "answer" }, parts), bars);
}

const result = () => block(...(noSum() ? [quiet(noSum())] : explanationParts()));

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
  const target = side("target", "the predicted class");
  return controls(control("Explain", target), control("against", side("against", "the runner-up class")));
}

// Scoring -------------------------------------------------------------------------------------------------------------

function rescore() {
  const { cells, problem } = cellsRead();
  const scored = problem ? { problem } : scorer.score(cells);
  byId("problem").textContent = scored.problem ?? "";
  byId("answer").classList.toggle("stale", Boolean(scored.problem));
  if (!scored.problem) showResult(scored);
}

// The values of the form, and the problem of the first that cannot be parsed.
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

function showResult(scored) {
  const { predicted, proba, mean } = scored;
  if (figures.kind === "numbers") {
    byId("result").textContent = `Mean ${shown(mean)}`;
  } else {
    byId("result").textContent = `${figures.classes[predicted]}, with probability ${probability(proba[predicted])}`;
    showProbabilities(proba);
  }
  byId("answer-odds").replaceChildren(...answerOdds(scored));
  if (waterfall) showExplanation(scored);
}

// The log-odds of the predicted class against the runner-up; the linear predictor of a regression.
function answerOdds(scored) {
  if (figures.kind === "numbers") return [`Linear predictor ${shown(scored.joint[0])}`];
  if (figures.classes.length < 2) return [];
  const { predicted, proba, joint } = scored;
  const other = runnerUp(noSum() ? proba : joint, predicted);
  const curved = 10 * Math.log10(proba[predicted] / proba[other]);
  const total = noSum() ? curved : allParts(scored, [predicted, other]).at(-1).value;
  return [`${signed(total)} dban against ${figures.classes[other]}, `, element("span", {}, odds(total))];
}

function showExplanation(scored) {
  const numbers = figures.kind === "numbers";
  const sides = numbers ? [0, 0] : sidesOf(scored);
  const all = allParts(scored, sides);
  const total = all[all.length - 1].value;
  const [target, against] = sides.map((k) => figures.classes[k]);
  byId("waterfall-note").textContent = numbers
    ? `The linear predictor is ${shown(total)}.`
    : `${target} against ${against}: ${signed(total)} dban, ${odds(total)}.`;
  const rows = all.map(({ name, value }) => [name, value]);
  const table = tableOf(["", numbers ? "predictor" : "decibans"], rows);
  byId("parts-table").replaceChildren(boxed(table, "All parts", true));
  showWaterfall(strongest(all));
}

const namesOf = (parts) => JSON.stringify(parts.map(({ name }) => name));

// Bars move if their names and order are the same; otherwise the chart is drawn again, since Vega keeps the old order.
function showWaterfall(parts) {
  explanation = parts;
  const { box } = waterfall;
  const { view, bars } = drawings.get(box);
  const decimals = decimalsOf(parts);
  const texts = parts.map(({ name, value }) => `${name} ${signed(value, decimals)}`);
  box.setAttribute("aria-label", `Waterfall: ${texts.join(", ")}`);
  box.style.setProperty("--least", `${AXIS + BAR * parts.length}px`);
  if (view && bars === namesOf(parts)) view.data("parts", unreservedRows(barsOf(parts))).run();
  else redraw(box);
}

// Probabilities -------------------------------------------------------------------------------------------------------

// A probability with the digits that distinguish it from 0 and 1.
function probability(p) {
  if (p > 0.9999) return p === 1 ? "1" : `1 − ${(1 - p).toPrecision(2)}`;
  return p >= 0.0001 ? p.toFixed(4) : p.toPrecision(2);
}

// Bars of probabilities; of many classes, only the most probable.
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

// The explained class and the one it is compared with: by default the predicted and the runner-up class.
function sidesOf({ joint, predicted }) {
  const [first, second] = sideSelects().map((select) => Number(select.value));
  const target = first < 0 ? predicted : first;
  if (second >= 0 && second !== target) return [target, second];
  return [target, runnerUp(joint, target)];
}

function runnerUp(scores, target) {
  const others = scores.map((value, k) => (k === target ? -Infinity : value));
  const best = others.indexOf(Math.max(...others));
  return best === target ? (target + 1) % scores.length : best;
}

// The prior, parts in descending order, those that belong to no feature, and the sum.
function allParts({ labels, last, nats, joint }, [target, against]) {
  const numbers = figures.kind === "numbers";
  const neither = (row) => !numbers && row[target] === -Infinity && row[against] === -Infinity;
  const decibans = (row) => (neither(row) ? 0 : (row[target] - row[against]) * DECIBANS);
  const value = (row) => (numbers ? row[0] : decibans(row));
  const [first, ...rest] = labels.map((name, i) => ({ name, value: value(nats[i]), last: last[i] }));
  rest.sort((a, b) => a.last - b.last || Math.abs(b.value) - Math.abs(a.value));
  // where both are impossible, the prior alone
  const total = neither(joint) ? first.value : first.value + sum(rest.map(({ value }) => value));
  return [first, ...rest, { name: numbers ? "predictor" : "log-odds", value: total, total: true }];
}

// The strongest parts, and the others as one.
function strongest(all) {
  const rest = all.slice(1, -1).filter(({ last }) => !last);
  if (rest.length <= MOST_PARTS + 1) return all;
  const others = rest.slice(MOST_PARTS);
  const one = { name: `${others.length} others`, value: sum(others.map(({ value }) => value)) };
  return [all[0], ...rest.slice(0, MOST_PARTS), one, ...all.slice(1 + rest.length)];
}

// The decimals of numbers beside bars: one of decibans; three digits of the largest part of a linear predictor.
function decimalsOf(parts) {
  const sizes = parts.map(({ value }) => Math.abs(value)).filter((size) => size > 0 && Number.isFinite(size));
  if (figures.kind !== "numbers" || !sizes.length) return 1;
  return Math.min(9, Math.max(1, 2 - Math.floor(Math.log10(Math.max(...sizes)))));
}

// Each bar starts where the last one ended; an infinite sum is drawn as far as its parts.
function barsOf(parts) {
  const times = new Map();
  const decimals = decimalsOf(parts);
  let end = 0;
  return drawable(parts, "value").map(({ name, value, total }, i) => {
    const start = total ? 0 : end;
    end = total && !Number.isFinite(parts[i].value) ? end : start + value;
    times.set(name, (times.get(name) ?? 0) + 1);
    const unique = times.get(name) > 1 ? `${name} ${times.get(name)}` : name;
    return { name: unique, value, start, end, text: signed(parts[i].value, decimals), what: total ? "sum" : "part" };
  });
}
