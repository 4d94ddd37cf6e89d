/* A coin: Beta prior and posterior, and the estimates that follow from them. */
"use strict";

lectures.register("coin", (box, options) => {
  const { tables, controls, fixed, html } = lectures;
  const beta = (letter) => html("span", null, "β", html("sub", null, letter));
  const state = tables.withOptions({ betaHeads: 2, betaTails: 2, heads: 7, tails: 3 }, options);

  const priors = controls(box);
  const counts = controls(box);
  const slider = (row, key, label, min, max, step) =>
    row.slider({ label, min, max, step, value: state[key], change: (value) => figure.set({ [key]: value }) });
  const sliders = {
    betaHeads: slider(priors, "betaHeads", html("span", null, "prior ", beta("H")), 1, 40, 0.5),
    betaTails: slider(priors, "betaTails", html("span", null, "prior ", beta("T")), 1, 40, 0.5),
    heads: slider(counts, "heads", "heads", 0, 50, 1),
    tails: slider(counts, "tails", "tails", 0, 50, 1),
  };
  const presets = controls(box);
  presets.button({ label: "Flat: Beta(1, 1)", press: () => figure.set({ betaHeads: 1, betaTails: 1 }) });
  presets.button({ label: "Laplace: Beta(2, 2)", press: () => figure.set({ betaHeads: 2, betaTails: 2 }) });
  presets.button({
    label: "Ten times the flips",
    press: () => figure.set({ heads: Math.min(50, 10 * figure.state.heads), tails: Math.min(50, 10 * figure.state.tails) }),
  });

  const chart = lectures.chart(box, { label: "Density of the prior and of the posterior", height: 260 });
  lectures.legend(box, [
    { label: "prior", look: "series-soft figure-dashed" },
    { label: "posterior", look: "series-0" },
    { label: "MLE", look: "series-1 figure-dotted" },
    { label: "MAP", look: "series-2" },
    { label: "posterior mean", look: "series-3 figure-dashed" },
  ]);
  const estimates = lectures.table(box, { head: ["estimate of P(heads)", "exact", "≈"] });
  const note = lectures.note(box);

  const figure = lectures.figure(box, state, {
    results(now) {
      const found = tables.coin(now);
      const { heads, tails } = found.posterior;
      const curve = (h, t) => {
        const points = [];
        for (let i = 0; i <= 400; i++) points.push([i / 400, Math.exp(tables.logBeta(i / 400, h, t))]);
        return points;
      };
      return { ...found, priorCurve: curve(now.betaHeads, now.betaTails), curve: curve(heads, tails) };
    },
    draw(now, found) {
      for (const key of Object.keys(sliders)) sliders[key].set(now[key]);
      const top = 1.08 * Math.max(1.5, ...found.curve.map(([, y]) => y), ...found.priorCurve.map(([, y]) => y));
      chart.frame({ x: [0, 1], y: [0, top], xLabel: "probability of heads", yLabel: "density" });
      chart.area(found.curve, "series-0");
      chart.line(found.priorCurve, "series-soft figure-dashed");
      chart.line(found.curve, "series-0");
      const mark = (value, look) => value && chart.line([[value.value, 0], [value.value, top]], look);
      mark(found.mean, "series-3 figure-dashed");
      mark(found.map, "series-2");
      mark(found.mle, "series-1 figure-dotted");
      const line = (name, formula, value, look) => [
        html("span", { class: look }, name, html("small", null, ...formula)), value ? `${value}` : "0/0", value ? fixed(value.value, 4) : "–",
      ];
      estimates.set([
        line("MLE", ["k / n"], found.mle, "series-1"),
        line("MAP (mode)", ["(k + ", beta("H"), " − 1) / (n + ", beta("H"), " + ", beta("T"), " − 2)"], found.map, "series-2"),
        line("posterior mean", ["(k + ", beta("H"), ") / (n + ", beta("H"), " + ", beta("T"), ")"], found.mean, "series-3"),
      ]);
      const laplace = now.betaHeads === 2 && now.betaTails === 2;
      note.textContent =
        `The posterior is Beta(${found.posterior.heads}, ${found.posterior.tails}).` +
        (laplace ? " With Beta(2, 2) the MAP estimate is Laplace's (k + 1) / (n + 2)." : "") +
        (found.map ? "" : " A flat prior without flips has no single mode.");
    },
  });
  return figure;
});
