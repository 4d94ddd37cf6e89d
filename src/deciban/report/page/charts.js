// Charts: Vega-Lite specifications, filled with data and drawn when they come near the viewport.

const charts = JSON.parse(byId("charts").textContent);
const printing = matchMedia("print");
const BAR = 20; // height of a bar, in pixels
const AXIS = 45; // height of the axis below
const FAR = 1.1; // an infinite number is drawn this many times as far out as the largest finite one
const WIDEST = 760; // width of a chart, in pixels

const CONFIG = {
  aria: false,
  background: "transparent",
  font: getComputedStyle(document.documentElement).getPropertyValue("--plain").trim(),
  view: { stroke: null },
  axis: {
    labelColor: "var(--soft)",
    titleColor: "var(--soft)",
    domainColor: "var(--faint)",
    tickColor: "var(--faint)",
    gridColor: "var(--rule)",
    titleFontWeight: "normal",
    labelFontSize: 12,
    titleFontSize: 12,
    titlePadding: 8,
    labelSeparation: 6,
  },
  legend: { labelColor: "var(--soft)", titleColor: "var(--soft)", titleFontWeight: "normal" },
};

const EMBED = {
  mode: "vega-lite",
  renderer: "svg",
  actions: false,
  defaultStyle: false,
  tooltip: tip,
  hover: true,
  logLevel: 1,
  config: CONFIG,
};

// Drawing -------------------------------------------------------------------------------------------------------------

const drawings = new Map(); // box → {make, view, width, done}; view is null until it is drawn
const near = new IntersectionObserver(
  (entries) => entries.forEach(({ isIntersecting, target }) => isIntersecting && draw(target)),
  { rootMargin: "500px" },
);

// Draws a chart, unless it is drawn or being drawn at this width; resolves when it is drawn.
function draw(box) {
  const drawing = drawings.get(box);
  const width = box.clientWidth;
  if (width && drawing.width !== width) {
    drawing.width = width;
    near.unobserve(box);
    drawing.done = drawInto(box, drawing);
  }
  return drawing.done;
}

async function drawInto(box, drawing) {
  drawing.view?.finalize();
  drawing.view = null;
  const inside = element("div"); // Vega gives its container a role and a name of its own
  box.replaceChildren(inside);
  const { view } = await vegaEmbed(inside, drawing.make(Math.min(drawing.width, WIDEST)), EMBED);
  if (inside.parentNode === box) drawing.view = view;
  else view.finalize(); // another drawing has started since
}

function redraw(box) {
  const drawing = drawings.get(box);
  if (!drawing) return;
  drawing.width = 0;
  near.unobserve(box);
  near.observe(box);
}

// Frees a chart that leaves the page.
function removeChart(box) {
  drawings.get(box).view?.finalize();
  near.unobserve(box);
  drawings.delete(box);
}

const drawAll = () => Promise.all([...drawings.keys()].map(draw));
addEventListener("beforeprint", drawAll);

let resizing = 0;
addEventListener("resize", () => {
  clearTimeout(resizing);
  if (!printing.matches) resizing = setTimeout(drawResized, 150);
});

function drawResized() {
  drawings.forEach((drawing, box) => Math.abs(drawing.width - box.clientWidth) > 8 && redraw(box));
}

// A figure: caption, chart, and its data as a table.
function picture({ title = null, level = "h4", note = null, label, least = 200, make, table = null }) {
  const box = element("div", { class: "chart", role: "img", "aria-label": label });
  box.style.setProperty("--least", `${least}px`);
  drawings.set(box, { make, view: null, width: 0, done: null });
  near.observe(box);
  const words = [title ? element(level, {}, title) : null, note ? element("p", {}, note) : null];
  const caption = title || note ? element("figcaption", {}, words) : null;
  const figure = element("figure", {}, caption, box, table ? foldedTable("Data", table) : null);
  figure.box = box;
  return figure;
}

// Vega's tooltips, as text.
function tip(_, event, item, value) {
  const box = byId("tip");
  box.hidden = !present(value) || value === "";
  if (box.hidden) return;
  const lines = typeof value === "object" ? Object.entries(value).map(([name, inner]) => `${name}: ${inner}`) : [value];
  box.textContent = lines.join("\n");
  const { width, height } = box.getBoundingClientRect();
  const { clientX: x, clientY: y } = event;
  box.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - width - 4))}px`;
  box.style.top = `${y + 14 + height > innerHeight ? y - height - 10 : y + 14}px`;
}

// Data ----------------------------------------------------------------------------------------------------------------

const mapped = (object, change) =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));

// A chart with data filled in, for a width in pixels.
function filled(name, width, datasets, { chosen, height, labels = 60 } = {}) {
  const spec = structuredClone(charts[name]);
  spec.datasets = { zero: [{}], ...mapped(datasets, unreservedRows) };
  for (const param of spec.params ?? []) if (param.name === "chosen") param.value = unreserved(chosen);
  if (spec.hconcat) {
    const inside = Math.max(120, width - labels - 30);
    spec.hconcat.forEach((part, i) => (part.width = Math.round(inside * (i ? 0.36 : 0.64))));
  } else if (spec.vconcat) {
    spec.vconcat.forEach((part) => (part.width = width - labels));
    if (height) spec.vconcat[0].height = height;
  } else {
    Object.assign(spec, { width, autosize: { type: "fit-x", contains: "padding" } }, height ? { height } : {});
  }
  return spec;
}

// Vega groups rows by the keys of objects, which have properties of their own: such names get a zero-width space.
const reserved = (value) => typeof value === "string" && value in Object.prototype;
const unreserved = (value) => (reserved(value) ? `${value}\u200b` : value);
const unreservedRows = (rows) =>
  rows.map((row) => (Object.values(row).some(reserved) ? mapped(row, unreserved) : row));

// Rows with infinite numbers replaced by numbers a little beyond all finite ones; a row is `infinite` if the first is.
function drawable(rows, ...names) {
  const numbers = rows.flatMap((row) => names.map((name) => row[name]));
  const far = FAR * numbers.filter(Number.isFinite).reduce((most, x) => Math.max(most, Math.abs(x)), 1);
  const ends = new Map([
    ["inf", far],
    ["-inf", -far],
    [Infinity, far],
    [-Infinity, -far],
  ]);
  return rows.map((row) => {
    const within = names.filter((name) => name in row).map((name) => [name, ends.get(row[name]) ?? row[name]]);
    return { ...row, ...Object.fromEntries(within), infinite: ends.has(row[names[0]]) };
  });
}
