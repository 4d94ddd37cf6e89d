/* Points of two or three classes that are dragged, and what six models make of them.

   <div class="lecture-figure" data-figure="points" data-show="lda,qda" data-classes="2" data-points="clouds"></div>

   data-show     models that are ticked at first: gnb, lda, qda, softmax, and for two classes logistic, halfspace
   data-classes  2 (the default) or 3
   data-points   which points: clouds, correlated, own, apart, outlier (two classes); clouds, row (three) */
"use strict";

lectures.register("points", (box, options) => {
  const { math, format, fixed } = lectures;
  const K = options.classes === "3" ? 3 : 2;
  const BOX = [[0, 10], [0, 8]];
  const MOST = 60; // points: lines of least slack are found by trying all triples
  const NAMES = ["A", "B", "C"];
  const SHAPES = ["circle", "square", "triangle"];

  const MODELS = {
    gnb: { name: "Gaussian naive Bayes", look: "series-3 figure-dashed", fit: (X, y) => math.gaussian(X, y, K, "diagonal") },
    lda: { name: "LDA", look: "series-4", fit: (X, y) => math.gaussian(X, y, K, "shared") },
    qda: { name: "QDA", look: "series-5 figure-long", fit: (X, y) => math.gaussian(X, y, K, "per-class") },
    logistic: { name: "logistic regression", look: "series-text", only: 2, fit: (X, y, l2) => math.logistic(X, y, l2) },
    softmax: { name: "softmax regression", look: "series-text figure-dotted", fit: (X, y, l2) => math.softmax(X, y, K, l2) },
    halfspace: { name: "halfspace", look: "series-2 figure-dashdot", only: 2, fit: (X, y) => math.halfspace(X, y) },
  };
  const offered = Object.keys(MODELS).filter((name) => (MODELS[name].only ?? K) === K);

  // Points that the figure begins with: normal numbers from a seed, moved and stretched, rounded to tenths.
  const cloud = (seed, label, count, [mx, my], [[a, b], [c, d]]) => {
    const random = math.uniform(seed);
    return Array.from({ length: count }, () => {
      const [u, v] = [math.normal(random), math.normal(random)];
      const round = (value, k) => Math.round(10 * lectures.clamp(value, [BOX[k][0] + 0.2, BOX[k][1] - 0.2])) / 10;
      return { x: round(mx + a * u + b * v, 0), y: round(my + c * u + d * v, 1), label };
    });
  };
  const round = [[1, 0], [0, 1]];
  const SETS = {
    2: {
      clouds: ["two clouds of one shape", () => [...cloud(3, 0, 12, [3.6, 3.4], round), ...cloud(14, 1, 12, [5.7, 4.6], round)]],
      correlated: ["correlated features", () => [
        ...cloud(5, 0, 12, [4.2, 4.6], [[1.5, 0], [1.2, 0.5]]), ...cloud(8, 1, 12, [5.8, 3.4], [[1.5, 0], [1.2, 0.5]])]],
      own: ["a cloud inside another", () => [
        ...cloud(4, 0, 12, [5, 4], [[0.7, 0], [0, 0.6]]), ...cloud(10, 1, 14, [5.2, 4], [[2.4, 0], [0, 1.9]])]],
      apart: ["separable classes", () => [...cloud(2, 0, 9, [2.9, 2.7], [[0.9, 0], [0, 0.8]]), ...cloud(7, 1, 9, [7, 5.3], [[0.9, 0], [0, 0.8]])]],
      outlier: ["an outlier far on the right side", () => [
        ...cloud(2, 0, 9, [2.9, 4], [[0.7, 0], [0, 0.9]]), ...cloud(7, 1, 8, [5.2, 4], [[0.6, 0], [0, 0.9]]), { x: 9.7, y: 1, label: 1 }]],
    },
    3: {
      clouds: ["three clouds", () => [
        ...cloud(3, 0, 9, [2.9, 2.9], round), ...cloud(14, 1, 9, [7, 3.2], round), ...cloud(21, 2, 9, [5, 5.9], [[1, 0], [0, 0.8]])]],
      row: ["three in a row", () => [
        ...cloud(3, 0, 9, [2, 4], [[0.7, 0], [0, 1.2]]), ...cloud(14, 1, 9, [5, 4], [[0.7, 0], [0, 1.2]]), ...cloud(21, 2, 9, [8, 4], [[0.7, 0], [0, 1.2]])]],
    },
  }[K];
  const first = SETS[options.points] ? options.points : "clouds";

  const asked = (options.show ?? "lda").split(",").map((name) => name.trim());
  const state = {
    set: first,
    points: SETS[first][1](), // { x, y, label }
    show: offered.filter((name) => asked.includes(name)),
    l2: 0.1,
    label: 0, // the class of a point that is added
    selected: null, // the index of the point that was touched last
  };

  function results({ points, show, l2 }) {
    const X = points.map(({ x, y }) => [x, y]);
    const y = points.map(({ label }) => label);
    const models = {};
    for (const name of show) {
      const model = MODELS[name].fit(X, y, l2);
      models[name] = model.status === "ok" ? { ...model, ...math.evaluate(model, X, y) } : model;
      if (model.status === "ok" && name !== "halfspace") {
        models[name].probabilities = X.map((x) => math.probabilities(model, x));
      }
    }
    return { n: points.length, models };
  }

  // Controls -------------------------------------------------------------------------------------------------------

  const ticks = lectures.controls(box);
  for (const name of offered) {
    const tick = ticks.checkbox({
      label: MODELS[name].name,
      checked: state.show.includes(name),
      change: (on) => figure.set({ show: offered.filter((other) => (other === name ? on : state.show.includes(other))) }),
    });
    const sign = lectures.svg("line", { class: `figure-line ${MODELS[name].look}`, x1: 0, x2: 26, y1: 6, y2: 6 });
    tick.input.after(lectures.svg("svg", { width: 26, height: 12, "aria-hidden": "true" }, sign));
  }

  const row = lectures.controls(box);
  const sets = row.select({
    label: "Points",
    options: Object.entries(SETS).map(([key, [text]]) => [key, text]),
    value: first,
    change: (set) => figure.set({ set, points: SETS[set][1](), selected: null }),
  });
  const label = row.select({
    label: "Class to add",
    options: NAMES.slice(0, K).map((name, c) => [String(c), `${name} ${"●■▲"[c]}`]),
    value: "0",
    change: (value) => figure.set({ label: Number(value) }),
  });
  const add = row.button({ label: "Add a point", press: () => addPoint(5, 4, true) });
  const remove = row.button({ label: "Remove", press: () => removePoint(state.selected) });
  row.button({
    label: "Reset",
    press: () => figure.set({ points: SETS[state.set][1](), selected: null }),
  });
  const penalties = lectures.controls(box);
  const penalty = penalties.slider({
    label: K === 2 ? "l2 of logistic, softmax" : "l2 of softmax",
    min: 0.001,
    max: 10,
    log: true,
    value: state.l2,
    change: (l2) => figure.set({ l2: Number(l2.toPrecision(3)) }),
  });

  const chart = lectures.chart(box, {
    label: "Points of the classes, with the boundaries of the models",
    height: (width) => Math.max(300, Math.round(width * 0.68) + 20),
    maxWidth: 640,
    margin: { left: 30 },
  });
  chart.svg.classList.add("figure-clickable");
  const help = lectures.html(
    "p",
    { class: "figure-note figure-help" },
    "Drag a point, or move it by the arrow keys. Click in the plane to add one; Delete removes the one in focus.",
  );
  box.append(help);
  const separable = lectures.note(box);
  const table = lectures.table(box, {
    caption: "On the points themselves",
    head: ["model", "errors", "mean log-loss"],
  });

  // Points ---------------------------------------------------------------------------------------------------------

  const round10 = (value) => Math.round(value * 100) / 100;

  function addPoint(x, y, focus) {
    if (state.points.length >= MOST) return;
    const points = [...state.points, { x: round10(x), y: round10(y), label: state.label }];
    figure.set({ points, selected: points.length - 1 });
    if (focus) handles.at(-1).node.focus();
  }

  function removePoint(k) {
    if (k === null || k >= state.points.length) return;
    const points = state.points.filter((_, i) => i !== k);
    figure.set({ points, selected: points.length ? Math.min(k, points.length - 1) : null });
    if (points.length && document.activeElement !== remove.input) handles[state.selected].node.focus();
  }

  chart.svg.addEventListener("click", (event) => {
    if (event.target.closest(".figure-handle")) return;
    const frame = chart.svg.getBoundingClientRect();
    const [x, y] = [chart.x.invert(event.clientX - frame.left), chart.y.invert(event.clientY - frame.top)];
    if (x >= BOX[0][0] && x <= BOX[0][1] && y >= BOX[1][0] && y <= BOX[1][1]) addPoint(x, y, false);
  });

  let handles = []; // one for each point, of its class
  function placeHandles() {
    state.points.forEach(({ x, y, label: c }, k) => {
      if (handles[k] && handles[k].label !== c) {
        handles.splice(k).forEach((old) => old.remove());
      }
      if (!handles[k]) {
        const handle = chart.handle({
          label: `Point ${k + 1} of class ${NAMES[c]}`,
          look: `series-${c}`,
          shape: SHAPES[c],
          step: 0.1,
          move: (px, py) => {
            const points = state.points.map((point, i) => (i === k ? { ...point, x: round10(px), y: round10(py) } : point));
            figure.set({ points, selected: k });
          },
          remove: () => removePoint(k),
        });
        handle.node.addEventListener("focus", () => {
          state.selected = k;
          remove.input.disabled = false;
        });
        handle.label = c;
        handles[k] = handle;
      }
      handles[k].place(x, y);
    });
    handles.splice(state.points.length).forEach((old) => old.remove());
  }

  // Boundaries -----------------------------------------------------------------------------------------------------

  /* Polylines where the two best classes have the same score: straight lines exactly, others traced on a grid. */
  function boundary(model) {
    const found = [];
    for (let a = 0; a < K; a++) {
      for (let b = a + 1; b < K; b++) {
        const others = [...Array(K).keys()].filter((c) => c !== a && c !== b);
        if (model.weights) {
          const difference = (p, q) => [model.weights[p].map((v, j) => v - model.weights[q][j]), model.intercepts[q] - model.intercepts[p]];
          const line = math.clipLine(...difference(a, b), BOX, others.map((c) => difference(c, a)));
          if (line) found.push(line);
        } else {
          const scores = (x, y) => model.scores([x, y]);
          const segments = math.contour(math.grid((x, y) => {
            const s = scores(x, y);
            return s[a] - s[b];
          }, BOX, 100, 80));
          found.push(...math.joinSegments(others.reduce((kept, c) => kept.flatMap((segment) => {
            const above = segment.map(([x, y]) => {
              const s = scores(x, y);
              return s[c] - Math.max(s[a], s[b]);
            });
            if (above[0] > 0 && above[1] > 0) return [];
            if (above[0] <= 0 && above[1] <= 0) return [segment];
            const t = above[0] / (above[0] - above[1]);
            const cut = segment[0].map((v, j) => v + t * (segment[1][j] - v));
            return [above[0] <= 0 ? [segment[0], cut] : [cut, segment[1]]];
          }), segments)));
        }
      }
    }
    return found;
  }

  /* Where each class is predicted: runs of cells, one path for a class. */
  function regions(model) {
    const [columns, rows] = [150, 120];
    const [[x0, x1], [y0, y1]] = BOX;
    const paths = Array.from({ length: K }, () => "");
    for (let j = 0; j < rows; j++) {
      const y = y0 + ((j + 0.5) / rows) * (y1 - y0);
      const [top, bottom] = [chart.y(y0 + ((j + 1) / rows) * (y1 - y0)), chart.y(y0 + (j / rows) * (y1 - y0))];
      let start = 0;
      let last = -1;
      for (let i = 0; i <= columns; i++) {
        let best = -2;
        if (i < columns) {
          const s = model.scores([x0 + ((i + 0.5) / columns) * (x1 - x0), y]);
          best = s.indexOf(Math.max(...s));
        }
        if (best === last) continue;
        if (last >= 0) {
          const [left, right] = [start, i].map((edge) => chart.x(x0 + (edge / columns) * (x1 - x0)).toFixed(1));
          paths[last] += `M${left} ${top.toFixed(1)}H${right}V${bottom.toFixed(1)}H${left}Z`;
        }
        [start, last] = [i, best];
      }
    }
    paths.forEach((d, c) => d && chart.marks.append(lectures.svg("path", { class: `figure-region series-${c}`, d })));
  }

  function draw({ points, show, set }, { models }) {
    chart.frame({ x: BOX[0], y: BOX[1], xLabel: "feature 1", yLabel: "feature 2", grid: false });
    const sound = show.filter((name) => models[name].status === "ok");
    if (sound.length === 1) regions(models[sound[0]]);
    for (const name of sound) {
      const model = models[name];
      model.means?.forEach((mean, c) => {
        const dash = MODELS[name].look.split(" ")[1] ?? "";
        for (const r of [1, 2]) chart.line(math.ellipse(mean, model.factors[c], r), `series-${c} figure-thin ${dash}`);
      });
    }
    for (const name of sound) {
      if (name === "halfspace" && models[name].separable) {
        const { w, d } = models[name];
        const margins = [-1, 1].map((side) => math.clipLine(w, d + side, BOX)).filter(Boolean);
        chart.lines(margins, "series-2 figure-thin figure-dashed");
      }
      chart.lines(boundary(models[name]), MODELS[name].look);
    }
    placeHandles();
    sets.set(set);
    label.set(String(state.label));
    penalty.set(state.l2);
    penalties.row.hidden = !show.includes("logistic") && !show.includes("softmax");
    add.input.disabled = points.length >= MOST;
    remove.input.disabled = state.selected === null;
    ticks.row.querySelectorAll("input").forEach((input, k) => (input.checked = show.includes(offered[k])));
    table.holder.hidden = !show.length;
    table.set(
      show.map((name) => {
        const model = models[name];
        const sign = lectures.svg("svg", { width: 26, height: 10, "aria-hidden": "true", class: "figure-sign" },
          lectures.svg("line", { class: `figure-line ${MODELS[name].look}`, x1: 0, x2: 26, y1: 5, y2: 5 }));
        const more = lectures.html("div", { class: "figure-small" }, details(name, model));
        const title = lectures.html("div", null, sign, MODELS[name].name, more);
        if (model.status !== "ok") return [title, "–", "–"];
        return [title, `${model.errors} of ${points.length}`, name === "halfspace" ? "–" : fixed(model.logLoss, 3)];
      }),
    );
    const plane = models.halfspace;
    separable.hidden = !plane || plane.status !== "ok";
    if (!separable.hidden) {
      separable.textContent = plane.separable
        ? "Separable: yes. The line halves the widest gap; the thin lines are the margins w·x − d = ±1."
        : `Separable: no. The line has the least total slack, ${format(plane.slack, 4)}.`;
    }
  }

  const pair = (v) => `(${v.map((a) => format(a)).join(", ")})`;
  function details(name, model) {
    if (model.status !== "ok") return `no estimate: ${model.status}`;
    if (name === "logistic") return `w = ${pair(model.coef)}, b = ${format(model.intercept)}`;
    if (name === "halfspace") return `w = ${pair(model.w)}, d = ${format(model.d)}`;
    if (name === "lda" && K === 2) {
      const w = model.weights[1].map((v, j) => v - model.weights[0][j]);
      return `w = ${pair(w)}, b = ${format(model.intercepts[1] - model.intercepts[0])}`;
    }
    return { gnb: "own variances", qda: "own covariances", lda: "shared covariance", softmax: `l2 = ${format(state.l2)}` }[name];
  }

  const figure = lectures.figure(box, state, { results, draw });
  return figure;
});
