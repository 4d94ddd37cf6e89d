// Form: a row to start from, and an input for each of its values.

const MOST_FIELDS = 40;
const MOST_LEVELS = 50;
const fields = []; // {place, read() → cell, write(cell), input, control}

// Rows ----------------------------------------------------------------------------------------------------------------

function rowControls() {
  const { numbers = [], labels = [] } = figures.rows ?? {};
  const names = numbers.length ? numbers.map((number, i) => rowName(number, labels[i])) : ["empty"];
  const which = indexSelect("row", names);
  const button = element("button", { type: "button", id: "reset" }, "Reset");
  which.addEventListener("change", reset);
  button.addEventListener("click", () => {
    for (const select of sideSelects()) select.value = -1;
    reset();
  });
  return controls(control("Row", which), button);
}

const rowName = (number, label, word = "") =>
  `${number}${present(label) ? `: ${written(label)}` : ""}${word ? `, ${word}` : ""}`;

function reset() {
  const cells = figures.rows?.cells?.[Number(byId("row").value)];
  fields.forEach((one) => one.write(cells ? cells[one.place] : null));
  rescore();
}

// The number 1.0 is 1 in JSON, but its class is called "1.0".
const isLabel = (name, label) => name === written(label) || (typeof label === "number" && Number(name) === label);

// Marks rows as right or wrong, a few at a time.
function markRows(first = 0) {
  const { numbers = [] } = figures.rows ?? {};
  if (figures.kind === "numbers" || first >= numbers.length) return;
  setTimeout(() => {
    for (let i = first; i < Math.min(first + 20, numbers.length); i++) markRow(i);
    markRows(first + 20);
  });
}

function markRow(i) {
  const { numbers, labels, cells } = figures.rows;
  if (labels[i] === null) return;
  const { problem, predicted } = scorer.score(cells[i]);
  if (problem) return;
  const word = isLabel(figures.classes[predicted], labels[i]) ? "right" : "wrong";
  byId("row").options[i].textContent = rowName(numbers[i], labels[i], word);
}

// Cells ---------------------------------------------------------------------------------------------------------------

// Features with most evidence first; more than MOST_FIELDS are collapsed.
function form(columns) {
  const ranked = new Map((figures.evidence?.ranking ?? []).map(({ name }, i) => [name, i]));
  const rank = (i) => ranked.get(columns[i].name) ?? 1e9;
  const order = [...columns.keys()].sort((a, b) => rank(a) - rank(b) || a - b);
  const rest = order.slice(MOST_FIELDS);
  const node = element("form", { class: "form", id: "cells", autocomplete: "off" });
  node.addEventListener("submit", (event) => event.preventDefault());
  node.addEventListener("input", rescore);
  node.append(fieldsOf(columns, order.slice(0, MOST_FIELDS)));
  fields.push(...rest.map(hiddenField));
  if (rest.length) node.append(folded(`Show all: ${rest.length} more features`, () => shownFields(columns, rest)));
  return node;
}

function fieldsOf(columns, places) {
  const added = places.map((place) => field(columns[place], place));
  fields.push(...added);
  return element(
    "div",
    { class: "fields" },
    added.map((one) => one.control),
  );
}

// The value of a feature that is not shown.
function hiddenField(place) {
  let value = null;
  return { place, read: () => value, write: (cell) => (value = cell) };
}

function shownFields(columns, places) {
  const values = places.map((place) => fields.find((one) => one.place === place).read());
  const others = fields.filter((one) => !places.includes(one.place));
  fields.splice(0, fields.length, ...others);
  const node = fieldsOf(columns, places);
  fields.slice(others.length).forEach((one, i) => one.write(values[i]));
  return node;
}

function field(column, place) {
  const node = inputFor(column);
  const about = figures.head.columns.find(({ name }) => name === column.name);
  const ranged = column.kind === "number" && about && about.low !== null;
  const label = columnName(column, figures.scoring.columns) + (ranged ? ` (${typedSpan(about.low, about.high)})` : "");
  const attributes = { class: column.kind === "text" ? "control wide" : "control" };
  const whole = control(label, node.input, attributes);
  node.input.setAttribute("aria-describedby", "problem");
  if (column.levels?.length > MOST_LEVELS) listed(node.input, column.levels);
  return { ...node, place, control: whole };
}

function inputFor(column) {
  const { kind, levels } = column;
  if (kind === "text") return writtenField(element("textarea", { rows: 5 }), column);
  if (kind === "boolean") return chosenField([false, true]);
  if (kind === "date" || kind === "time") return writtenField(momentInput(column), column);
  if (levels && levels.length <= MOST_LEVELS) return chosenField(levels);
  const inputmode = kind === "number" ? "decimal" : null;
  return writtenField(element("input", { inputmode }), column);
}

// An input of dates, with a time of day if the training rows had one; of text if that is unknown.
function momentInput({ kind, clock }) {
  if (kind === "time") return element("input", { type: "time", step: 1 });
  if (clock === null || clock === undefined) return element("input", {});
  return element("input", clock ? { type: "datetime-local", step: 1 } : { type: "date" });
}

// A text input. A value stays as it is until it is edited: an input drops line breaks, and cannot show "".
function writtenField(input, column) {
  let value = null;
  let text = "";
  const write = (cell) => {
    value = cell ?? null;
    const shown = present(cell) ? String(cell) : "";
    input.value = { "datetime-local": shown.replace(" ", "T"), date: shown.slice(0, 10) }[input.type] ?? shown;
    input.placeholder = cell === "" ? "empty" : "missing";
    text = input.value;
  };
  return { input, read: () => (input.value === text ? value : Scoring.read(column, input.value)), write };
}

// A select of levels; an unseen level is added when a row has it.
function chosenField(levels) {
  const known = [null, ...levels];
  const input = element("select", {}, options(["(missing)", ...levels.map(written)], [...known.keys()]));
  const write = (cell) => {
    let at = known.indexOf(cell ?? null);
    if (at < 0) {
      at = known.push(cell) - 1;
      input.append(element("option", { value: at }, `${cell} (unseen)`));
    }
    input.value = at;
  };
  return { input, read: () => known[input.value], write };
}
