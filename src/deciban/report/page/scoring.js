// Scores rows as the model does, from the numbers that scoring.py has packed. Formulas are those of
// families/formulas.py.
//
//   const scorer = await Scoring.load(figures.scoring);
//   scorer.score(cells)               cells in the order of scorer.columns: number, text, boolean or null
//   Scoring.read(column, "3.5")       what a person has typed, as a cell; or {problem}
const Scoring = (() => {
  "use strict";

  const MISSING = -1; // the code of a cell that holds nothing
  const UNSEEN = -2; // and of a value that is not in the list
  const SURE = 1e4; // log-odds beyond which nothing is told apart
  const TINY = 2 ** -1022; // the least probability
  const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array };

  // What a number must be, and what is said of one that is not.
  const DOMAINS = {
    binary: [(x) => x === 0 || x === 1, "is neither 0 nor 1"],
    positive: [(x) => x > 0, "is not above 0, as a waiting time must be"],
    count: [(x) => x >= 0 && Number.isInteger(x), "is not a whole number of 0 or more, as a count must be"],
    amount: [(x) => x >= 0, "is not a count: it must be 0 or more"],
    squarable: [(x) => Math.abs(x) <= 2 ** 500, "is too large to be squared"],
    there: [(x) => !Number.isNaN(x), "is missing: this model needs whole rows"],
  };

  class Refused extends Error {} // a cell that cannot be read, or that the model refuses

  function refuse(column, cell, problem) {
    const shown = typeof cell === "string" ? JSON.stringify(cell) : cell === null ? "the cell" : String(cell);
    throw new Refused(`column ${column.name}: ${shown} ${problem}`);
  }

  // ---- arrays -----------------------------------------------------------------------------------------------------

  async function bytesOf(arrays) {
    const text = atob(arrays.data);
    const packed = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
    if (!arrays.deflated) return packed.buffer;
    const whole = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(whole).arrayBuffer();
  }

  // Every packed array in an object or a list becomes an array; a table is a list of rows, which may share memory.
  function unpacked(value, buffer) {
    if (Array.isArray(value)) return value.map((held) => unpacked(held, buffer));
    if (value === null || typeof value !== "object") return value;
    if (value.type === "text") {
      const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array(buffer, value.at, value.bytes));
      return value.count ? text.split("\n") : [];
    }
    if (value.type === "rows") {
      const rows = unpacked(value.rows, buffer);
      return Array.from(unpacked(value.which, buffer), (which) => rows[which]);
    }
    if (value.type in TYPES) {
      const Type = TYPES[value.type];
      const [count, width] = value.shape;
      const flat = new Type(buffer, value.at, value.bytes / Type.BYTES_PER_ELEMENT);
      return width === undefined ? flat : range(count).map((i) => flat.subarray(i * width, (i + 1) * width));
    }
    return Object.fromEntries(Object.entries(value).map(([name, held]) => [name, unpacked(held, buffer)]));
  }

  // ---- cells ------------------------------------------------------------------------------------------------------

  // A number as people write it; undefined if it is none. Whole numbers too long for one are listed by their digits.
  function numberIn(column, text) {
    if (/^[+-]?inf(inity)?$/i.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
    if (/^nan$/i.test(text)) return NaN;
    if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return undefined;
    const x = Number(text);
    const listed = column.integers && /^[+-]?\d+$/.test(text);
    return listed && !Number.isSafeInteger(x) ? String(BigInt(text)) : x;
  }

  function ofNumbers(column) {
    return column.integers || (column.levels?.length > 0 && column.levels.every((level) => typeof level !== "string"));
  }

  // Text as the cell of a column of numbers or booleans.
  function parsed(column, text) {
    const trimmed = text.trim();
    if (trimmed === "") return null;
    if (column.kind === "boolean" && /^(true|false)$/i.test(trimmed)) return trimmed.toLowerCase() === "true";
    const cell = numberIn(column, trimmed);
    if (cell === undefined)
      refuse(column, text, column.kind === "number" ? "is not a number" : "is neither true nor false");
    return cell;
  }

  // A raw cell as the column has them: null, a number, a boolean or text.
  function cellOf(column, raw) {
    if (raw === null || raw === undefined) return null;
    if (!["number", "string", "boolean"].includes(typeof raw)) refuse(column, String(typeof raw), "is no cell");
    const numbers = column.kind === "number" || column.kind === "boolean";
    const text = typeof raw === "string";
    let cell = raw;
    if (text && numbers) cell = parsed(column, raw);
    else if (text && column.kind === "category" && ofNumbers(column)) cell = numberIn(column, raw.trim()) ?? raw;
    else if (!text && (column.kind === "text" || (column.kind === "category" && !ofNumbers(column)))) {
      refuse(column, raw, "is not text, which this column holds");
    }
    if (cell === Infinity || cell === -Infinity) refuse(column, raw, "is infinite");
    return Number.isNaN(cell) ? null : cell;
  }

  // What a person has typed, as a raw cell, or {problem}; nothing typed is a missing cell.
  const read = (column, text) =>
    guarded(
      () => (text === "" ? null : cellOf(column, text)),
      (problem) => ({ problem }),
    );

  // The cell of a column as a number within its domains; NaN if it is missing.
  function numberOf(row, j, domains, lenient) {
    const cell = row.cells[j];
    const x = cell === null ? NaN : Number(cell);
    if (cell !== null && Number.isNaN(x)) refuse(row.columns[j], cell, "is not a number");
    for (const name of domains ?? []) {
      const [inside, problem] = DOMAINS[name];
      if (inside(x) || (cell === null && name !== "there")) continue;
      if (lenient) return NaN;
      refuse(row.columns[j], cell, problem);
    }
    return x;
  }

  // How many cuts are at or below x.
  function cutsBelow(cuts, x) {
    let low = 0;
    let high = cuts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (x >= cuts[middle]) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function codeOf(row, code) {
    const cell = row.cells[code.column];
    let place = code.missing ?? MISSING;
    if (cell !== null && code.places) {
      const known = row.places[code.column].get(typeof cell === "boolean" ? Number(cell) : cell);
      place = known === undefined ? UNSEEN : code.places[known];
    } else if (cell !== null) {
      const x = code.cuts.length ? numberOf(row, code.column, code.domains, code.lenient) : 0;
      if (!Number.isNaN(x)) place = (code.first ?? 0) + cutsBelow(code.cuts, x);
    }
    if (place !== UNSEEN) return place;
    if (code.refused) refuse(row.columns[code.column], cell, "was never seen in training");
    return code.unseen ?? MISSING;
  }

  // ---- formulas: each adds to the parts of a row ------------------------------------------------------------------

  const range = (n) => Array.from({ length: n }, (_, i) => i);
  const zeros = (n) => new Float64Array(n);
  const sum = (values) => values.reduce((total, x) => total + x, 0);
  const squares = (values) => values.reduce((total, x) => total + x * x, 0);
  const centred = (nats, mean = sum(nats) / nats.length) => nats.map((x) => x - mean);

  function addLookup(formula, row) {
    let place = 0;
    for (const code of formula.codes) {
      const own = codeOf(row, code);
      if (own < 0) return;
      place = place * code.size + own;
    }
    row.add(formula.part, formula.table[place]);
  }

  function addCurve(formula, row) {
    const { middle, constant, slope, square, missing, low, high, most, weights, factorial } = formula;
    formula.columns.forEach((column, j) => {
      let x = numberOf(row, column, formula.domains, formula.lenient);
      if (Number.isNaN(x)) {
        if (missing) row.add(formula.parts[j], missing[j]);
        return;
      }
      if (low) x = Math.min(Math.max(x, low[j]), high[j]);
      const common = factorial && factorial[j] ? -logFactorial(x) : 0;
      let nats = row.each((k) => {
        const t = middle ? x - middle[j][k] : x;
        let value = constant ? constant[j][k] : 0;
        if (slope && t !== 0) value += slope[j][k] * t; // 0 · −∞ is 0 here
        if (square && square[j][k] !== 0) value += t * t * square[j][k];
        return value + common;
      });
      if (most !== undefined) nats = centred(nats).map((v, k) => Math.min(Math.max(v, -most), most) * weights[j][k]);
      row.add(formula.parts[j], nats);
    });
  }

  // log x!, by Stirling's series, whose next term is below 1e-14.
  function logFactorial(x) {
    if (x < 16) {
      let product = 1;
      for (let i = 2; i <= x; i++) product *= i;
      return Math.log(product);
    }
    const r = 1 / x;
    const s = r * r;
    const series = r * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s / 1680)));
    return (x + 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series;
  }

  const at = (i, j) => (i * (i + 1)) / 2 + j; // lower triangles lie row by row

  function triangleTimes(triangle, vector) {
    return vector.map((_, i) => {
      let total = 0;
      for (let j = 0; j <= i; j++) total += triangle[at(i, j)] * vector[j];
      return total;
    });
  }

  function transposedTimes(triangle, vector) {
    const found = zeros(vector.length);
    vector.forEach((v, i) => {
      for (let j = 0; j <= i; j++) found[j] += triangle[at(i, j)] * v;
    });
    return found;
  }

  function addJoint(formula, row) {
    const x = Float64Array.from(formula.columns, (column) => numberOf(row, column));
    const there = range(x.length).filter((j) => !Number.isNaN(x[j]));
    if (there.length === 0) return;
    const whole = there.length === x.length;
    const marginals = whole ? [] : formula.covariance.map((sigma) => marginal(sigma, there));
    const nats = row.each((k) => {
      const one = Math.min(k, formula.whiten.length - 1);
      const away = x.map((value, j) => value - formula.mean[k][j]);
      if (whole) return formula.constant[one] - 0.5 * squares(triangleTimes(formula.whiten[one], away));
      const { kept, lower, constant } = marginals[one];
      const known = kept.map((j) => away[j]);
      return constant - 0.5 * squares(solved(lower, known));
    });
    row.add(formula.parts[0], nats);
  }

  // The columns of some that vary, the triangle L with LLᵀ their part of Σ, and −½ log |2πLLᵀ|.
  function marginal(sigma, there) {
    const kept = there.filter((j) => sigma[at(j, j)] !== 0);
    const lower = zeros(at(kept.length, 0));
    let constant = -0.5 * kept.length * Math.log(2 * Math.PI);
    for (let i = 0; i < kept.length; i++) {
      for (let j = 0; j <= i; j++) {
        let rest = sigma[at(kept[i], kept[j])]; // columns ascend, so this is in the triangle
        for (let k = 0; k < j; k++) rest -= lower[at(i, k)] * lower[at(j, k)];
        lower[at(i, j)] = i === j ? Math.sqrt(rest) : rest / lower[at(j, j)];
      }
      constant -= Math.log(lower[at(i, i)]);
    }
    return { kept, lower, constant };
  }

  // z with Lz = right.
  function solved(lower, right) {
    const z = zeros(right.length);
    for (let i = 0; i < right.length; i++) {
      let rest = right[i];
      for (let j = 0; j < i; j++) rest -= lower[at(i, j)] * z[j];
      z[i] = rest / lower[at(i, i)];
    }
    return z;
  }

  function vectorOf(formula, row) {
    const x = zeros(formula.middle.length);
    for (const entry of formula.entries) {
      if (entry.code) {
        const place = codeOf(row, entry.code);
        if (place >= 0) x[entry.entry + place] = 1;
        continue;
      }
      const cell = numberOf(row, entry.column);
      const z = (Math.min(Math.max(cell, entry.low), entry.high) - entry.middle) / entry.spread;
      if (!Number.isNaN(z)) x[entry.entry] = Math.min(Math.max(z, -entry.farthest), entry.farthest);
    }
    return x;
  }

  // v·A(μ − ½v) by entries, and what belongs to none, v and μ being off the middle; A = TᵀT.
  function addMixed(formula, row) {
    const x = vectorOf(formula, row).map((value, i) => value - formula.middle[i]);
    [formula.shared, formula.own].forEach((triangles, piece) => {
      const terms = row.each((k) => {
        const triangle = triangles[Math.min(k, triangles.length - 1)];
        const mean = formula.mean[k].map((value, i) => value - formula.middle[i]);
        const away = mean.map((value, i) => value - 0.5 * x[i]);
        const half = transposedTimes(triangle, triangleTimes(triangle, away));
        const roots = piece ? sum(range(x.length).map((i) => Math.log(triangle[at(i, i)]))) : 0;
        return [...x.map((value, i) => value * half[i]), roots - 0.5 * squares(triangleTimes(triangle, mean))];
      }, Array);
      const byEntry = range(x.length + 1).map((i) => centred(terms.map((of_class) => of_class[i])));
      const whole = row.each((k) => sum(byEntry.map((nats) => nats[k])));
      const scale = whole.map(
        (v, k) => (formula.most / Math.max(Math.abs(v), formula.most)) * formula.weights[piece][k],
      );
      byEntry.forEach((nats, i) => {
        const scaled = nats.map((v, k) => v * scale[k]);
        row.add(i < x.length ? formula.parts[formula.owner[i]] : 0, scaled);
      });
    });
  }

  // What every node says, from the counts of the leaves: pairs of children come after their parents, in the same order.
  function prepareTrees(formula, classes) {
    const { trees, asked, counts, prior, virtual, weights } = formula;
    const said = zeros(asked.length * classes);
    const left = new Uint32Array(asked.length);
    let leaf = counts.length;
    let child = asked.length;
    for (let node = asked.length - 1; node >= 0; node--) {
      if (asked[node] === 0) {
        said.set(counts[--leaf], node * classes);
        continue;
      }
      left[node] = child -= 2;
      for (let k = 0; k < classes; k++) {
        said[node * classes + k] = said[child * classes + k] + said[(child + 1) * classes + k];
      }
    }
    for (let first = 0; first < said.length; first += classes) {
      let mean = 0;
      for (let k = 0; k < classes; k++) {
        said[first + k] = Math.log(said[first + k] + virtual * prior[k]) - Math.log(prior[k]);
        mean += said[first + k] / classes;
      }
      for (let k = 0; k < classes; k++) said[first + k] = ((said[first + k] - mean) / trees) * weights[k];
    }
    return { ...formula, said, left };
  }

  // A tree says what its leaf says: the sum of what each step down to it changes.
  function addTrees(formula, row) {
    const { trees, asked, left, code, ordered, said, parts } = formula;
    const codes = formula.codes.map((one) => codeOf(row, one));
    const shares = codes.map(() => zeros(row.classes));
    for (let root = 0; root < trees; root++) {
      let node = root;
      while (asked[node] > 0) {
        const column = asked[node] - 1;
        const before = node * row.classes;
        const goesLeft = ordered[column] ? codes[column] <= code[node] : codes[column] === code[node];
        node = left[node] + (goesLeft ? 0 : 1);
        for (let k = 0; k < row.classes; k++) shares[column][k] += said[node * row.classes + k] - said[before + k];
      }
    }
    shares.forEach((share, column) => row.add(parts[column], share));
  }

  // The terms of a row: how often each is there, and how it is called.
  function termsOf(formula, row) {
    const times = new Map();
    const names = new Map();
    const plain = [...formula.cut.slice(0, -1), 0];
    const texts = Array.from(formula.columns, (column) => row.cells[column]).filter((cell) => cell !== null);
    for (const text of texts.map(String)) {
      const terms = Terms.cut(text, formula.cut);
      // terms that became numbers are called by the first that did
      const called = formula.cut[5] ? Terms.cut(text, plain) : terms;
      terms.forEach((term, i) => {
        const place = formula.places.get(term);
        if (place === undefined) return;
        times.set(place, (times.get(place) ?? 0) + 1);
        if (!names.has(place)) names.set(place, called[i]);
      });
    }
    return { there: texts.length > 0, names, places: [...times.keys()].sort((a, b) => a - b), times };
  }

  function addBag(formula, row) {
    const { there, names, places, times } = termsOf(formula, row);
    const { absent, certain, part, title = "" } = formula;
    const add = (name, nats) => (part === undefined ? row.line(title + name, nats) : row.add(part, nats));
    if (absent) {
      const lacks = (k) => certain && certain.some((of, place) => of[k] && !times.has(place));
      const nats = absent.map((v, k) => (!there ? 0 : lacks(k) ? -Infinity : v));
      add("absent terms", nats);
    }
    for (const place of places) {
      const often = formula.once ? 1 : times.get(place);
      const nats = formula.table[place].map((v) => often * v);
      add(names.get(place), nats);
    }
  }

  function addProducts(formula, row) {
    const away = formula.columns.map((column, j) => numberOf(row, column) - formula.origin[j]);
    let place = 0;
    for (let i = 0; i < away.length; i++) {
      for (let j = i; j < away.length; j++, place++) {
        const nats = formula.table[place].map((v) => v * away[i] * away[j]);
        row.add(formula.parts[i], nats);
      }
    }
  }

  const ADD = {
    lookup: addLookup,
    curve: addCurve,
    joint: addJoint,
    mixed: addMixed,
    trees: addTrees,
    bag: addBag,
    products: addProducts,
    always: (formula, row) => row.add(formula.part, formula.nats),
  };
  const numbered = (bag) => ({ ...bag, places: new Map(bag.terms.map((term, place) => [term, place])) });
  const PREPARE = { trees: prepareTrees, bag: numbered };

  // ---- from scores to probabilities -------------------------------------------------------------------------------

  const largest = (values) => values.reduce((best, x, k) => (x > values[best] ? k : best), 0); // the first among equals

  function logSum(values) {
    const most = Math.max(...values);
    return most === -Infinity ? most : most + Math.log(sum(values.map((x) => Math.exp(x - most))));
  }

  // log p(c|x); a row that is impossible under every class has the prior.
  function logProba(joint, prior) {
    const total = logSum(joint);
    return total === -Infinity ? prior.slice() : joint.map((x) => x - total);
  }

  const sigmoid = (z) => (z < 0 ? Math.exp(z) / (1 + Math.exp(z)) : 1 / (1 + Math.exp(-z)));

  function logOdds(logP, k) {
    const odds = logP[k] - logSum(logP.filter((_, other) => other !== k));
    return Number.isNaN(odds) ? 0 : Math.min(Math.max(odds, -SURE), SURE);
  }

  // Straight between points, level beyond them.
  function interpolated(x, at, become) {
    const i = cutsBelow(at, x);
    if (i === 0) return become[0];
    if (i === at.length || at[i - 1] === x) return become[i - 1];
    return become[i - 1] + ((become[i] - become[i - 1]) / (at[i] - at[i - 1])) * (x - at[i - 1]);
  }

  function corrected(logP, correction) {
    const { beta, curves, two } = correction;
    if (!curves) {
      const scaled = logP.map((x) => beta * x);
      return logProba(scaled, scaled);
    }
    const z = logP.map((_, k) => logOdds(logP, k));
    const p = z.map((odds) => sigmoid(beta * odds));
    for (const { place, odds, become, trust } of curves) {
      const curve = odds.length ? interpolated(z[place], odds, become) : z[place];
      p[place] = sigmoid(trust * curve + (1 - trust) * beta * z[place]);
    }
    if (two) p[0] = 1 - p[1];
    const kept = p.map((x) => Math.max(x, TINY));
    const total = Math.log(sum(kept));
    return kept.map((x) => Math.log(x) - total);
  }

  const MEANS = { gaussian: (eta) => eta, poisson: Math.exp, exponential: (eta) => (eta < 0 ? -1 / eta : Infinity) };

  // What is made of the scores: probabilities and the most probable class, or a mean.
  function finished(joint, finish) {
    if (finish.mean) return { proba: [], predicted: 0, mean: MEANS[finish.mean](joint[0]) };
    if (!finish.probable) return { proba: undefined, predicted: largest(joint) };
    let logP = logProba(joint, finish.prior);
    let predicted = largest(joint.some((x) => x > -Infinity) ? joint : finish.prior);
    for (const correction of finish.corrections) {
      logP = corrected(logP, correction);
      if (correction.curves) predicted = largest(logP);
    }
    return { proba: Array.from(logP, Math.exp), predicted };
  }

  // A row while it is scored: its cells, and what every part has so far.
  function rowOf(model, cells) {
    const classes = model.start.length;
    const parts = model.parts.map((_, i) => (i === 0 ? Float64Array.from(model.start) : zeros(classes)));
    const lines = new Map();
    const into = (nats, more) => more.forEach((x, k) => (nats[k] += x));
    return {
      cells,
      classes,
      parts,
      lines,
      columns: model.columns,
      places: model.places,
      each: (of, Kind = Float64Array) => Kind.from({ length: classes }, (_, k) => of(k)),
      add: (part, nats) => into(parts[part], nats),
      line: (name, nats) => into(lines.get(name) ?? lines.set(name, zeros(classes)).get(name), nats),
    };
  }

  function scored(model, raw) {
    const size = model.columns.length;
    if (!Array.isArray(raw) || raw.length !== size) throw new Refused(`a row of this model has ${size} cells`);
    const cells = model.columns.map((column, j) => cellOf(column, raw[j]));
    const row = rowOf(model, cells);
    for (const formula of model.formulas) ADD[formula.kind](formula, row);
    const nats = [...row.parts, ...row.lines.values()];
    const joint = row.each((k) => sum(nats.map((part) => part[k])));
    const scale = model.finish.corrections.reduce(
      (product, { beta, curves }) => (curves ? product : product * beta),
      1,
    );
    return {
      names: [...model.parts, ...row.lines.keys()],
      nats: nats.map((part) => Array.from(part, (x) => x * scale)),
      joint: Array.from(joint, (x) => x * scale),
      ...finished(joint, model.finish),
    };
  }

  // What a function makes of a row, or what is wrong with the row.
  function guarded(work, otherwise) {
    try {
      return work();
    } catch (error) {
      if (error instanceof Refused) return otherwise(error.message);
      throw error;
    }
  }

  const refused = (problem) => ({ names: [], nats: [], joint: [], proba: [], predicted: -1, mean: undefined, problem });

  async function load(scoring) {
    const { columns, classes, why } = scoring;
    if (why !== undefined) return { columns: [], classes: [], score: () => refused(why) };
    const model = { ...unpacked({ ...scoring, columns: [] }, await bytesOf(scoring.arrays)), columns };
    const key = (level) => (typeof level === "boolean" ? Number(level) : level);
    model.places = columns.map(({ levels }) => levels && new Map(levels.map((level, place) => [key(level), place])));
    model.formulas = model.formulas.map((formula) => PREPARE[formula.kind]?.(formula, model.start.length) ?? formula);
    return { columns, classes, score: (cells) => guarded(() => scored(model, cells), refused) };
  }

  return { load, read };
})();
