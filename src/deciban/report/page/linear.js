// Coefficients, the path of the solver, and the decision boundary.

const MOST_COEFFICIENTS = 40;
const REACH = 3; // times the largest coefficient: where intervals are cut off
const INTERCEPT = "(intercept)";

function linear() {
  const l = figures.linear;
  const section = byId("linear");
  if (!l) return section.remove();
  const path = l.path?.rows.length ? pathPicture(l.path) : null;
  const parts = [
    element("p", {}, l.sentence),
    notes(l.notes ?? []),
    grid(l.coefficients.map(coefficientsPicture), path),
  ];
  section.append(...parts.filter(present));
}

// The largest coefficients, without the intercept, which is on another scale; intervals are cut off.
function coefficientsPicture({ title, rows: table }) {
  const whole = rowsOf(table);
  const slopes = whole.filter(({ name }) => name !== INTERCEPT);
  const all = slopes.length ? slopes : whole;
  all.sort((a, b) => Math.abs(b.estimate) - Math.abs(a.estimate));
  const reach = REACH * Math.abs(all[0].estimate);
  const within = (end) => (present(end) ? Math.min(Math.max(end, -reach), reach) : end);
  const largest = all.slice(0, MOST_COEFFICIENTS);
  const coefficients = largest.map((row) => ({ ...row, from: within(row.low), to: within(row.high) }));
  const height = BAR * coefficients.length;
  const cut = coefficients.some((row) => row.from !== row.low || row.to !== row.high);
  const texts = [
    all.length > coefficients.length ? `The largest ${coefficients.length} of ${shown(all.length)}.` : "",
    cut ? `Intervals are cut off at ±${shown(reach)}.` : "",
  ];
  return picture({
    title,
    level: "h3",
    note: texts.join(" ").trim() || null,
    label: `Coefficients of ${title}`,
    least: AXIS + height,
    table,
    make: (width) => filled("coefficients", width, { coefficients }, { height }),
  });
}

function pathPicture(table) {
  const rows = rowsOf(table);
  const least = Math.min(...rows.map((row) => row.objective));
  const above = (x, floor) => (x > floor ? x - floor : null); // null where it has no logarithm
  const path = rows.map((row) => ({ ...row, above: above(row.objective, least), gradient: above(row.gradient, 0) }));
  return picture({
    title: "Convergence",
    level: "h3",
    note: "By iteration; both vertical axes are logarithmic.",
    label: "Objective and gradient by iteration",
    least: 300,
    table,
    make: (width) => filled("path", width, { path }, { labels: 70 }),
  });
}

function boundary() {
  const b = figures.boundary;
  const section = byId("boundary");
  if (!b) return section.remove();
  const data = { points: rowsOf(b.points), densities: rowsOf(b.densities), ties: rowsOf(b.ties) };
  const figure = picture({
    label: `Where the most probable class changes, over ${b.names.join(" and ")}`,
    least: 380,
    table: b.points,
    make: (width) => {
      const spec = filled("boundary", width, data, { height: Math.min(420, width * 0.8) });
      return width < 500 ? { ...spec, config: { legend: { orient: "bottom", direction: "vertical" } } } : spec;
    },
  });
  section.append(...[notes(b.notes), figure].filter(present));
}
