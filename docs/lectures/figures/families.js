/* Exponential families: a distribution, its a(η), and the tangent whose slope is the mean. */
"use strict";

lectures.register("families", (box, options) => {
  const { tables, controls, format, fixed } = lectures;
  const ABOUT = {
    bernoulli: { name: "Bernoulli", eta: [-6, 6], a: [-0.5, 6.2], start: 1, mean: "sigmoid(η)", base: "1" },
    gaussian: { name: "Gaussian, σ = 1", eta: [-3, 3], a: [-1, 5], start: 1, mean: "η, the identity", base: "exp(−y²/2) / √(2π)" },
    poisson: { name: "Poisson", eta: [-2, 3], a: [-2, 21], start: 1, mean: "exp(η)", base: "1 / y!" },
    exponential: { name: "exponential", eta: [-4, -0.1], a: [-2, 2.6], start: -1, mean: "−1/η", base: "1 for y > 0" },
  };
  const state = tables.withOptions({ family: "bernoulli" }, options);
  state.eta = options.eta === undefined ? ABOUT[state.family].start : Number(options.eta);

  const row = controls(box);
  const family = row.select({
    label: "family", value: state.family, options: Object.entries(ABOUT).map(([key, { name }]) => [key, name]),
    change: (chosen) => figure.set({ family: chosen, eta: ABOUT[chosen].start }),
  });
  const eta = row.slider({
    label: "η", min: -6, max: 6, step: 0.05, value: state.eta, show: (value) => fixed(value),
    change: (value) => figure.set({ eta: value }),
  });
  const [left, right] = lectures.columns(box, 2);
  const density = lectures.chart(left, { label: "Distribution of y", height: 260 });
  const partition = lectures.chart(right, { label: "a(η) and its tangent", height: 260 });
  const handle = partition.handle({
    label: "η", look: "series-1", axis: "x", step: 0.05,
    move: (value) => figure.set({ eta: Number(value.toFixed(2)) }),
  });
  lectures.legend(box, [
    { label: "p(y; η)", look: "series-0" },
    { label: "mean ± standard deviation", look: "series-1" },
    { label: "a(η)", look: "series-3" },
    { label: "tangent: its slope is the mean", look: "series-1 figure-dashed" },
  ]);
  const table = lectures.table(box, { head: ["", "value", ""] });
  table.node.classList.add("figure-words");

  const figure = lectures.figure(box, state, {
    results({ family: chosen, eta: at }) {
      const one = tables.NATURAL[chosen];
      const found = { a: one.a(at), mean: one.mean(at), variance: one.variance(at) };
      return { ...found, points: outcomes(chosen, found).map((y) => [y, Math.exp(tables.naturalLog(chosen, y, at))]) };
    },
    draw(now, found) {
      const about = ABOUT[now.family];
      family.set(now.family);
      [eta.input.min, eta.input.max] = about.eta;
      eta.set(now.eta);
      drawDensity(now, found);
      drawPartition(now, found, about);
      table.set([
        ["a(η)", format(found.a, 4), `with b(y) = ${about.base}`],
        ["a′(η) = mean", format(found.mean, 4), `response function ${about.mean}`],
        ["a″(η) = variance", format(found.variance, 4), "curvature of a"],
      ]);
    },
  });

  /* The values of y that are drawn. */
  function outcomes(chosen, { mean, variance }) {
    if (chosen === "bernoulli") return [0, 1];
    const grid = (low, high) => Array.from({ length: 301 }, (_, i) => low + ((high - low) * i) / 300);
    if (chosen === "gaussian") return grid(-7, 7);
    if (chosen === "exponential") return grid(0, 8).slice(1);
    return Array.from({ length: Math.max(10, Math.ceil(mean + 4 * Math.sqrt(variance))) + 1 }, (_, y) => y);
  }
  function drawDensity(now, { points, mean, variance }) {
    const bars = now.family === "bernoulli" || now.family === "poisson";
    const around = bars ? 0.6 : 0;
    const x = [Math.floor(points[0][0]) - around, points.at(-1)[0] + around];
    const top = now.family === "bernoulli" ? 1 : 1.1 * Math.max(...points.map(([, p]) => p));
    density.frame({
      x, y: [0, top], xLabel: "y", yLabel: bars ? "probability" : "density",
      xTicks: now.family === "bernoulli" ? [0, 1] : undefined,
    });
    const sd = Math.sqrt(variance);
    density.rect([Math.max(x[0], mean - sd), Math.min(x[1], mean + sd)], [0, top], "series-1 figure-region");
    if (bars) for (const [y, p] of points) density.rect([y - 0.3, y + 0.3], [0, p], "series-0 figure-strong");
    else {
      density.area(points, "series-0");
      density.line(points, "series-0");
    }
    density.line([[mean, 0], [mean, top]], "series-1");
  }
  function drawPartition(now, { a, mean }, about) {
    const [low, high] = about.eta;
    partition.frame({ x: about.eta, y: about.a, xLabel: "η", yLabel: "a(η)" });
    const points = [];
    for (let i = 0; i <= 300; i++) {
      const at = low + ((high - low) * i) / 300;
      points.push([at, tables.NATURAL[now.family].a(at)]);
    }
    partition.line(points, "series-3");
    partition.line([low, high].map((at) => [at, a + mean * (at - now.eta)]), "series-1 figure-dashed");
    handle.place(now.eta, a);
  }
  return figure;
});
