// Evidence: the features with most evidence, and the evidence of their values for a class.

const MOST_BARS = 20;
const MOST_CHARTS = 6;
const MOST_TERMS = 15;
const MOST_OPTIONS = 30;
const explained = new Set(); // boxes that show evidence for the chosen class
let chosenClass = null;

function evidence() {
  const e = figures.evidence;
  const section = byId("evidence");
  if (!e) return section.remove();
  chosenClass = figures.classes[figures.classes.length === 2 ? 1 : 0] ?? "";
  section.append(element("p", {}, e.sentence), rankingPicture(e), ...classKey());
  if (e.columns.length) section.append(...columnPictures(e.columns));
  if (e.pairs?.length) section.append(...pairPictures(e.pairs));
  if (e.terms?.length) section.append(element("h3", {}, "Terms"), grid(e.terms.map(termsPicture)));
}

function rankingPicture({ ranking: parts, unit }) {
  const { columns } = figures.head;
  const named = (part) => ({ ...part, name: columnName(columns[0], columns) });
  const ranking = columns.length === 1 ? parts.map(named) : parts;
  const top = ranking.slice(0, MOST_BARS);
  const first = ranking.length > top.length ? `; the first ${top.length} of ${ranking.length}` : "";
  const five = top.slice(0, 5).map(({ name, value }) => `${name} ${shown(value)}`);
  const height = BAR * top.length;
  const figure = picture({
    title: "Most evidence",
    level: "h3",
    note: `Mean |${unit}|${first}.`,
    label: `Bars of the features with most evidence: ${five.join(", ")}`,
    least: AXIS + height,
    make: (width) => filled("ranking", width, { ranking: drawable(top, "value") }, { height }),
  });
  const all = ranking.map(({ name, value, what }) => [name, value, what]);
  figure.append(foldedTable(`All ${ranking.length}`, { fields: ["name", `mean |${unit}|`, "what"], rows: all }));
  return figure;
}

// The class explained -------------------------------------------------------------------------------------------------

function classKey() {
  if (figures.kind === "numbers") return [];
  const which = element("select", { id: "evidence-class" }, options(figures.classes));
  const key = element("p", { class: "key", id: "evidence-key" });
  which.value = chosenClass;
  which.addEventListener("change", () => {
    chosenClass = which.value;
    key.replaceChildren(...keyMarks());
    explained.forEach(redraw);
  });
  key.replaceChildren(...keyMarks());
  return [block(figures.classes.length > 2 ? controls(control("Evidence for class", which)) : null, key)];
}

function keyMarks() {
  const lines = figures.evidence.columns.some(({ chart }) => chart !== "levels");
  const other = figures.classes.length === 2 ? figures.classes[0] : "the other classes";
  const mark = (text, colour) => element("span", { style: `--mark: var(${colour})` }, text);
  return [
    mark(`for ${chosenClass}, and how common values are in it`, "--for"),
    mark(`against it, and how common values are in ${other}`, "--against"),
    ...(lines ? [mark("evidence of numbers", "--ink")] : []),
  ];
}

// The chosen class if the table has it: for two classes it has only the second.
function classIn(table) {
  const column = table.fields.indexOf("class");
  return table.rows.some((row) => row[column] === chosenClass) ? chosenClass : (table.rows[0]?.[column] ?? "");
}

// A picture that is drawn again when another class is chosen.
function explaining(about) {
  const figure = picture(about);
  explained.add(figure.box);
  return figure;
}

// Features -------------------------------------------------------------------------------------------------------------

// A note that all features share is shown once.
function columnPictures(columns) {
  const texts = [...new Set(columns.map(columnNote))];
  const each = texts.length > 1;
  const first = columns.slice(0, MOST_CHARTS).map((column) => columnPicture(column, each));
  const figure = [element("h3", {}, "Features"), !each && texts[0] ? quiet(texts[0]) : null, grid(first)];
  if (columns.length > MOST_CHARTS) figure.push(otherColumns(columns.slice(MOST_CHARTS), each));
  return figure.filter(present);
}

function columnNote({ exact, density_title: common }) {
  const mean = exact ? "" : "Means over rows, since other features matter, too; ranges are from the 10% to the 90% quantile. ";
  return `${mean}${common ? `Also shown: ${common}.` : ""}`;
}

