// Head: what the model is, what it learned from, and what it did with its columns.

function head() {
  const { head: about } = figures;
  byId("head").append(
    element("h1", {}, figures.title),
    element("p", { class: "lead" }, about.sentence),
    quiet(rowsSaid(about)),
    ...[notes(about.notes)].filter(there),
    ...settingsSaid(about.settings),
    columnsTable(about.columns),
  );
  byId(figures.kind === "numbers" ? "reading-classes" : "reading-numbers").remove();
  byId("version").textContent = `Made by deciban ${figures.version}.`;
}

function rowsSaid({ label, learned, judged, width, missing }) {
  const said = [`Judged on ${shown(judged.rows)} rows${counts(judged.by_class)}.`];
  said.push(`${plural(width, "column")}${missing === null ? "" : `, ${missingSaid(missing)} of the cells missing`}.`);
  if (learned.rows !== null) said.unshift(`Learned from ${shown(learned.rows)} rows${counts(learned.by_class)}.`);
  if (label) said.unshift(`Label: ${label}.`);
  return said.join(" ");
}

function counts(byClass) {
  const { classes } = figures;
  if (!byClass || classes.length > 8) return "";
  return ` (${classes.map((name, k) => `${name}: ${shown(byClass[k])}`).join(", ")})`;
}

function settingsSaid(settings) {
  if (!settings.length) return [];
  const set = settings.filter((setting) => !setting.default).map(({ name, value }) => `${name} = ${value}`);
  const said = set.length ? `Settings: ${set.join(", ")}; all others are defaults.` : "All settings are defaults.";
  const rows = settings.map((s) => [s.name, String(s.value), s.default ? "default" : "set"]);
  return [element("p", {}, said), foldedTable("All settings", { fields: ["setting", "value", ""], rows })];
}

function columnsTable(columns) {
  const unit = figures.evidence?.unit ?? "decibans";
  const fields = ["column", "kind", "missing", "values", "what the model did with it", "why", `mean |${unit}|`];
  const told = (c) => [missingSaid(c.missing), valuesOf(c), c.treatment, c.why, c.decibans];
  const rows = columns.map((c) => [columnName(c, columns), c.kind, ...told(c)]);
  const table = boxed(
    tableOf(fields, rows, { id: "columns", style: `--unit: "${unit}"` }),
    "Columns",
    columns.length > 14,
  );
  return block(element("h2", { class: "small" }, "Columns"), table);
}

function missingSaid(share) {
  if (!share) return "none";
  return share < 0.001 ? "< 0.1%" : percent(share);
}

function valuesOf({ kind, low, high, levels }) {
  if (kind === "boolean") return "";
  if (typeof low === "string") return `${low} to ${high}`; // dates
  if (low !== null && high !== null) return span(low, high);
  return levels === null ? "" : `${shown(levels)} different`;
}
