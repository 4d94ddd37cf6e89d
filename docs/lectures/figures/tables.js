// The formulas of the figures on tables and densities: exact fractions, naive Bayes, densities, rates. No DOM.
"use strict";

(function () {
  const DECIBANS = 10 / Math.LN10; // decibans in a nat

  /** A figure's first state, in which the element's data- attributes replace numbers and text. */
  function withOptions(state, options) {
    for (const key of Object.keys(state)) {
      if (options[key] === undefined) continue;
      state[key] = typeof state[key] === "number" ? Number(options[key]) : options[key];
    }
    return state;
  }

  // Exact fractions -------------------------------------------------------------------------------------------------

  function divisor(a, b) {
    while (b) [a, b] = [b, a % b];
    return a < 0n ? -a : a;
  }

  /** A fraction of integers in lowest terms; the denominator is positive. */
  class Fraction {
    constructor(numerator, denominator = 1n) {
      let [n, d] = [BigInt(numerator), BigInt(denominator)];
      if (d === 0n) throw new RangeError("a fraction with denominator 0");
      if (d < 0n) [n, d] = [-n, -d];
      const common = divisor(n, d);
      this.n = n / common;
      this.d = d / common;
    }
    /** A number that is a multiple of 1/1000. */
    static of(number) {
      return number instanceof Fraction ? number : new Fraction(Math.round(number * 1000), 1000);
    }
    plus(other) {
      return new Fraction(this.n * other.d + other.n * this.d, this.d * other.d);
    }
    minus(other) {
      return new Fraction(this.n * other.d - other.n * this.d, this.d * other.d);
    }
    times(other) {
      return new Fraction(this.n * other.n, this.d * other.d);
    }
    over(other) {
      return new Fraction(this.n * other.d, this.d * other.n);
    }
    get isZero() {
      return this.n === 0n;
    }
    get value() {
      return Number(this.n) / Number(this.d);
    }
    get log() {
      return Math.log(Number(this.n)) - Math.log(Number(this.d));
    }
    toString() {
      return this.d === 1n ? `${this.n}` : `${this.n}/${this.d}`;
    }
    toJSON() {
      return this.toString();
    }
  }
  const ONE = new Fraction(1);

  // Evidence --------------------------------------------------------------------------------------------------------

  /** 10 log₁₀ of p/q for logs of p and q; 0 where both are impossible: no evidence between them. */
  function decibans(logP, logQ) {
    return logP === -Infinity && logQ === -Infinity ? 0 : (logP - logQ) * DECIBANS;
  }
  function oddsOf(dban) {
    return 10 ** (dban / 10);
  }
  function probabilityOf(dban) {
    return 1 / (1 + 10 ** (-dban / 10));
  }

  /** Prior and pieces of evidence in decibans: the running sums, and what the last one means. */
  function addEvidence(prior, pieces) {
    const sums = [prior];
    for (const piece of pieces) sums.push(sums[sums.length - 1] + piece);
    const total = sums[sums.length - 1];
    return { sums, total, odds: oddsOf(total), probability: probabilityOf(total) };
  }

  /** Two classes from their parts, log p of each: {prior, ...}. Impossible under both: the class prior. */
  function compare(parts, positive, negative) {
    const names = Object.keys(parts);
    const joint = { [negative]: 0, [positive]: 0 };
    const evidence = {};
    for (const name of names) {
      for (const label of [negative, positive]) joint[label] += parts[name][label];
      evidence[name] = decibans(parts[name][positive], parts[name][negative]);
    }
    const impossible = [negative, positive].filter((label) => joint[label] === -Infinity);
    const both = impossible.length === 2;
    const logOdds = both ? evidence.prior : decibans(joint[positive], joint[negative]);
    return { joint, decibans: evidence, impossible, logOdds, probability: probabilityOf(logOdds) };
  }

  // The spam mails --------------------------------------------------------------------------------------------------

  const WORDS = ["book", "buy", "do", "drugs", "math", "today"];
  const MAILS = ["Do math today", "Buy", "Buy book", "Today do math drugs", "Buy drugs book today"];
  const MAIL_CLASSES = ["ham", "spam", "ham", "spam", "spam"];
  const NEW_MAIL = "Buy book today";

  /** 1 for each word of the vocabulary that the mail contains. */
  function wordsOf(mail) {
    const words = mail.toLowerCase().split(" ");
    return WORDS.map((word) => (words.includes(word) ? 1 : 0));
  }

  /** φ of each word and class: of Bernoulli (k + α)/(n + 2α), null for a constant word; else of the words of a class. */
  function wordTables(mails, labels, model, alpha) {
    const counts = {};
    const sizes = {};
    for (const label of ["ham", "spam"]) {
      const own = mails.filter((mail, i) => labels[i] === label);
      counts[label] = WORDS.map((word, j) => own.reduce((sum, mail) => sum + mail[j], 0));
      sizes[label] = own.length;
    }
    return model === "bernoulli" ? bernoulli(counts, sizes, alpha) : multinomial(counts, alpha);
  }
  function bernoulli(counts, sizes, alpha) {
    return WORDS.map((word, j) => {
      const all = counts.ham[j] + counts.spam[j];
      if (all === 0 || all === sizes.ham + sizes.spam) return null;
      const share = (label) => smoothed(counts[label][j], sizes[label], 2, alpha);
      return { ham: share("ham"), spam: share("spam") };
    });
  }
  function multinomial(counts, alpha) {
    const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
    const pooled = WORDS.map((word, j) => counts.ham[j] + counts.spam[j]);
    return WORDS.map((word, j) => {
      const share = (label) => {
        let own = counts[label];
        if (alpha.isZero && sum(own) === 0) own = sum(pooled) ? pooled : WORDS.map(() => 1); // a class without words
        return smoothed(own[j], sum(own), WORDS.length, alpha);
      };
      return { ham: share("ham"), spam: share("spam") };
    });
  }
  /** (k + α) / (n + αV) */
  function smoothed(count, total, values, alpha) {
    const added = alpha.times(new Fraction(values));
    return new Fraction(count).plus(alpha).over(new Fraction(total).plus(added));
  }

  /** The mail filter: tables, joint probabilities, posterior, all exact, and decibans for spam. */
  function spam({ mails, labels, words, model, alpha }) {
    const a = Fraction.of(alpha);
    const tables = wordTables(mails, labels, model, a);
    const size = (label) => labels.filter((one) => one === label).length;
    const prior = { ham: new Fraction(size("ham"), labels.length), spam: new Fraction(size("spam"), labels.length) };
    const factors = tables.map((table, j) => factorsOf(table, words[j], model));
    const joint = { ham: prior.ham, spam: prior.spam };
    const parts = { prior: logs(prior) };
    factors.forEach((factor, j) => {
      for (const label of ["ham", "spam"]) joint[label] = joint[label].times(factor[label]);
      parts[WORDS[j]] = logs(factor);
    });
    const evidence = joint.ham.plus(joint.spam);
    const posterior = evidence.isZero ? prior.spam : joint.spam.over(evidence);
    const shares = Object.fromEntries(WORDS.map((word, j) => [word, tables[j]]));
    return { ...compare(parts, "spam", "ham"), jointLog: logs(joint), prior, shares, joint, posterior };
  }
  function factorsOf(table, present, model) {
    if (!table || (model === "multinomial" && !present)) return { ham: ONE, spam: ONE };
    return present ? table : { ham: ONE.minus(table.ham), spam: ONE.minus(table.spam) };
  }
  function logs(pair) {
    return { ham: pair.ham.log, spam: pair.spam.log };
  }

  // Who evades taxes ------------------------------------------------------------------------------------------------

  const PEOPLE = [
    ["Yes", "Single", 125, "No"],
    ["No", "Married", 100, "No"],
    ["No", "Single", 70, "No"],
    ["Yes", "Married", 120, "No"],
    ["No", "Divorced", 95, "Yes"],
    ["No", "Married", 60, "No"],
    ["Yes", "Divorced", 220, "No"],
    ["No", "Single", 85, "Yes"],
    ["No", "Married", 75, "No"],
    ["No", "Single", 90, "Yes"],
  ].map(([refund, status, income, evade]) => ({ refund, status, income, evade }));
  const LEVELS = { refund: ["No", "Yes"], status: ["Divorced", "Married", "Single"] };
  const SLIDE_SD = 4.82; // what the slide says about class Yes

  /** Mean and standard deviation, with n − ddof. */
  function moments(numbers, ddof) {
    const mean = numbers.reduce((a, b) => a + b, 0) / numbers.length;
    const squares = numbers.reduce((sum, x) => sum + (x - mean) ** 2, 0);
    return { mean, sd: Math.sqrt(squares / (numbers.length - ddof)) };
  }

  /** Naive Bayes on the ten people; spread is "0" or "1" (ddof) or "slide". A null value is missing. */
  function evade({ refund, status, income, alpha, spread }) {
    const a = Fraction.of(alpha);
    const model = { prior: {}, refund: {}, status: {}, income: {} };
    const parts = { prior: {}, refund: {}, status: {}, income: {} };
    for (const label of ["No", "Yes"]) {
      const own = PEOPLE.filter((person) => person.evade === label);
      model.prior[label] = new Fraction(own.length, PEOPLE.length);
      parts.prior[label] = model.prior[label].log;
      for (const [column, value] of [["refund", refund], ["status", status]]) {
        const table = {};
        for (const level of LEVELS[column]) {
          const count = own.filter((person) => person[column] === level).length;
          table[level] = smoothed(count, own.length, LEVELS[column].length, a);
        }
        model[column][label] = table;
        parts[column][label] = value === null ? 0 : table[value].log;
      }
      const normal = moments(own.map((person) => person.income), spread === "1" ? 1 : 0);
      if (spread === "slide" && label === "Yes") normal.sd = SLIDE_SD;
      model.income[label] = normal;
      parts.income[label] = income === null ? 0 : FAMILIES.gaussian.log(income, normal);
    }
    return { ...compare(parts, "Yes", "No"), model, parts };
  }

  // Densities -------------------------------------------------------------------------------------------------------

  // log Γ by Lanczos' approximation (g = 7, nine terms): about 15 digits for x > 0.
  const LANCZOS = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
  ];
  function logGamma(x) {
    if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
    const t = x + 6.5;
    const sum = LANCZOS.reduce((total, term, i) => (i ? total + term / (x - 1 + i) : term), 0);
    return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
  }
  function logFactorial(n) {
    let sum = 0;
    for (let i = 2; i <= n; i++) sum += Math.log(i);
    return sum;
  }

  /** log p(x) of each family; −Infinity where x is impossible. */
  const FAMILIES = {
    gaussian: {
      log: (x, { mean, sd }) => -0.5 * Math.log(2 * Math.PI * sd * sd) - (x - mean) ** 2 / (2 * sd * sd),
    },
    exponential: { log: (x, { rate }) => (x > 0 ? Math.log(rate) - rate * x : -Infinity) },
    poisson: {
      log: (x, { rate }) =>
        x >= 0 && Number.isInteger(x) ? x * Math.log(rate) - rate - logFactorial(x) : -Infinity,
    },
    uniform: { log: (x, { low, high }) => (x >= low && x <= high ? -Math.log(high - low) : -Infinity) },
    binned: { log: (x, { cuts, shares }) => Math.log(shares[binOf(x, cuts)]) },
  };

  /** Bin i holds cuts[i − 1] ≤ x < cuts[i]. */
  function binOf(x, cuts) {
    return cuts.filter((cut) => cut <= x).length;
  }
  /** Cuts half way between neighbouring values, at the ones nearest below equal steps. */
  function equalWidthCuts(values, count) {
    const distinct = [...new Set(values)].sort((a, b) => a - b);
    const last = distinct.length - 1;
    const after = new Set();
    for (let i = 1; i < count; i++) {
      const edge = distinct[0] * (1 - i / count) + distinct[last] * (i / count);
      const before = distinct.filter((value) => value < edge).length - 1;
      if (before >= 0 && before < last) after.add(before);
    }
    return [...after].sort((a, b) => a - b).map((i) => 0.5 * distinct[i] + 0.5 * distinct[i + 1]);
  }
  /** (k + α) / (n + αB) of every bin in two classes of values. */
  function binned(classes, count, alpha) {
    const cuts = equalWidthCuts(classes.flat(), count);
    const bins = cuts.length + 1;
    return classes.map((values) => {
      const counts = new Array(bins).fill(0);
      for (const value of values) counts[binOf(value, cuts)] += 1;
      return { cuts, counts, shares: counts.map((k) => (k + alpha) / (values.length + alpha * bins)) };
    });
  }

  /** Both classes at x: log densities, log-odds in decibans and p(1|x); impossible under both: the prior. */
  function classify(family, x, classes, prior) {
    const log = classes.map((parameters) => FAMILIES[family].log(x, parameters));
    const parts = { prior: [Math.log(1 - prior), Math.log(prior)], x: log };
    const { logOdds, probability, impossible } = compare(parts, 1, 0);
    return { log, logOdds, probability, impossible };
  }

  /** The log-odds as a polynomial in x, in decibans, lowest power first; null where it has steps. */
  function polynomial(family, [zero, one], prior) {
    const start = Math.log(prior / (1 - prior));
    let terms = null;
    if (family === "exponential") terms = [Math.log(one.rate / zero.rate), zero.rate - one.rate, 0];
    if (family === "poisson") terms = [zero.rate - one.rate, Math.log(one.rate / zero.rate), 0];
    if (family === "gaussian") {
      const [u, v] = [1 / zero.sd ** 2, 1 / one.sd ** 2];
      const constant = 0.5 * Math.log(v / u) + 0.5 * (zero.mean ** 2 * u - one.mean ** 2 * v);
      terms = [constant, one.mean * v - zero.mean * u, 0.5 * (u - v)];
    }
    return terms && [terms[0] + start, terms[1], terms[2]].map((term) => term * DECIBANS);
  }

  // A coin ----------------------------------------------------------------------------------------------------------

  function logBeta(x, heads, tails) {
    const power = (exponent, base) => (exponent === 0 ? 0 : exponent * Math.log(base));
    const constant = logGamma(heads + tails) - logGamma(heads) - logGamma(tails);
    return constant + power(heads - 1, x) + power(tails - 1, 1 - x);
  }
  /** Estimates as fractions; null where there is none (0/0). */
  function coin({ betaHeads, betaTails, heads, tails }) {
    const [h, t] = [Fraction.of(betaHeads), Fraction.of(betaTails)];
    const [a, b] = [h.plus(new Fraction(heads)), t.plus(new Fraction(tails))];
    const ratio = (top, bottom) => (bottom.isZero ? null : top.over(bottom));
    const two = new Fraction(2);
    return {
      posterior: { heads: a.value, tails: b.value },
      mle: ratio(new Fraction(heads), new Fraction(heads + tails)),
      map: ratio(a.minus(ONE), a.plus(b).minus(two)),
      mean: ratio(a, a.plus(b)),
      priorMode: ratio(h.minus(ONE), h.plus(t).minus(two)),
      priorMean: ratio(h, h.plus(t)),
    };
  }

  // Parameters ------------------------------------------------------------------------------------------------------

  /** Free parameters of each model of K classes and d features, without the K − 1 of the class prior. */
  function parameters(classes, features) {
    const [K, d] = [BigInt(classes), BigInt(features)];
    const triangle = (d * (d + 1n)) / 2n;
    return {
      prior: K - 1n,
      bernoulli: K * d,
      gaussian: 2n * K * d,
      shared: K * d + triangle,
      own: K * d + K * triangle,
      table: K * ((1n << d) - 1n),
    };
  }
  /** log₁₀ of a positive BigInt of any size. */
  function log10(integer) {
    const digits = integer.toString();
    return Math.log10(Number(digits.slice(0, 15))) + Math.max(0, digits.length - 15);
  }

  // Exponential families --------------------------------------------------------------------------------------------

  function sigmoid(x) {
    return 1 / (1 + Math.exp(-x));
  }
  /** p(y; η) = b(y) exp(ηy − a(η)), with a′ the mean and a″ the variance. */
  const NATURAL = {
    bernoulli: {
      a: (eta) => Math.max(eta, 0) + Math.log1p(Math.exp(-Math.abs(eta))),
      mean: sigmoid,
      variance: (eta) => sigmoid(eta) * sigmoid(-eta),
      logBase: (y) => (y === 0 || y === 1 ? 0 : -Infinity),
    },
    gaussian: {
      a: (eta) => (eta * eta) / 2,
      mean: (eta) => eta,
      variance: () => 1,
      logBase: (y) => -0.5 * Math.log(2 * Math.PI) - (y * y) / 2,
    },
    poisson: {
      a: Math.exp,
      mean: Math.exp,
      variance: Math.exp,
      logBase: (y) => (y >= 0 && Number.isInteger(y) ? -logFactorial(y) : -Infinity),
    },
    exponential: {
      a: (eta) => -Math.log(-eta),
      mean: (eta) => -1 / eta,
      variance: (eta) => 1 / (eta * eta),
      logBase: (y) => (y > 0 ? 0 : -Infinity),
    },
  };
  function naturalLog(family, y, eta) {
    return NATURAL[family].logBase(y) + eta * y - NATURAL[family].a(eta);
  }

  // Thresholds ------------------------------------------------------------------------------------------------------

  /** Counts and rates where scores of at least the threshold are predicted positive; 0/0 is NaN. */
  function ratesAt(rows, threshold) {
    const count = (positive, above) =>
      rows.filter((row) => row.positive === positive && row.score >= threshold === above).length;
    const [tp, fp, tn, fn] = [count(true, true), count(false, true), count(false, false), count(true, false)];
    return {
      threshold, tp, fp, tn, fn,
      sensitivity: tp / (tp + fn),
      specificity: tn / (tn + fp),
      precision: tp / (tp + fp),
      f1: (2 * tp) / (2 * tp + fp + fn),
      accuracy: (tp + tn) / rows.length,
    };
  }
  /** The points of the ROC curve from (0, 0); equal scores are one point. The area by trapezoids. */
  function rocOf(rows) {
    const scores = [...new Set(rows.map((row) => row.score))].sort((a, b) => b - a);
    const points = [Infinity, ...scores].map((threshold) => ratesAt(rows, threshold));
    const [positives, negatives] = [points[0].fn, points[0].tn];
    let area = 0;
    for (let i = 1; i < points.length; i++) {
      area += (points[i].fp - points[i - 1].fp) * (points[i].tp + points[i - 1].tp);
    }
    return { points, positives, negatives, auc: area / (2 * positives * negatives) };
  }

  const lectures = (window.lectures = window.lectures || {});
  lectures.tables = {
    withOptions, Fraction, DECIBANS, decibans, oddsOf, probabilityOf, addEvidence, compare,
    WORDS, MAILS, MAIL_CLASSES, NEW_MAIL, wordsOf, spam,
    PEOPLE, LEVELS, SLIDE_SD, evade,
    FAMILIES, binned, classify, polynomial, logBeta, coin, parameters, log10,
    NATURAL, naturalLog, ratesAt, rocOf,
  };
})();
