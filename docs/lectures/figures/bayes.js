/* Bayes' rule in decibans: prior odds, up to three pieces of evidence, posterior odds. */
"use strict";

lectures.register("bayes", (box, options) => {
  const { tables, controls, fixed, format, odds } = lectures;
  const state = tables.withOptions({ prior: -20, first: 13, second: 10, third: 0 }, options);
  const names = { prior: "prior", first: "evidence 1", second: "evidence 2", third: "evidence 3" };

  const row = controls(box);
  const sliders = {};
  for (const key of Object.keys(state)) {
    const reach = key === "prior" ? 40 : 30;
    sliders[key] = row.slider({
      label: names[key], min: -reach, max: reach, step: 0.5, value: state[key],
      show: (dban) => `${fixed(dban, 1)} dban`,
      change: (dban) => figure.set({ [key]: dban }),
    });
    sliders[key].input.closest(".figure-control").classList.add("figure-wide-value");
  }
  const bars = lectures.evidenceBars(box, { label: "Evidence from the prior to the posterior, in decibans", count: 4 });
  const note = lectures.note(box);
  const [left, right] = lectures.columns(box, 2);
  const steps = lectures.table(left, {
    caption: "Adding decibans multiplies odds", head: ["", "factor", "odds", "probability"],
  });
  const scale = lectures.table(right, { caption: "A scale to remember", head: ["decibans", "odds", "probability"] });

  const figure = lectures.figure(box, state, {
    results: ({ prior, first, second, third }) => ({
      ...tables.addEvidence(prior, [first, second, third]),
      scale: [0, 10, 20].map((dban) => [dban, tables.oddsOf(dban), tables.probabilityOf(dban)]),
    }),
    draw(now, { sums, total, probability, scale: known }) {
      for (const key of Object.keys(sliders)) sliders[key].set(now[key]);
      const keys = Object.keys(sliders);
      bars.draw(keys.map((key) => [names[key], now[key]]), total, { positive: "for", negative: "against" });
      note.textContent =
        `Posterior: ${fixed(total, 1)} decibans, odds ${odds(total)}, probability ${format(probability, 4)}.`;
      steps.set(
        keys.map((key, i) => [names[key], odds(now[key]), odds(sums[i]), format(tables.probabilityOf(sums[i]))]),
      );
      scale.set(known.map(([dban, , p]) => [String(dban), odds(dban), format(p)]));
    },
  });
  return figure;
});
