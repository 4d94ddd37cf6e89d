/* Learning curves of a generative and a discriminative model, on rows whose distribution is known.

   <div class="lecture-figure" data-figure="learning-curve" data-truth="independent" data-generative="lda"></div>

   data-truth       independent, correlated or exponential: see lectures.math.truths
   data-generative  lda or gnb
   data-repeats     how many training samples of each size

   Repeat r draws its training rows from seed r + 1, and a sample of n rows is the first n of them; the 2,000 rows on
   which all are evaluated come from seed 0. Logistic regression has a small penalty, as few rows are often separable. */
"use strict";

lectures.register("learning-curve", (box, options) => {
  const { math, format, fixed } = lectures;
  const SIZES = [20, 40, 80, 160, 320, 640, 1280];
  const HELD_OUT = 2000;
  const TRUTHS = {
    independent: "normal, independent features",
    correlated: "normal, correlated features",
    exponential: "exponential features",
  };
  const GENERATIVE = { lda: "LDA", gnb: "Gaussian naive Bayes" };
  const RIGHT = {
    // what the true distribution is to each generative model
    lda: { independent: true, correlated: true, exponential: false },
    gnb: { independent: true, correlated: false, exponential: false },
  };
  const REASONS = {
    lda: { exponential: "LDA takes the features to be normal, and they are exponential" },
    gnb: {
      correlated: "naive Bayes takes the features to be independent, and they are correlated",
      exponential: "naive Bayes takes the features to be normal, and they are exponential",
    },
  };

  const state = {
    truth: options.truth in TRUTHS ? options.truth : "independent",
    generative: options.generative in GENERATIVE ? options.generative : "lda",
    repeats: Number(options.repeats ?? 20),
    l2: 0.01,
  };

  // Computation, a fit at a time -----------------------------------------------------------------------------------

  const memory = new Map(); // by truth and l2: { held, runs: [repeat][size] of the scores of each model }
  function known({ truth, l2 }) {
    const key = `${truth} ${l2}`;
    if (!memory.has(key)) memory.set(key, { held: math.sample(truth, 0, HELD_OUT), runs: [] });
    return memory.get(key);
  }

  function fitted(truth, l2, held, repeat, n) {
    const { X, y } = math.sample(truth, repeat + 1, n);
    const models = {
      lda: math.gaussian(X, y, 2, "shared"),
      gnb: math.gaussian(X, y, 2, "diagonal"),
      logistic: math.logistic(X, y, l2),
    };
    return Object.fromEntries(
      Object.entries(models).map(([name, model]) => {
        const { errors, logLoss } = math.evaluate(model, held.X, held.y);
        return [name, { logLoss, error: errors / HELD_OUT }];
      }),
    );
  }

  let timer = null;
  function work() {
    timer = null;
    const { truth, l2, repeats } = state;
    const { held, runs } = known(state);
    const complete = () => runs.length >= repeats && runs[repeats - 1].length === SIZES.length;
    const until = performance.now() + 12; // milliseconds: the page answers in between
    let drawn = false;
    while (!complete() && performance.now() < until) {
      if (!runs.length || runs.at(-1).length === SIZES.length) runs.push([]);
      const run = runs.at(-1);
      run.push(fitted(truth, l2, held, runs.length - 1, SIZES[run.length]));
      drawn ||= run.length === SIZES.length;
    }
    if (drawn) refresh();
    if (!complete()) timer = setTimeout(work, 0);
  }

  function results(state) {
    const { truth, generative, repeats } = state;
    const { held, runs } = known(state);
    const done = runs.slice(0, repeats).filter((run) => run.length === SIZES.length);
    const summary = (name) => {
      const of = (what) =>
        SIZES.map((_, k) => {
          const values = done.map((run) => run[k][name][what]);
          const mean = values.reduce((sum, v) => sum + v, 0) / values.length;
          const square = values.reduce((sum, v) => sum + (v - mean) ** 2, 0);
          return { mean, error: values.length > 1 ? Math.sqrt(square / (values.length - 1) / values.length) : 0 };
        });
      return { logLoss: of("logLoss"), error: of("error"), runs: done.map((run) => run.map((at) => at[name])) };
    };
    const best = math.evaluate({ scores: (x) => [0, math.truths[truth].logOdds(x)] }, held.X, held.y);
    return {
      sizes: SIZES,
      done: done.length,
      complete: done.length >= repeats,
      right: RIGHT[generative][truth],
      generative: summary(generative),
      logistic: summary("logistic"),
      best: { logLoss: best.logLoss, error: best.errors / HELD_OUT }, // of the true probabilities
    };
  }

  // Controls and charts --------------------------------------------------------------------------------------------

  const row = lectures.controls(box);
  const truth = row.select({
    label: "Rows",
    options: Object.entries(TRUTHS),
    value: state.truth,
    change: (value) => figure.set({ truth: value }),
  });
  const generative = row.select({
    label: "Generative",
    options: Object.entries(GENERATIVE),
    value: state.generative,
    change: (value) => figure.set({ generative: value }),
  });
  const sliders = lectures.controls(box);
  const repeats = sliders.slider({
    label: "repeats",
    min: 5,
    max: 100,
    step: 5,
    value: state.repeats,
    change: (value) => figure.set({ repeats: value }),
  });
  const penalty = sliders.slider({
    label: "l2 of logistic",
    min: 0.001,
    max: 10,
    log: true,
    value: state.l2,
    change: (value) => figure.set({ l2: Number(value.toPrecision(1)) }),
  });
  const note = lectures.note(box);
  const pair = lectures.html("div", { class: "figure-row" });
  box.append(pair);
  const CHARTS = {
    logLoss: { title: "mean held-out log-loss", most: 0.4, chart: lectures.chart(pair, { label: "Held-out log-loss by number of training rows", height: 260, margin: { left: 38 } }) },
    error: { title: "held-out error rate", most: 0.12, chart: lectures.chart(pair, { label: "Held-out error rate by number of training rows", height: 260, margin: { left: 42 } }) },
  };
  const legend = lectures.legend(box, []);
  const table = lectures.table(box, { caption: "Means", head: ["rows", "log-loss", "log-loss", "error", "error"] });
  const SERIES = [["generative", "series-0"], ["logistic", "series-1"]];

  function draw(state, results) {
    const names = { generative: GENERATIVE[state.generative], logistic: "logistic regression" };
    for (const [what, { title, most, chart }] of Object.entries(CHARTS)) {
      const best = results.best[what];
      // The smallest samples may be far off: from 80 rows on all is shown.
      const means = (from) =>
        results.done ? SERIES.flatMap(([series]) => results[series][what].slice(from).map(({ mean }) => mean)) : [best];
      const top = 1.03 * Math.max(best * 1.2, Math.min(best + most, Math.max(...means(0))), ...means(2));
      chart.frame({
        x: [17, 1500],
        y: [best * 0.9, top],
        xLog: true,
        xTicks: chart.holder.clientWidth < 330 ? [20, 80, 320, 1280] : SIZES,
        xLabel: "training rows",
        yLabel: title,
      });
      chart.line([[17, best], [1500, best]], "series-soft figure-dashed");
      if (!results.done) continue;
      for (const [series, look] of SERIES) {
        const at = results[series][what];
        const edge = (sign) => at.map(({ mean, error }, k) => [SIZES[k], mean + sign * 2 * error]);
        chart.polygon([...edge(1), ...edge(-1).reverse()], look);
        chart.line(at.map(({ mean }, k) => [SIZES[k], mean]), look);
        at.forEach(({ mean }, k) => chart.dot(SIZES[k], mean, look, 3.5));
      }
    }
    legend.set([
      ...SERIES.map(([series, look]) => ({ label: names[series], look })),
      { label: "the true probabilities", look: "series-soft figure-dashed" },
    ]);
    table.node.caption.textContent = `Means of ${results.done} repeats: ${names.generative} first, then logistic regression`;
    table.holder.hidden = !results.done;
    if (results.done) {
      table.set(
        SIZES.map((n, k) => [
          String(n),
          ...["logLoss", "error"].flatMap((what) =>
            SERIES.map(([series, look]) => ({ text: fixed(results[series][what][k].mean, 3), look })),
          ),
        ]),
      );
    }
    const verdict = results.right
      ? `The generative model is right: ${names.generative} describes these rows.`
      : `The generative model is wrong: ${REASONS[state.generative][state.truth]}.`;
    note.textContent = results.complete
      ? `${verdict} ${comparison(results, names)}`
      : `${verdict} Repeat ${results.done + 1} of ${state.repeats} …`;
    truth.set(state.truth);
    generative.set(state.generative);
    repeats.set(state.repeats);
    penalty.set(state.l2);
  }

  function comparison(results, names) {
    const first = SIZES.map((_, k) => results.generative.logLoss[k].mean < results.logistic.logLoss[k].mean);
    const few = first[0] ? names.generative : names.logistic;
    if (first.every((ahead) => ahead === first[0])) return `By log-loss ${few} is ahead at every size.`;
    const change = SIZES[first.findIndex((ahead) => ahead !== first[0])];
    const many = first.at(-1) ? names.generative : names.logistic;
    return `By log-loss ${few} is ahead with ${SIZES[0]} rows, ${many} with ${format(SIZES.at(-1), 4)}; the order changes first at ${change}.`;
  }

  const figure = lectures.figure(box, state, { results, draw });
  const refresh = () => plainSet({});
  const plainSet = figure.set;
  let seen = false; // nothing is computed before the figure is on the screen
  figure.set = (partial) => {
    const found = plainSet(partial);
    if (seen) timer ??= setTimeout(work, 0);
    return found;
  };
  new IntersectionObserver((entries) => {
    if (seen || !entries.some((entry) => entry.isIntersecting)) return;
    seen = true;
    timer ??= setTimeout(work, 0);
  }).observe(box);
  return figure;
});
