/* How many free parameters a model has, by the number of classes and of features. */
"use strict";

lectures.register("parameters", (box, options) => {
  const { tables, controls, html } = lectures;
  const FEATURES = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 20, 25, 30, 40, 50, 64, 80, 100, 140, 200, 300, 500, 784, 1000, 1500,
    2000, 3000, 5000, 10000, 16384, 30000, 65536,
  ];
  const MODELS = [
    ["prior", "class prior", "K − 1"],
    ["bernoulli", "naive Bayes, binary", "Kd"],
    ["gaussian", "Gaussian naive Bayes", "2Kd"],
    ["shared", "GDA, shared Σ", "Kd + d(d + 1)/2"],
    ["own", "GDA, own Σ", "Kd + Kd(d + 1)/2"],
    ["table", "full table, binary", "K(2ᵈ − 1)"],
  ];
  const REACH = 1e12; // the axis ends here
  const state = tables.withOptions({ classes: 3, features: 4 }, options);

  const row = controls(box);
  const classes = row.slider({
    label: "classes K", min: 2, max: 20, step: 1, value: state.classes, change: (value) => figure.set({ classes: value }),
  });
  const nearest = (d) => {
    const distance = (one) => Math.abs(Math.log(one / d));
    return FEATURES.reduce((best, one, i) => (distance(one) < distance(FEATURES[best]) ? i : best), 0);
  };
  const features = row.slider({
    label: "features d", min: 0, max: FEATURES.length - 1, step: 1, value: nearest(state.features),
    show: (i) => FEATURES[i].toLocaleString("en"), change: (i) => figure.set({ features: FEATURES[i] }),
  });
  const chart = lectures.chart(box, {
    label: "Number of free parameters of each model, on a logarithmic axis",
    height: MODELS.length * 34 + 56, margin: { left: 12, right: 16, top: 8 },
  });
  const table = lectures.table(box, { head: ["model", "parameters", "with prior"] });
  const note = lectures.note(box);

  /* A count with commas, or as a power of ten. */
  function count(integer) {
    const digits = integer.toString();
    if (digits.length <= 12) return integer.toLocaleString("en");
    const raised = [...`${digits.length - 1}`].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
    return `${digits[0]}.${digits.slice(1, 3)}·10${raised}`;
  }

  const figure = lectures.figure(box, state, {
    results(now) {
      const counts = tables.parameters(now.classes, now.features);
      const found = { counts: {}, totals: {}, log10: {} };
      for (const [key, integer] of Object.entries(counts)) {
        found.counts[key] = integer.toString();
        found.totals[key] = (key === "prior" ? integer : integer + counts.prior).toString();
        found.log10[key] = tables.log10(integer);
      }
      return found;
    },
    draw(now, found) {
      classes.set(now.classes);
      features.set(nearest(now.features));
      const powers = [[1, "1"], [1e3, "10³"], [1e6, "10⁶"], [1e9, "10⁹"], [1e12, "10¹²"]];
      chart.frame({ x: [0.5, REACH], y: [MODELS.length, 0], xLog: true, xTicks: powers, yTicks: [], xLabel: "free parameters" });
      const rows = [];
      MODELS.forEach(([key, name, formula], i) => {
        const size = found.log10[key];
        const off = size > 12;
        const integer = BigInt(found.counts[key]);
        const look = key === "prior" ? "series-soft" : `series-${i - 1}`;
        chart.rect([0.5, off ? REACH : 10 ** size], [i + 0.5, i + 0.92], `${look} figure-strong`);
        chart.text(0.5, i + 0.38, `${name}: ${count(integer)}${off ? " →" : ""}`, look, { dx: 2 });
        rows.push([html("span", null, name, html("small", null, formula)), count(integer), count(BigInt(found.totals[key]))]);
      });
      table.set(rows);
      note.textContent =
        found.log10.table > 12
          ? `The full table does not fit on the axis: it has a number of ${found.counts.table.length.toLocaleString("en")} digits.`
          : "Each model's bar is without the K − 1 parameters of the class prior.";
    },
  });
  return figure;
});
