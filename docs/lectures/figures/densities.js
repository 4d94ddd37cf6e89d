/* Two classes under one family: densities, posterior, and the shape of the log-odds. */
"use strict";

lectures.register("densities", (box, options) => {
  const { tables, controls, format, fixed, signed } = lectures;
  // Values of a number in both classes: class 1 lies on both sides of class 0.
  const SAMPLE = [
    [3.1, 3.6, 3.9, 4.2, 4.4, 4.6, 4.8, 4.9, 5.0, 5.1, 5.2, 5.4, 5.5, 5.7, 5.9, 6.2, 6.4, 6.9, 7.3, 8.1],
    [0.6, 1.1, 1.5, 1.8, 2.0, 2.3, 2.4, 2.9, 3.3, 4.0, 6.6, 7.0, 7.5, 7.7, 8.0, 8.2, 8.5, 8.9, 9.2, 9.6],
  ];
  const WITHIN = { gaussian: [-8, 8], exponential: [0, 8], poisson: [0, 16], uniform: [0, 40], binned: [0, 10] };
  const START = { gaussian: 0.5, exponential: 1, poisson: 2, uniform: 17, binned: 5 };
  const state = tables.withOptions(
    {
      family: "gaussian", prior: 0.5,
      mean0: -1, sd0: 1, mean1: 1, sd1: 1,
      rate0: 2, rate1: 0.5,
      events0: 1, events1: 4,
      low0: 10, high0: 18, low1: 16, high1: 30,
      bins: 6, alpha: 1,
    },
    options,
  );
  state.x = options.x === undefined ? START[state.family] : Number(options.x);

  // Controls: a row of sliders for each family
  const common = controls(box);
  const family = common.select({
    label: "family", value: state.family,
    options: [
      ["gaussian", "Gaussian"], ["exponential", "exponential"], ["poisson", "Poisson"], ["uniform", "uniform"],
      ["binned", "binned sample"],
    ],
    change: (chosen) => figure.set({ family: chosen, x: START[chosen] }),
  });
  const rows = {};
  const sliders = {};
  const add = (row, key, label, min, max, step) => {
    const slider = row.slider({
      label, min, max, step, value: state[key] ?? min,
      show: (value) => fixed(value, step < 0.05 ? 2 : step < 1 ? 1 : 0),
      change: (value) => figure.set(consistent(key, value)),
    });
    (sliders[key] ??= []).push(slider);
  };
  const group = (name, ...specifications) => {
    rows[name] = controls(box);
    for (const specification of specifications) add(rows[name], ...specification);
    const [low, high] = WITHIN[name];
    const [least, step] = { exponential: [0.05, 0.05], poisson: [0, 1], uniform: [low, 0.5] }[name] ?? [low, 0.1];
    add(rows[name], "x", "x", least, high, step);
  };
  add(common, "prior", "prior p(1)", 0.01, 0.99, 0.01);
  group("gaussian", ["mean0", "μ₀", -4, 4, 0.1], ["sd0", "σ₀", 0.3, 3, 0.1], ["mean1", "μ₁", -4, 4, 0.1], ["sd1", "σ₁", 0.3, 3, 0.1]);
  group("exponential", ["rate0", "λ₀", 0.1, 4, 0.1], ["rate1", "λ₁", 0.1, 4, 0.1]);
  group("poisson", ["events0", "λ₀", 0.5, 10, 0.5], ["events1", "λ₁", 0.5, 10, 0.5]);
  group("uniform", ["low0", "a₀", 0, 39, 1], ["high0", "b₀", 1, 40, 1], ["low1", "a₁", 0, 39, 1], ["high1", "b₁", 1, 40, 1]);
  group("binned", ["bins", "bins", 1, 12, 1], ["alpha", "α", 0, 5, 0.5]);

  /* An interval is at least 1 long: the other end gives way. */
  function consistent(key, value) {
    const { low0, high0, low1, high1 } = figure.state;
    const other = {
      low0: () => ({ high0: Math.max(high0, value + 1) }), high0: () => ({ low0: Math.min(low0, value - 1) }),
      low1: () => ({ high1: Math.max(high1, value + 1) }), high1: () => ({ low1: Math.min(low1, value - 1) }),
    }[key];
    return { [key]: value, ...other?.() };
  }

  const LEGEND = [{ label: "class 0", look: "series-0" }, { label: "class 1", look: "series-1" }];
  lectures.legend(box, LEGEND);
  const above = lectures.chart(box, { label: "Density of x in both classes", height: 190 });
  const middle = lectures.chart(box, { label: "Posterior probability of class 1", height: 150 });
  const below = lectures.chart(box, { label: "Log-odds of class 1 in decibans", height: 190 });
  const note = lectures.note(box);

  function classes(now) {
    return {
      gaussian: () => [{ mean: now.mean0, sd: now.sd0 }, { mean: now.mean1, sd: now.sd1 }],
      exponential: () => [{ rate: now.rate0 }, { rate: now.rate1 }],
      poisson: () => [{ rate: now.events0 }, { rate: now.events1 }],
      uniform: () => [{ low: now.low0, high: now.high0 }, { low: now.low1, high: now.high1 }],
      binned: () => tables.binned(SAMPLE, now.bins, now.alpha),
    }[now.family]();
  }
  function shapeOf(coefficients) {
    if (!coefficients) return "steps";
    return coefficients[2] !== 0 ? "quadratic" : coefficients[1] !== 0 ? "linear" : "constant";
  }

  const figure = lectures.figure(box, state, {
    results(now) {
      const parameters = classes(now);
      const coefficients = tables.polynomial(now.family, parameters, now.prior);
      const at = tables.classify(now.family, now.x, parameters, now.prior);
      return { ...at, parameters, coefficients, shape: shapeOf(coefficients), sample: SAMPLE };
    },
    draw(now, found) {
      family.set(now.family);
      for (const [key, list] of Object.entries(sliders)) for (const slider of list) slider.set(now[key]);
      for (const name of Object.keys(rows)) rows[name].row.hidden = name !== now.family;
      const curves = sampled(now, found.parameters);
      drawDensities(now, found, curves);
      drawPosterior(now, found, curves);
      drawLogOdds(now, found, curves);
      note.textContent = words(now, found);
    },
  });

  /* Points at which to compute: whole numbers for Poisson, both sides of every step, else a fine grid. */
  function sampled(now, parameters) {
    const [low, high] = WITHIN[now.family];
    const places = [];
    if (now.family === "poisson") for (let x = low; x <= high; x++) places.push(x);
    else for (let i = now.family === "exponential" ? 1 : 0; i <= 400; i++) places.push(low + ((high - low) * i) / 400);
    const steps = parameters.flatMap((one) => one.cuts ?? (one.low === undefined ? [] : [one.low, one.high]));
    for (const step of steps) places.push(step - 1e-9, step, step + 1e-9);
    places.sort((a, b) => a - b);
    return places.map((x) => ({ x, ...tables.classify(now.family, x, parameters, now.prior) }));
  }
  function drawDensities(now, { log }, curves) {
    const top = 1.1 * Math.max(...curves.flatMap((point) => point.log.map(Math.exp)));
    const yLabel = { poisson: "probability", binned: "probability of the bin" }[now.family] ?? "density";
    above.frame({ x: wide(now), y: [0, top], yLabel });
    for (const k of [0, 1]) {
      const points = curves.map((point) => [point.x, Math.exp(point.log[k])]);
      if (now.family === "poisson") {
        for (const [x, y] of points) above.rect(k ? [x, x + 0.3] : [x - 0.3, x], [0, y], `series-${k} figure-strong`);
      } else {
        above.area(points, `series-${k}`);
        above.line(points, `series-${k}`);
      }
      if (now.family === "binned") {
        for (const value of SAMPLE[k]) above.line([[value, 0], [value, 0.04 * top]], `series-${k}`);
      }
      above.dot(now.x, Math.exp(log[k]), `series-${k}`, 5);
    }
    above.line([[now.x, 0], [now.x, top]], "series-text figure-thin figure-dashed");
  }
  function wide(now) {
    const [low, high] = WITHIN[now.family];
    return now.family === "poisson" ? [low - 0.6, high + 0.6] : [low, high];
  }
  function drawPosterior(now, { probability }, curves) {
    middle.frame({ x: wide(now), y: [-0.03, 1.03], yLabel: "p(1 | x)", yTicks: [0, 0.5, 1] });
    curve(middle, now, curves.map((point) => [point.x, point.probability]));
    middle.line([[now.x, 0], [now.x, 1]], "series-text figure-thin figure-dashed");
    middle.dot(now.x, probability, "series-2", 5);
  }
  function drawLogOdds(now, { logOdds }, curves) {
    const reach = 40;
    const inside = (y) => lectures.clamp(y, [-2 * reach, 2 * reach]);
    below.frame({ x: wide(now), y: [-reach, reach], xLabel: "x", yLabel: "log-odds in decibans", yTicks: [-40, -20, 0, 20, 40] });
    below.line([[wide(now)[0], 0], [wide(now)[1], 0]], "series-soft figure-thin");
    curve(below, now, curves.map((point) => [point.x, inside(point.logOdds)]));
    below.line([[now.x, -reach], [now.x, reach]], "series-text figure-thin figure-dashed");
    below.dot(now.x, lectures.clamp(logOdds, [-reach, reach]), "series-2", 5);
  }
  function curve(chart, now, points) {
    if (now.family === "poisson") {
      chart.line(points, "series-2 figure-thin figure-dotted");
      for (const [x, y] of points) chart.dot(x, y, "series-2", 3.5);
    } else chart.line(points, "series-2");
  }
  function words(now, { logOdds, probability, impossible, coefficients, shape, log }) {
    const [c, b, a] = coefficients ?? [];
    const terms = [[c, ""], [b, "·x"], [a, "·x²"]].filter(([value]) => value);
    const term = ([value, power], i) => {
      const sign = value < 0 ? (i ? " − " : "−") : i ? " + " : "";
      return sign + format(Math.abs(value)) + power;
    };
    const sum = terms.map(term).join("") || "0";
    const about = {
      constant: `The log-odds are ${sum} decibans everywhere: constant, x says nothing.`,
      linear: `The log-odds are ${sum} decibans: linear in x, so the posterior is a sigmoid.`,
      quadratic: `The log-odds are ${sum} decibans: quadratic in x.`,
      steps: "The log-odds are constant between the ends of intervals: a step function.",
    }[shape];
    const here =
      impossible.length === 2
        ? "impossible under both classes: the answer is the prior."
        : `${now.family === "poisson" || now.family === "binned" ? "probabilities" : "densities"} ${format(Math.exp(log[0]))} and ${format(Math.exp(log[1]))}, ${signed(logOdds)} decibans,` +
          ` p(1 | x) = ${format(probability, 4)}.`;
    return `${about} At x = ${format(now.x)}: ${here}`;
  }
  return figure;
});
