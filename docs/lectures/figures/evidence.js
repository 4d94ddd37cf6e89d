/* Evidence as bars that start where the last one ended: lectures.evidenceBars, for the figures that add decibans. */
"use strict";

(() => {
  const { html } = lectures;
  const ROW = 26; // pixels

  /* A signed number of decibans. */
  const signed = (dban) => (Number.isFinite(dban) ? (dban > 0 ? "+" : "") + lectures.fixed(dban) : dban > 0 ? "+∞" : "−∞");

  /* Odds for against against: "20 : 1" or "1 : 20". */
  const odds = (dban) => {
    if (!Number.isFinite(dban)) return dban > 0 ? "certain" : "impossible";
    const size = lectures.format(10 ** (Math.abs(dban) / 10));
    return dban < 0 ? `1 : ${size}` : `${size} : 1`;
  };

  /* A fraction, and the number that it is. */
  const fraction = (value, digits = 5) =>
    value.d === 1n ? `${value}` : `${value} ≈ ${lectures.format(value.value, digits)}`;

  /* Bars from 0: draw(steps, total, { positive, negative }) with steps [label, decibans] from the prior on. A bar
     without end runs to the edge, and the next one starts as if it were not there. */
  function evidenceBars(parent, { label, count, left = 96 }) {
    const height = (count + 1) * ROW + 70;
    const chart = lectures.chart(parent, { label, height, margin: { left, right: 62, top: 24, bottom: 46 } });

    function draw(steps, total, { positive, negative }) {
      const bars = [];
      let sum = 0;
      for (const [name, dban] of steps) {
        bars.push({ name, dban, from: sum, to: Number.isFinite(dban) ? sum + dban : dban });
        if (Number.isFinite(dban)) sum += dban;
      }
      bars.push({ name: "log-odds", dban: total, from: 0, to: total, last: true });
      const ends = bars.flatMap((bar) => [bar.from, bar.to]).filter(Number.isFinite);
      const [low, high] = [Math.min(-5, ...ends), Math.max(5, ...ends)];
      const pad = 0.06 * (high - low);
      const x = [low - pad, high + pad];
      chart.frame({ x, y: [bars.length, 0], yTicks: [], xLabel: "decibans" });
      chart.line([[0, 0], [0, bars.length]], "series-soft figure-thin");
      bars.forEach((bar, i) => {
        const end = lectures.clamp(bar.to, x);
        const look = bar.dban < 0 ? "series-0" : bar.dban > 0 ? "series-1" : "series-soft";
        chart.rect([bar.from, end], [i + 0.18, i + 0.82], `${look} ${bar.last ? "figure-solid" : "figure-strong"}`);
        if (!bar.last && end === bar.to) chart.line([[end, i + 0.18], [end, i + 1.18]], "series-soft figure-thin figure-dotted");
        const bold = bar.last ? "figure-bold" : "";
        chart.text(x[0], i + 0.5, bar.name, bold, { dx: -6, dy: 4, anchor: "end" });
        chart.text(x[1], i + 0.5, signed(bar.dban), `${look} ${bold}`, { dx: 58, dy: 4, anchor: "end" });
      });
      chart.text(x[0], 0, `← ${negative}`, "series-0", { dy: -8 });
      chart.text(x[1], 0, `${positive} →`, "series-1", { dy: -8, anchor: "end" });
    }
    return { chart, draw };
  }

  /* Boxes beside each other where there is room. */
  const columns = (parent, count) => {
    const boxes = Array.from({ length: count }, () => html("div"));
    parent.append(html("div", { class: "figure-row figure-narrow" }, ...boxes));
    return boxes;
  };

  Object.assign(lectures, { evidenceBars, columns, signed, odds, fraction });
})();
