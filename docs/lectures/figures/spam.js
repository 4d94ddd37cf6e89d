/* The spam mails: naive Bayes with exact fractions, Bernoulli or multinomial, for mails that can be changed. */
"use strict";

lectures.register("spam", (box, options) => {
  const { tables, controls, html, fraction, signed } = lectures;
  const { WORDS, MAILS, MAIL_CLASSES, NEW_MAIL, wordsOf } = tables;
  const looks = { ham: "series-0", spam: "series-1" };
  const first = () => ({ mails: MAILS.map(wordsOf), labels: [...MAIL_CLASSES], words: wordsOf(NEW_MAIL) });
  const smoothed = options.model === "multinomial" ? 1 : 0; // as in the lectures
  const state = { ...first(), ...tables.withOptions({ model: "bernoulli", alpha: smoothed }, options) };
  let refused = "";

  // Controls
  const row = controls(box);
  const model = row.select({
    label: "model", value: state.model,
    options: [["bernoulli", "Bernoulli"], ["multinomial", "multinomial"]],
    change: (chosen) => change({ model: chosen }),
  });
  const alpha = row.slider({
    label: "Laplace's α", min: 0, max: 10, step: 0.5, value: state.alpha, change: (value) => change({ alpha: value }),
  });
  row.button({ label: "Reset mails", press: () => change(first()) });

  // The mails: a button for each word of each mail
  const [left, right] = lectures.columns(box, 2);
  const grid = lectures.table(left, {
    caption: "Mails: click words and classes.",
    head: ["", ...MAILS.map((mail, i) => `${i + 1}`), "new"],
  });
  grid.node.classList.add("figure-toggles");
  const toggle = (label, press) => {
    const node = html("button", { type: "button", "aria-label": label });
    node.addEventListener("click", press);
    return node;
  };
  const classes = MAILS.map((mail, i) => toggle(`class of mail ${i + 1}`, () => switchClass(i)));
  const cells = WORDS.map((word, j) => [
    ...MAILS.map((mail, i) => toggle(`${word} in mail ${i + 1}`, () => switchWord(i, j))),
    toggle(`${word} in the new mail`, () => change({ words: flipped(figure.state.words, j) })),
  ]);
  grid.set([["class", ...classes, "?"], ...WORDS.map((word, j) => [word, ...cells[j]])]);

  const shares = lectures.table(right, { head: ["", "ham", "spam", "new mail", "dban"] });
  const title = html("caption");
  shares.node.prepend(title);
  const verdict = html("div", { class: "figure-verdict", "aria-live": "polite" });
  box.append(verdict);
  const bars = lectures.evidenceBars(box, { label: "Evidence for spam by word, in decibans", count: 7, left: 74 });

  const flipped = (bits, j) => bits.map((bit, i) => (i === j ? 1 - bit : bit));
  function change(partial) {
    refused = "";
    figure.set(partial);
  }
  function switchWord(i, j) {
    change({ mails: figure.state.mails.map((mail, k) => (k === i ? flipped(mail, j) : mail)) });
  }
  function switchClass(i) {
    const { labels } = figure.state;
    const switched = labels.map((label, k) => (k === i ? (label === "ham" ? "spam" : "ham") : label));
    refused = new Set(switched).size < 2 ? `Mail ${i + 1} is the only ${labels[i]}: each class needs a mail.` : "";
    figure.set(refused ? {} : { labels: switched });
  }

  const figure = lectures.figure(box, state, {
    results: tables.spam,
    draw(now, found) {
      model.set(now.model);
      alpha.set(now.alpha);
      drawGrid(now);
      drawTables(now, found);
      drawVerdict(found);
      const steps = [["prior", found.decibans.prior]];
      WORDS.forEach((word, j) => {
        steps.push([now.words[j] ? word : `no ${word}`, found.decibans[word]]);
      });
      bars.draw(steps, found.logOdds, { positive: "spam", negative: "ham" });
    },
  });

  function drawGrid({ mails, labels, words }) {
    classes.forEach((node, i) => {
      node.textContent = labels[i];
      node.className = looks[labels[i]];
    });
    cells.forEach((buttons, j) =>
      buttons.forEach((node, i) => {
        const on = i < mails.length ? mails[i][j] : words[j];
        node.setAttribute("aria-pressed", on ? "true" : "false");
        node.textContent = on ? "1" : "0";
        node.className = i < mails.length ? looks[labels[i]] : "series-2";
      }),
    );
  }

  function drawTables({ words, model: kind }, found) {
    title.textContent = kind === "bernoulli" ? "φ: share of mails with the word" : "φ: share of all words of the class";
    shares.set([
      ["prior", `${found.prior.ham}`, `${found.prior.spam}`, "", signed(found.decibans.prior)],
      ...WORDS.map((word, j) => {
        const pair = found.shares[word];
        const used = words[j] ? "φ" : kind === "bernoulli" ? "1 − φ" : "–";
        if (!pair) return [word, "–", "–", "constant", signed(0)];
        return [word, `${pair.ham}`, `${pair.spam}`, used, signed(found.decibans[word])];
      }),
    ]);
  }

  function drawVerdict({ joint, posterior, impossible }) {
    const line = (label, value) => html("div", null, `${label} = `, html("strong", null, fraction(value)));
    const lines = [
      line("P(ham, mail)", joint.ham),
      line("P(spam, mail)", joint.spam),
      line("P(spam | mail)", posterior),
    ];
    if (impossible.length === 2) lines.push("The mail is impossible under both classes: the answer is the class prior.");
    if (impossible.length === 1) lines.push(`The mail is impossible under ${impossible[0]}: one factor is 0. Raise α.`);
    if (refused) lines.push(refused);
    verdict.replaceChildren(...lines);
  }
  return figure;
});
