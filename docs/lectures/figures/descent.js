/* Gradient descent against Newton's method, on the cost of a logistic regression with one feature and eight rows.

   <div class="lecture-figure" data-figure="descent" data-rate="0.1" data-l2="0" data-standardise="no"></div>

   Both start at the same place: at first at the class shares, b = log(n₁/n₀) and w = 0. Newton's steps are halved until
   the cost falls, which is seldom needed. */
"use strict";

lectures.register("descent", (box, options) => {
  const { math, format } = lectures;
  const X = [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4];
  const Y = [0, 0, 0, 1, 0, 1, 1, 1];
  const MOST = 500; // iterations
  const mean = X.reduce((sum, x) => sum + x, 0) / X.length;
  const spread = Math.sqrt(X.reduce((sum, x) => sum + (x - mean) ** 2, 0) / X.length);
  const AREAS = { raw: [[-12, 4], [-2, 6]], standardised: [[-6, 6], [-2, 8]] }; // of b and w
  const METHODS = ["gradient", "newton"];
  const NAMES = { gradient: "gradient descent", newton: "Newton" };
  const LOOKS = { gradient: "series-1", newton: "series-0" };

  const state = {
    rate: Number(options.rate ?? 0.1),
    l2: Number(options.l2 ?? 0),
    standardise: options.standardise === "yes",
    steps: 0,
    start: [0, 0], // b and w: the class shares, as both classes have four rows
  };

  /* The cost in the coordinates that are shown. With z = (x − mean)/spread, w·x + b = (w·spread)·z + (b + w·mean). */
  function costOf({ standardise, l2 }) {
    const rows = X.map((x) => [standardise ? (x - mean) / spread : x]);
    return math.logisticCost(rows, Y, l2, standardise ? [1 / spread ** 2] : null);
  }

  const unstandardised = ([b, w], standardise) => (standardise ? [b - (w * mean) / spread, w / spread] : [b, w]);

  function results(state) {
    const cost = costOf(state);
    const told = (path) =>
      path.map(({ w, value, gradient, step }) => {
        const [intercept, coef] = unstandardised(w, state.standardise);
        return { place: w, intercept, coef, cost: value, gradient: math.norm(gradient), step };
      });
    const minimum = told(math.newton(cost, [0, 0])).at(-1);
    const all = told(math.newton(cost, state.start));
    return {
      gradient: told(math.gradientDescent(cost, state.start, state.rate, state.steps)),
      newton: all.slice(0, state.steps + 1), // it stays where it ends
      newtonSteps: all.length - 1,
      solution: { intercept: minimum.intercept, coef: minimum.coef, cost: minimum.cost, place: minimum.place },
    };
  }

  // Controls -------------------------------------------------------------------------------------------------------

  let stop = null;
  const halt = () => {
    stop?.();
    stop = null;
    playing.set("Play");
  };
  const restart = (partial) => {
    halt();
    figure.set({ steps: 0, ...partial });
  };
  const go = (count) => figure.set({ steps: Math.min(MOST, state.steps + count) });

  const buttons = lectures.controls(box);
  const step = buttons.button({ label: "Step", press: () => (halt(), go(1)) });
  const tenSteps = buttons.button({ label: "10 steps", press: () => (halt(), go(10)) });
  const playing = buttons.button({
    label: "Play",
    press: () => {
      if (stop) return halt();
      if (state.steps >= MOST) figure.set({ steps: 0 });
      playing.set("Pause");
      let running = true;
      const cancel = lectures.play(() => {
        go(1);
        const last = figure.results().gradient.at(-1);
        running = state.steps < MOST && last.gradient > 1e-6 && Number.isFinite(last.cost);
        if (!running && stop) halt();
        return running;
      }, 250);
      stop = cancel;
      if (!running) halt();
    },
  });
  buttons.button({ label: "Reset", press: () => restart({ start: [0, 0] }) });
  buttons.checkbox({
    label: "standardise the feature",
    checked: state.standardise,
    change: (standardise) => restart({ standardise, start: [0, 0] }),
  });
  const sliders = lectures.controls(box);
  const rate = sliders.slider({
    label: "learning rate",
    min: 0.01,
    max: 2,
    log: true,
    value: state.rate,
    change: (value) => restart({ rate: Number(value.toPrecision(2)) }),
  });
  const penalty = sliders.slider({
    label: "l2",
    min: 0,
    max: 3,
    step: 0.1,
    value: state.l2,
    change: (l2) => restart({ l2 }),
  });

  // Charts ---------------------------------------------------------------------------------------------------------

  const surface = lectures.chart(box, {
    label: "Contours of the cost J over intercept b and coefficient w, with the paths of both methods",
    height: (width) => Math.max(270, Math.round(width * 0.5)),
    margin: { left: 34 },
  });
  lectures.legend(box, [
    ...METHODS.map((method) => ({ label: NAMES[method], look: LOOKS[method], shape: "circle" })),
    { label: "minimum of J", look: "series-2", shape: "triangle" },
  ]);
  const start = surface.handle({
    label: "Start of both methods",
    look: "series-text",
    shape: "square",
    step: 0.1,
    move: (b, w) => restart({ start: [b, w].map((v) => Math.round(v * 100) / 100) }),
    describe: (b, w) => `b ${format(b)}, w ${format(w)}`,
  });
  const pair = lectures.html("div", { class: "figure-row" });
  box.append(pair);
  const costs = lectures.chart(pair, { label: "Cost above its minimum, by iteration", height: 230, margin: { left: 52 } });
  const curves = lectures.chart(pair, { label: "The rows, and the probability of class 1 that each method has reached", height: 230, margin: { left: 34 } });
  const note = lectures.note(box);
  const table = lectures.table(box, {
    caption: "The last iterations: cost J and length of its gradient",
    head: ["", "descent: J", "|∇J|", "Newton: J", "|∇J|"],
  });

  let contours = { key: null };
  function levels(solution) {
    const key = `${state.standardise} ${state.l2}`;
    if (contours.key !== key) {
      const area = state.standardise ? AREAS.standardised : AREAS.raw;
      const cost = costOf(state);
      const values = math.grid((b, w) => cost.value([b, w]), area, 90, 70);
      // Heights above the minimum: factors of 2, from valley to rim.
      const lines = Array.from({ length: 11 }, (_, k) => 0.05 * 2 ** k).map((height) =>
        math.joinSegments(math.contour(values, solution.cost + height)));
      contours = { key, area, lines };
    }
    return contours;
  }

  function draw(state, { gradient, newton, solution }) {
    const { area, lines } = levels(solution);
    const primes = state.standardise ? "′" : "";
    surface.frame({ x: area[0], y: area[1], xLabel: `intercept b${primes}`, yLabel: `coefficient w${primes}`, grid: false });
    for (const level of lines) surface.lines(level, "series-soft figure-thin figure-faint");
    const far = (place) => place.map((v, k) => lectures.clamp(v, [10 * area[k][0], 10 * area[k][1]]));
    for (const [method, path] of [["gradient", gradient], ["newton", newton]]) {
      surface.line(path.map(({ place }) => far(place)), LOOKS[method]);
      path.slice(1).forEach(({ place }) => surface.dot(...far(place), LOOKS[method], path.length > 15 ? 2 : 3.5));
    }
    const triangle = lectures.mark("triangle");
    const [px, py] = [surface.x(solution.place[0]), surface.y(solution.place[1])];
    surface.marks.append(lectures.svg("g", { class: "series-2", transform: `translate(${px} ${py})` }, triangle));
    start.place(...state.start);

    // Rounding: nothing is told apart below 1e-12.
    const above = (path) => path.map(({ cost }, k) => [k, lectures.clamp(cost - solution.cost, [1e-12, 1e3])]);
    const last = Math.max(10, state.steps);
    costs.frame({
      x: [0, last],
      y: [1e-12, 1e3],
      yLog: true,
      yTicks: [-12, -9, -6, -3, 0, 3].map((power) => [10 ** power, `10${[..."" + power].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("")}`]),
      xLabel: "iteration",
      yLabel: "J − its minimum",
    });
    for (const [method, path] of [["gradient", gradient], ["newton", newton]]) {
      costs.line(above(path), LOOKS[method]);
      if (path.length <= 40) above(path).forEach(([k, value]) => costs.dot(k, value, LOOKS[method], 3));
    }

    curves.frame({ x: [0, 4.5], y: [-0.05, 1.05], yTicks: [0, 0.5, 1], xLabel: "feature x", yLabel: "probability of class 1" });
    const xs = Array.from({ length: 91 }, (_, k) => k * 0.05);
    for (const [method, path] of [["gradient", gradient], ["newton", newton]]) {
      const { intercept, coef } = path.at(-1);
      curves.line(xs.map((x) => [x, math.sigmoid(intercept + coef * x)]), LOOKS[method]);
    }
    X.forEach((x, i) => curves.dot(x, Y[i], "series-text", 4));

    const shown = Array.from({ length: Math.min(6, gradient.length) }, (_, k) => gradient.length - 1 - k).reverse();
    table.set(
      shown.map((k) => {
        const cells = [[gradient[k], "series-1"], [newton[k] ?? newton.at(-1), "series-0"]].flatMap(([at, look]) => [
          { text: at.cost < 1e5 ? lectures.fixed(at.cost, 4) : format(at.cost), look },
          { text: format(at.gradient, 2), look },
        ]);
        return [String(k), ...cells];
      }),
    );
    const { cost } = gradient.at(-1);
    const rising = gradient.length > 1 && cost > gradient.at(-2).cost;
    const line = ({ intercept, coef }) => `b\u00a0=\u00a0${format(intercept, 4)}, w\u00a0=\u00a0${format(coef, 4)}`;
    note.textContent = [
      `After ${state.steps} iterations gradient descent is at ${line(gradient.at(-1))};`,
      `Newton is at ${line(newton.at(-1))}${newton.length <= state.steps ? `, where it ended after ${newton.length - 1}` : ""}.`,
      `The minimum is J = ${format(solution.cost, 5)} at ${line(solution)}.`,
      rising ? "The learning rate is too large: gradient descent has just gone uphill." : "",
    ].join(" ");
    rate.set(state.rate);
    penalty.set(state.l2);
    for (const button of [step, tenSteps]) button.input.disabled = state.steps >= MOST;
    buttons.row.querySelector("input").checked = state.standardise;
  }

  const figure = lectures.figure(box, state, { results, draw });
  return figure;
});
