// Form: a row to start from, and an input for each of its cells.

const MOST_FIELDS = 40;
const MOST_LEVELS = 50;
const fields = []; // {place, read() → cell, write(cell), input, control}

// Rows ----------------------------------------------------------------------------------------------------------------

function rowControls() {
  const { numbers = [], labels = [] } = figures.rows ?? {};
  const names = numbers.length ? numbers.map((number, i) => rowName(number, labels[i])) : ["empty"];
  const which = placesOf("row", names);
  const button = element("button", { type: "button", id: "reset" }, "Reset");
  which.addEventListener("change", reset);
  button.addEventListener("click", () => {
    for (const select of sideSelects()) select.value = -1;
    reset();
  });
  return controls(control("Row", which), button);
}

const rowName = (number, label, word = "") =>
  `${number}${there(label) ? `: ${written(label)}` : ""}${word ? `, ${word}` : ""}`;

function reset() {
  const cells = figures.rows?.cells?.[Number(byId("row").value)];
  fields.forEach((one) => one.write(cells ? cells[one.place] : null));
  rescore();
}

// 1.0 is 1 in JSON, and the class "1.0".
const isLabel = (name, label) => name === written(label) || (typeof label === "number" && Number(name) === label);

// Right or wrong, where the label is known; when there is time for it.
function judgeRows(first = 0) {
  const { numbers = [] } = figures.rows ?? {};
  if (figures.kind === "numbers" || first >= numbers.length) return;
  setTimeout(() => {
    for (let i = first; i < Math.min(first + 20, numbers.length); i++) judgeRow(i);
    judgeRows(first + 20);
  });
}

function judgeRow(i) {
  const { numbers, labels, cells } = figures.rows;
  if (labels[i] === null) return;
  const { problem, predicted } = scorer.score(cells[i]);
  if (problem) return;
  const word = isLabel(figures.classes[predicted], labels[i]) ? "right" : "wrong";
  byId("row").options[i].textContent = rowName(numbers[i], labels[i], word);
}

// Cells ---------------------------------------------------------------------------------------------------------------

// The most telling columns first; what is beyond MOST_FIELDS is behind a button.
function form(columns) {
  const ranked = new Map((figures.evidence?.ranking ?? []).map(({ name }, i) => [name, i]));
  const rank = (i) => ranked.get(columns[i].name) ?? 1e9;
  const order = [...columns.keys()].sort((a, b) => rank(a) - rank(b) || a - b);
  const rest = order.slice(MOST_FIELDS);
  const made = element("form", { class: "form", id: "cells", autocomplete: "off" });
  made.addEventListener("submit", (event) => event.preventDefault());
  made.addEventListener("input", rescore);
  made.append(fieldsOf(columns, order.slice(0, MOST_FIELDS)));
  fields.push(...rest.map(keptField));
  if (rest.length) made.append(folded(`Show all: ${rest.length} more columns`, () => shownFields(columns, rest)));
  return made;
}

function fieldsOf(columns, places) {
  const made = places.map((place) => field(columns[place], place));
  fields.push(...made);
  return element(
    "div",
    { class: "fields" },
    made.map((one) => one.control),
  );
}

// The cell of a column that is not shown.
function keptField(place) {
  let kept = null;
  return { place, read: () => kept, write: (cell) => (kept = cell) };
}

function shownFields(columns, places) {
  const kept = places.map((place) => fields.find((one) => one.place === place).read());
  const others = fields.filter((one) => !places.includes(one.place));
  fields.splice(0, fields.length, ...others);
  const made = fieldsOf(columns, places);
  fields.slice(others.length).forEach((one, i) => one.write(kept[i]));
  return made;
}

function field(column, place) {
  const made = inputFor(column);
  const about = figures.head.columns.find(({ name }) => name === column.name);
  const ranged = column.kind === "number" && about && about.low !== null;
  const label = columnName(column, figures.scoring.columns) + (ranged ? ` (${typedSpan(about.low, about.high)})` : "");
  const attributes = { class: column.kind === "text" ? "control wide" : "control" };
  const whole = control(label, made.input, attributes);
  made.input.setAttribute("aria-describedby", "problem");
  if (column.levels?.length > MOST_LEVELS) listed(made.input, column.levels);
  return { ...made, place, control: whole };
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

// A date with a clock if the model has seen one; where that is not known, text.
function momentInput({ kind, clock }) {
  if (kind === "time") return element("input", { type: "time", step: 1 });
  if (clock === null || clock === undefined) return element("input", {});
  return element("input", clock ? { type: "datetime-local", step: 1 } : { type: "date" });
}

// The cell of a row stays as it is until it is edited: an input drops line breaks, and shows "" as it shows nothing.
function writtenField(input, column) {
  let kept = null;
  let text = "";
  const write = (cell) => {
    kept = cell ?? null;
    const shown = there(cell) ? String(cell) : "";
    input.value = { "datetime-local": shown.replace(" ", "T"), date: shown.slice(0, 10) }[input.type] ?? shown;
    input.placeholder = cell === "" ? "empty" : "missing";
    text = input.value;
  };
  return { input, read: () => (input.value === text ? kept : Scoring.read(column, input.value)), write };
}

// A value that is not among the levels, such as one never seen, is added when a row has it.
function chosenField(levels) {
  const known = [null, ...levels];
  const input = element("select", {}, options(["(missing)", ...levels.map(written)], [...known.keys()]));
  const write = (cell) => {
    let at = known.indexOf(cell ?? null);
    if (at < 0) {
      at = known.push(cell) - 1;
      input.append(element("option", { value: at }, `${cell} (not seen)`));
    }
    input.value = at;
  };
  return { input, read: () => known[input.value], write };
}
