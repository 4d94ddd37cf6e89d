// Head: the model, its training rows, and the treatment of each feature.

function head() {
  const { head: about } = figures;
  byId("head").append(
    element("h1", {}, figures.title),
    element("p", { class: "lead" }, about.sentence),
    quiet(rowsText(about)),
    ...[notes(about.notes)].filter(present),
    ...settingsText(about.settings),
    columnsTable(about.columns),
  );
  byId(figures.kind === "numbers" ? "reading-classes" : "reading-numbers").remove();
  byId("version").textContent = `Made by deciban ${figures.version}.`;
}

function rowsText({ label, training, evaluated, width, missing }) {
  const texts = [`Evaluated on ${shown(evaluated.rows)} rows${counts(evaluated.by_class)}.`];
  texts.push(`${plural(width, "feature")}${missing === null ? "" : `, missing values: ${missingText(missing)}`}.`);
  if (training.rows !== null) texts.unshift(`Fitted to ${shown(training.rows)} rows${counts(training.by_class)}.`);
  if (label) texts.unshift(`Label: ${label}.`);
  return texts.join(" ");
}

function counts(byClass) {
  const { classes } = figures;
  if (!byClass || classes.length > 8) return "";
  return ` (${classes.map((name, k) => `${name}: ${shown(byClass[k])}`).join(", ")})`;
}

function settingsText(settings) {
  if (!settings.length) return [];
  const set = settings.filter((setting) => !setting.default).map(({ name, value }) => `${name} = ${value}`);
  const text = set.length ? `Settings: ${set.join(", ")}; all others are defaults.` : "All settings are defaults.";
  const rows = settings.map((s) => [s.name, String(s.value), s.default ? "default" : "set"]);
  return [element("p", {}, text), foldedTable("All settings", { fields: ["setting", "value", ""], rows })];
}

function columnsTable(columns) {
  const unit = figures.evidence?.unit ?? "decibans";
  const fields = ["feature", "kind", "missing", "values", "treatment", "why", `mean |${unit}|`];
  const about = (c) => [missingText(c.missing), valuesOf(c), c.treatment, c.why, c.decibans];
  const rows = columns.map((c) => [columnName(c, columns), c.kind, ...about(c)]);
  const table = boxed(
    tableOf(fields, rows, { id: "columns", style: `--unit: "${unit}"` }),
    "Features",
    columns.length > 14,
  );
  return block(element("h2", { class: "small" }, "Features"), table);
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
