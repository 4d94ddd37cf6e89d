// Elements, numbers and tables. Every name is set as text (textContent), never as markup.

const figures = JSON.parse(document.getElementById("figures").textContent);
const MOST_TABLE_ROWS = 1000;
const byId = (id) => document.getElementById(id);
const present = (value) => value !== null && value !== undefined;

// Elements ------------------------------------------------------------------------------------------------------------

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (present(value) && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter(present));
  return node;
}

function options(names, values = names) {
  return names.map((name, i) => element("option", { value: values[i] }, String(name)));
}

// A select of names whose values are their indices.
const indexSelect = (id, names) => element("select", { id }, options(names, [...names.keys()]));

let labelled = 0;

// A label above its control.
function control(label, input, attributes = {}) {
  input.id = input.id || `control-${++labelled}`;
  return element("div", { class: "control", ...attributes }, element("label", { for: input.id }, label), input);
}

const controls = (...all) => element("div", { class: "controls" }, ...all);
const block = (...all) => element("div", { class: "block" }, ...all);
const grid = (...all) => element("div", { class: "grid" }, ...all);
const quiet = (text, attributes = {}) => element("p", { class: "quiet", ...attributes }, text);

function notes(all) {
  const lines = all.map((note) => element("li", {}, note));
  return lines.length ? element("ul", { class: "notes" }, lines) : null;
}

// A collapsible part, made when it is first opened; renew() makes it again.
function folded(summary, make) {
  const details = element("details", {}, element("summary", {}, summary));
  let inside = null;
  const fill = () => {
    inside?.remove();
    inside = make();
    details.append(inside);
  };
  details.addEventListener("toggle", fill, { once: true });
  details.renew = () => inside && fill();
  return details;
}

// Suggestions for an input, made when it first has the focus.
function listed(input, names) {
  const id = `${input.id}-names`;
  const option = (name) => element("option", { value: String(name) });
  const list = () => element("datalist", { id }, names.map(option));
  input.setAttribute("list", id);
  input.addEventListener("focus", () => input.after(list()), { once: true });
  return input;
}

// Numbers -------------------------------------------------------------------------------------------------------------

// A value or a label, as Python prints it.
const written = (value) => (value === true ? "True" : value === false ? "False" : String(value));

// A number to read: four digits, with thousands separators from `grouped` on (years have none).
function shown(value, digits = 4, grouped = 1000) {
  if (!present(value) || Number.isNaN(value)) return "–";
  if (value === "inf" || value === Infinity) return "∞";
  if (value === "-inf" || value === -Infinity) return "−∞";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return value.toLocaleString("en-US", { useGrouping: size >= grouped });
  const most = size >= 1000 ? Math.max(6, digits) : digits;
  if (size !== 0 && (size < 1e-4 || (size >= 1e7 && digits < 7))) return value.toExponential(digits - 2);
  return value.toLocaleString("en-US", { maximumSignificantDigits: most });
}

// A number with as many decimals as others of its column, unless it would be 0.
function fixed(value, decimals) {
  const size = Math.abs(value);
  if (typeof value !== "number" || !Number.isFinite(value) || size >= 1e7) return shown(value);
  if (size !== 0 && size < 0.5 * 10 ** -decimals) return `< ${(10 ** -decimals).toFixed(decimals)}`;
  return value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

// The digits that distinguish two numbers, and those between them.
function digitsBetween(low, high) {
  const times = Math.max(Math.abs(low), Math.abs(high)) / (high - low);
  return times > 1 && times < 1e12 ? Math.min(17, Math.max(4, 2 + Math.ceil(Math.log10(times)))) : 4;
}

// A number as a person would type it.
const typed = (value, digits) =>
  value.toLocaleString("en-US", { maximumSignificantDigits: Math.max(6, digits), useGrouping: false });

function signed(value, decimals = 1) {
  if (!Number.isFinite(value)) return shown(value);
  return (value < 0 ? "−" : "+") + Math.abs(value).toFixed(decimals);
}

const percent = (share) => (share === null || Number.isNaN(share) ? "–" : `${(100 * share).toFixed(1)}%`);
// A list of documents has no column name.
const columnName = ({ name, kind }, { length }) =>
  length === 1 && kind === "text" && name === "0" ? "document" : name;
const plural = (count, word) => `${shown(count)} ${word}${count === 1 ? "" : "s"}`;
const span = (low, high, digits = digitsBetween(low, high)) =>
  [low, high].map((end) => shown(end, digits, 1e4)).join(" to ");
const typedSpan = (low, high, digits = digitsBetween(low, high)) => `${typed(low, digits)} to ${typed(high, digits)}`;
const isNumber = (value) => typeof value === "number" || value === "inf" || value === "-inf";
const sum = (values) => values.reduce((total, value) => total + value, 0);

// Tables --------------------------------------------------------------------------------------------------------------

function headed(cells, body, attributes = {}) {
  return element("table", attributes, element("thead", {}, element("tr", {}, cells)), element("tbody", {}, body));
}

// A table whose columns of numbers are aligned and written by `write`.
function tableOf(fields, rows, attributes = {}, write = shown) {
  const numeric = fields.map((_, j) => rows.length > 0 && rows.every((row) => row[j] === null || isNumber(row[j])));
  const head = fields.map((name, j) => element("th", { scope: "col", class: numeric[j] ? "number" : null }, name));
  const cell = (value, j) => {
    if (numeric[j]) return element("td", { class: "number" }, write(value));
    const text = typeof value === "string" ? value : shown(value); // a level may be called "inf"
    if (j === 0) return element("th", { scope: "row" }, text);
    return element("td", { class: text.length > 24 ? "long" : null }, text);
  };
  const body = rows.map((row) => element("tr", {}, row.map(cell)));
  return headed(head, body, attributes);
}

// A box in which a wide table scrolls, and which the keyboard can reach.
function boxed(table, label, tall = false) {
  const attributes = { class: tall ? "scroll tall" : "scroll", tabindex: 0, role: "region", "aria-label": label };
  return element("div", attributes, table);
}

function foldedTable(summary, table) {
  return folded(summary, () => {
    const more = table.rows.length - MOST_TABLE_ROWS;
    const part = boxed(tableOf(table.fields, table.rows.slice(0, MOST_TABLE_ROWS)), summary, true);
    return more > 0 ? element("div", {}, part, quiet(`… and ${shown(more)} more rows.`)) : part;
  });
}

const rowsOf = (table) => table.rows.map((row) => Object.fromEntries(table.fields.map((field, j) => [field, row[j]])));
