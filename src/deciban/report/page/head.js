// Head: the result, the model, its training rows, and the treatment of each feature.

const MOST_LISTED = 10;

function head() {
  const { head: about } = figures;
  byId("head").append(
    element("h1", {}, figures.title),
    element("p", { class: "lead", id: "lead" }, leadParts(figures.lead, about.label)),
    element("p", {}, about.sentence),
    quiet(rowsText(about)),
    ...[notes(about.notes)].filter(present),
    ...settingsText(about.settings),
    columnsTable(about.columns),
  );
  byId(figures.kind === "numbers" ? "reading-classes" : "reading-numbers").remove();
  byId("version").textContent = `Made by deciban ${figures.version}.`;
}

// The sentence on the result, with the name of the label as code.
function leadParts(text, label) {
  const [before, ...after] = label ? text.split(`\`${label}\``) : [text];
  return after.length ? [before, element("code", {}, label), after.join(`\`${label}\``)] : [before];
}

function rowsText({ label, training, evaluated, width, missing }) {
  const texts = [`Evaluated on ${shown(evaluated.rows)} rows${counts(evaluated.by_class, figures.quality.unknown?.rows)}.`];
  texts.push(`${plural(width, "feature")}${missing === null ? "" : `, missing values: ${missingText(missing)}`}.`);
  if (training.rows !== null) texts.unshift(`Fitted to ${shown(training.rows)} rows${counts(training.by_class)}.`);
  if (label) texts.unshift(`Label: ${label}.`);
  return texts.join(" ");
}

function counts(byClass, unknown) {
  const { classes } = figures;
  if (!byClass || classes.length > 8) return "";
  const each = classes.map((name, k) => `${name}: ${shown(byClass[k])}`);
  if (unknown) each.push(`of a class that the model does not know: ${shown(unknown)}`);
  return ` (${each.join(", ")})`;
}

function settingsText(settings) {
  if (!settings.length) return [];
  const set = settings.filter((setting) => !setting.default).map(({ name, value }) => `${name} = ${value}`);
  const text = set.length ? `Settings: ${set.join(", ")}; all others are defaults.` : "All settings are defaults.";
  const rows = settings.map((s) => [s.name, String(s.value), s.default ? "default" : "set"]);
  return [element("p", {}, text), foldedTable("All settings", { fields: ["setting", "value", ""], rows })];
}

// The features with most evidence; more than MOST_LISTED are collapsed.
function columnsTable(columns) {
  const ranked = columns.length > MOST_LISTED ? [...columns].sort((a, b) => evidenceOf(b) - evidenceOf(a)) : columns;
  const [first, rest] = [ranked.slice(0, MOST_LISTED), ranked.slice(MOST_LISTED)];
  const all = [element("h2", { class: "small" }, "Features"), columnRows(first, columns)];
  if (rest.length) {
    all.splice(1, 0, quiet(`The ${first.length} with most evidence of ${shown(figures.head.width)}.`));
    all.push(folded(`Show ${plural(rest.length, "more feature")}`, () => columnRows(rest, columns, rest.length > 14)));
  }
  return block(...all);
}

const evidenceOf = ({ decibans }) => (decibans === "inf" ? Infinity : (decibans ?? -1));

function columnRows(listed, columns, tall = false) {
  const unit = figures.evidence?.unit ?? "decibans";
  const fields = ["feature", "kind", "missing", "values", "treatment", "why", `mean |${unit}|`];
  const about = (c) => [missingText(c.missing), valuesOf(c), c.treatment, c.why, c.decibans];
  const rows = listed.map((c) => [columnName(c, columns), c.kind, ...about(c)]);
  const attributes = { class: "columns", style: `--unit: "${unit}"` };
  const decimals = unit === "decibans" ? 2 : 4;
  const table = tableOf(fields, rows, attributes, (value) => fixed(value, decimals));
  return boxed(table, "Features", tall);
}

function missingText(share) {
  if (!share) return "none";
  return share < 0.001 ? "< 0.1%" : percent(share);
}

function valuesOf({ kind, low, high, levels }) {
  if (kind === "boolean") return "";
  if (typeof low === "string") return `${low} to ${high}`; // dates
  if (low !== null && high !== null) return span(low, high);
  return levels === null ? "" : `${shown(levels)} distinct`;
}