function columnPicture(column, noted) {
  const { name, chart, evidence: table } = column;
  const values = chart === "levels" ? new Set(table.rows.map((row) => String(row[0]))) : null;
  return explaining({
    title: name,
    note: noted ? columnNote(column) : null,
    label: `Evidence of the values of ${name}, in decibans`,
    table,
    least: values ? AXIS + BAR * values.size : 230,
    make: (width) => columnChart(column, values, width),
  });
}

function columnChart({ chart, evidence: table, density, scale }, values, width) {
  const rows = rowsOf(density);
  const data = {
    evidence: drawable(rowsOf(table), "decibans", "low", "high"),
    density: chart === "levels" ? rows : outline(rows),
  };
  const longest = [...(values ?? [])].reduce((most, value) => Math.max(most, value.length), 3);
  const size = values ? { labels: Math.min(120, 12 + 6.5 * longest) } : { height: 210 };
  const spec = filled(chart, width, data, { chosen: classIn(table), ...size });
  return scale ? withSymlog(spec, scale) : spec;
}

// Sets the x axis of all layers to sign(x)·log(1 + |x|/constant).
function withSymlog(spec, { constant, ticks }) {
  const x = spec.encoding?.x;
  if (x) {
    x.scale = { ...x.scale, type: "symlog", constant };
    x.axis = { ...x.axis, values: ticks, tickCount: ticks.length }; // with a smaller tickCount Vega leaves some out
  }
  spec.layer?.forEach((layer) => withSymlog(layer, { constant, ticks }));
  return spec;
}

// A density in steps as points of a line, two for each step; other densities are lines already.
function outline(density) {
  return density.flatMap((row) => ("from" in row ? [row.from, row.to].map((value) => ({ ...row, value })) : [row]));
}

function otherColumns(columns, noted) {
  const container = grid();
  const show = (name) => {
    const column = columns.find((one) => one.name === name);
    if (!column) return;
    container.querySelectorAll(".chart").forEach((box) => explained.delete(box) && removeChart(box));
    container.replaceChildren(columnPicture(column, noted));
  };
  const names = columns.map(({ name }) => name);
  const input = searchable(names, "other-column", show);
  show(names[0]);
  const label = columns.length > 1 ? `Another of ${shown(columns.length)} features` : "Another feature";
  return block(controls(control(label, input)), container);
}

// A select, or an input with suggestions for many names.
function searchable(names, id, choose) {
  const few = names.length <= MOST_OPTIONS;
  const attributes = { id, value: names[0], autocomplete: "off", placeholder: "name of a feature" };
  const input = few ? element("select", { id }, options(names)) : listed(element("input", attributes), names);
  input.addEventListener(few ? "change" : "input", () => choose(input.value));
  return input;
}

// Pairs and terms -----------------------------------------------------------------------------------------------------

function pairPictures(pairs) {
  const text = quiet("Evidence of two features together, in decibans; the colour is deepest at five.");
  return [element("h3", {}, "Pairs"), text, grid(pairs.map(pairPicture))];
}

function pairPicture({ names, cells }) {
  const [across, down] = [0, 1].map((side) => new Set(cells.rows.map((row) => row[side])).size);
  const height = Math.max(90, Math.min(320, 28 * down));
  return explaining({
    title: names.join(" × "),
    note: `${names[0]} across, ${names[1]} down.`,
    label: `Decibans of ${names.join(" and ")} together`,
    least: height + AXIS,
    table: cells,
    make: (width) => {
      const data = { cells: drawable(rowsOf(cells), "decibans") };
      const spec = filled("pair", width, data, { chosen: classIn(cells), height });
      if ((width - 110) / across < 28) spec.layer.pop(); // numbers would not fit
      return spec;
    },
  });
}

function termsPicture({ name, terms }) {
  return explaining({
    title: name || null,
    label: "Terms for and against the class, in decibans",
    least: AXIS,
    table: terms,
    make: (width) => termsChart(terms, width),
  });
}

function termsChart(table, width) {
  const chosen = classIn(table);
  const ranked = drawable(
    rowsOf(table).filter((row) => row.class === chosen),
    "decibans",
  );
  ranked.sort((a, b) => b.decibans - a.decibans);
  const few = ranked.length <= 2 * MOST_TERMS;
  const terms = few ? ranked : [...ranked.slice(0, MOST_TERMS), ...ranked.slice(-MOST_TERMS)];
  return filled("terms", width, { terms }, { height: BAR * terms.length });
}
