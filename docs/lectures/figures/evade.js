/* Who evades taxes: naive Bayes on text and a number, by column. */
"use strict";

lectures.register("evade", (box, options) => {
  const { tables, controls, html, format, signed } = lectures;
  const { PEOPLE, LEVELS, SLIDE_SD } = tables;
  const errata = options.errata === "true";
  const looks = { No: "series-0", Yes: "series-1" };
  const start = { refund: "No", status: "Divorced", income: 120, alpha: 0, spread: "0", log: "false" };
  const state = tables.withOptions(start, options);
  state.log = state.log === "true";
  let income = state.income; // the last one that was not missing

  // Controls
  const row = controls(box);
  const choice = (column, label) =>
    row.select({
      label, options: [...LEVELS[column], "missing"], value: state[column],
      change: (value) => figure.set({ [column]: value === "missing" ? null : value }),
    });
  const refund = choice("refund", "Refund");
  const status = choice("status", "Status");
  const amount = row.slider({
    label: "Income (K)", min: 40, max: 240, step: 1, value: income,
    change: (value) => figure.set({ income: value }),
  });
  const missing = row.checkbox({
    label: "income is missing", change: (checked) => figure.set({ income: checked ? null : income }),
  });
  const alpha = row.slider({
    label: "Laplace's α", min: 0, max: 10, step: 0.5, value: state.alpha, change: (value) => figure.set({ alpha: value }),
  });
  const spread = row.select({
    label: "variance divides by", value: state.spread,
    options: [["0", "n"], ["1", "n − 1"], ...(errata ? [["slide", `slide: sd ${SLIDE_SD}`]] : [])],
    change: (value) => figure.set({ spread: value }),
  });

  const [left, right] = lectures.columns(box, 2);
  const people = lectures.table(left, {
    caption: "Ten people. A number copies its row.", head: ["", "Refund", "Status", "Income", "Evade"],
  });
  people.node.classList.add("figure-people");
  people.set(
    PEOPLE.map((person, i) => {
      const copy = html("button", { type: "button", "aria-label": `copy row ${i + 1}` }, `${i + 1}`);
      copy.addEventListener("click", () => {
        figure.set({ refund: person.refund, status: person.status, income: person.income });
      });
      return [copy, person.refund, person.status, person.income, { text: person.evade, look: looks[person.evade] }];
    }),
  );
  const factors = lectures.table(right, { caption: "The new row, for Evade = No and Yes", head: ["", "No", "Yes", "dban"] });
  const note = lectures.note(right);
  const slide = errata
    ? lectures.table(right, { caption: "Class Yes on the slide", head: ["", "slide", "correct"] })
    : null;

  const log = controls(box).checkbox({
    label: "log axis", checked: state.log, change: (checked) => figure.set({ log: checked }),
  });
  const chart = lectures.chart(box, { label: "Normal densities of income in both classes", height: 220, margin: { left: 54 } });
  lectures.legend(box, [{ label: "Evade = No", look: "series-0" }, { label: "Evade = Yes", look: "series-1" }]);
  const bars = lectures.evidenceBars(box, { label: "Evidence for Evade = Yes by column, in decibans", count: 4, left: 112 });

  const figure = lectures.figure(box, state, {
    results(now) {
      const found = tables.evade(now);
      const joint = (other) => Math.exp(tables.evade({ ...now, spread: other }).joint.Yes);
      return {
        ...found,
        predicted: found.logOdds > 0 ? "Yes" : "No",
        slide: errata ? { sd: SLIDE_SD, joint: joint("slide") } : null,
        correct: errata ? { sd: tables.evade({ ...now, spread: "0" }).model.income.Yes.sd, joint: joint("0") } : null,
      };
    },
    draw(now, found) {
      if (now.income !== null) income = now.income;
      refund.set(now.refund ?? "missing");
      status.set(now.status ?? "missing");
      amount.set(income);
      amount.input.disabled = now.income === null;
      missing.set(now.income === null);
      alpha.set(now.alpha);
      spread.set(now.spread);
      log.set(now.log);
      const names = {
        refund: now.refund === null ? "Refund missing" : `Refund: ${now.refund}`,
        status: now.status === null ? "Status missing" : `${now.status}`,
        income: now.income === null ? "Income missing" : `Income: ${now.income}`,
      };
      drawFactors(now, found, names);
      drawDensities(now, found);
      const steps = Object.entries(found.decibans).map(([key, dban]) => [names[key] ?? key, dban]);
      bars.draw(steps, found.logOdds, { positive: "Yes", negative: "No" });
    },
  });

  function drawFactors(now, found, names) {
    const { model: exact, parts, decibans, joint, logOdds, probability, impossible, slide: wrong, correct } = found;
    const share = (column, label) => (now[column] === null ? "–" : `${exact[column][label][now[column]]}`);
    const density = (label) => (now.income === null ? "–" : format(Math.exp(parts.income[label])));
    factors.set([
      ["prior", `${exact.prior.No}`, `${exact.prior.Yes}`, signed(decibans.prior)],
      ...["refund", "status"].map((column) => [
        names[column], share(column, "No"), share(column, "Yes"), signed(decibans[column]),
      ]),
      [names.income, density("No"), density("Yes"), signed(decibans.income)],
      ["product", format(Math.exp(joint.No)), format(Math.exp(joint.Yes)), signed(logOdds)],
    ]);
    note.textContent = `P(Evade = Yes | row) = ${format(probability, 4)}. Predicted: ${found.predicted}.`;
    if (impossible.length) {
      note.textContent += impossible.length === 2
        ? " The row is impossible under both classes: the answer is the class prior."
        : ` The row is impossible under ${impossible[0]}: one factor is 0. Raise α.`;
    }
    slide?.set([
      ["sd of income", `${wrong.sd}`, format(correct.sd)],
      ["product for Yes", format(wrong.joint, 2), format(correct.joint)],
    ]);
  }

  function drawDensities(now, { model }) {
    const x = [0, 260];
    const normal = (label) => (at) => Math.exp(tables.FAMILIES.gaussian.log(at, model.income[label]));
    const highest = Math.max(...["No", "Yes"].map((label) => normal(label)(model.income[label].mean)));
    const tens = (power) => [10 ** power, `10${[...`${power}`].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("")}`];
    chart.frame({
      x, y: now.log ? [1e-20, 1] : [0, 1.1 * highest], xLabel: "income (K)", yLabel: "density", yLog: now.log,
      yTicks: now.log ? [-20, -15, -10, -5].map(tens).concat([[1, "1"]]) : undefined,
    });
    for (const label of ["No", "Yes"]) {
      const points = [];
      for (let at = x[0]; at <= x[1]; at += 0.5) {
        const value = normal(label)(at);
        if (!now.log || value > 1e-24) points.push([at, value]);
      }
      chart.line(points, looks[label]);
      if (!now.log) chart.area(points, looks[label]);
    }
    if (now.income === null) return;
    chart.line([[now.income, now.log ? 1e-20 : 0], [now.income, now.log ? 1 : 1.1 * highest]], "series-text figure-dashed");
    for (const label of ["No", "Yes"]) chart.dot(now.income, normal(label)(now.income), looks[label], 5);
  }
  return figure;
});
