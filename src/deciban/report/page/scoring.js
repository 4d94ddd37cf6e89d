// Scores rows as the model does, from the numbers that scoring.py has packed. Formulas are those of families/formulas.py.
//
//   const scorer = await Scoring.load(figures.scoring);
//   scorer.score(cells)               cells in the order of scorer.columns: number, text, boolean or null
//   Scoring.read(column, "3.5")       what a person has typed, as a cell; or {problem}
const Scoring = (() => {
  "use strict";

  const MISSING = -1, UNSEEN = -2; // codes of cells that hold nothing, or a value that is not in the list
  const SURE = 1e4; // log-odds beyond which nothing is told apart
  const TINY = 2.2250738585072014e-308;
  const WORDS = { true: true, True: true, TRUE: true, false: false, False: false, FALSE: false };
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

  // A cell that cannot be read, or that the model refuses.
  class Refused extends Error {}

  function refuse(column, cell, problem) {
    const shown = typeof cell === "string" ? JSON.stringify(cell) : cell === null ? "the cell" : String(cell);
    throw new Refused(`column ${column.name}: ${shown} ${problem}`);
  }

  // ---- arrays ------------------------------------------------------------------------------------------------------

  async function bytesOf(arrays) {
    const packed = Uint8Array.from(atob(arrays.data), (character) => character.charCodeAt(0));
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
      const flat = new Type(buffer, value.at, value.bytes / Type.BYTES_PER_ELEMENT);
      if (value.shape.length < 2) return flat;
      const [count, width] = value.shape;
      return Array.from({ length: count }, (_, i) => flat.subarray(i * width, (i + 1) * width));
    }
    return Object.fromEntries(Object.entries(value).map(([name, held]) => [name, unpacked(held, buffer)]));
  }

  // ---- cells -------------------------------------------------------------------------------------------------------

  // A number as people write it; undefined if it is none.
  function numberIn(text) {
    const trimmed = text.trim();
    if (/^[+-]?inf(inity)?$/i.test(trimmed)) return trimmed.startsWith("-") ? -Infinity : Infinity;
    if (/^nan$/i.test(trimmed)) return NaN;
    return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed) ? Number(trimmed) : undefined;
  }

  function ofNumbers(column) {
    return column.levels !== null && column.levels.length > 0 && column.levels.every((level) => typeof level !== "string");
  }

  // A raw cell as the column has them: null, a number, a boolean or text.
  function cellOf(column, raw) {
    if (raw === null || raw === undefined || Number.isNaN(raw)) return null;
    if (!["number", "string", "boolean"].includes(typeof raw)) refuse(column, String(raw), "is no cell");
    const numbers = column.kind === "number" || column.kind === "boolean";
    let cell = raw;
    if (typeof raw === "string" && numbers) {
      if (raw.trim() === "") return null;
      cell = column.kind === "boolean" && raw.trim() in WORDS ? WORDS[raw.trim()] : numberIn(raw);
      if (cell === undefined) refuse(column, raw, column.kind === "number" ? "is not a number" : "is neither true nor false");
      if (column.integers && !Number.isSafeInteger(cell) && /^\s*[+-]?\d+\s*$/.test(raw)) return String(BigInt(raw));
    } else if (typeof raw === "string" && column.kind === "category" && ofNumbers(column)) {
      cell = numberIn(raw) ?? raw;
    } else if (typeof raw !== "string" && !numbers && column.kind !== "empty" && !ofNumbers(column) && column.levels?.length !== 0) {
      refuse(column, raw, "is not text, which this column holds");
    }
    if (Number.isNaN(cell)) return null;
    if (cell === Infinity || cell === -Infinity) refuse(column, raw, "is infinite");
    return cell;
  }

  // What a person has typed, as a raw cell, or {problem}.
  function read(column, text) {
    try {
      return text === "" ? null : cellOf(column, text);
    } catch (error) {
      if (error instanceof Refused) return { problem: error.message };
      throw error;
    }
  }

  // The cell of a column as a number within its domains; NaN if it is missing.
  function numberOf(row, j, domains, lenient) {
    const cell = row.cells[j], column = row.columns[j];
    const x = cell === null ? NaN : Number(cell);
    for (const name of domains ?? []) {
      const [inside, problem] = DOMAINS[name];
      if (inside(x) || (cell === null && name !== "there")) continue;
      if (lenient) return NaN;
      refuse(column, cell, problem);
    }
    return x;
  }

  // How many cuts are at or below x.
  function cutsBelow(cuts, x) {
    let low = 0, high = cuts.length;
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
    } else if (cell !== null && code.cuts.length === 0) {
      place = 0;
    } else if (cell !== null) {
      const x = numberOf(row, code.column, code.domains, code.lenient);
      if (!Number.isNaN(x)) place = cutsBelow(code.cuts, x);
      else return place;
    }
    if (place !== UNSEEN) return cell === null || place < 0 ? place : place + (code.first ?? 0);
    if (code.refused) refuse(row.columns[code.column], cell, "was never seen in training");
    return code.unseen ?? MISSING;
  }

  // ---- formulas: each adds to the parts of a row ---------------------------------------------------------------------

  const range = (n) => Array.from({ length: n }, (_, i) => i);
  const zeros = (n) => new Float64Array(n);
  const sum = (values) => values.reduce((total, x) => total + x, 0);

  function centred(nats) {
    const mean = sum(nats) / nats.length;
    return nats.map((x) => x - mean);
  }

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
        if (square) value += t * t * square[j][k];
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
    const r = 1 / x, s = r * r;
    const series = r * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s / 1680)));
    return (x + 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series;
  }

  // Lower triangles lie row by row.
  const at = (i, j) => (i * (i + 1)) / 2 + j;

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

  const squares = (vector) => vector.reduce((total, x) => total + x * x, 0);

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
      return constant - 0.5 * squares(solved(lower, kept.map((j) => away[j])));
    });
    row.add(formula.parts[0], nats);
  }

  // The columns of some that vary, the triangle L with LLᵀ their part of Σ, and −½ log |2πLLᵀ|.
  function marginal(sigma, there) {
    const kept = there.filter((j) => sigma[at(j, j)] !== 0);
    const unit = kept.map((j) => Math.sqrt(sigma[at(j, j)]));
    const lower = zeros(at(kept.length, 0));
    let constant = -0.5 * kept.length * Math.log(2 * Math.PI);
    for (let i = 0; i < kept.length; i++) {
      for (let j = 0; j <= i; j++) {
        let rest = sigma[at(kept[i], kept[j])] / unit[i] / unit[j]; // columns ascend, so this is in the triangle
        for (let k = 0; k < j; k++) rest -= lower[at(i, k)] * lower[at(j, k)];
        lower[at(i, j)] = i === j ? Math.sqrt(rest) : rest / lower[at(j, j)];
      }
      constant -= Math.log(lower[at(i, i)] * unit[i]);
    }
    for (let i = 0; i < kept.length; i++) for (let j = 0; j <= i; j++) lower[at(i, j)] *= unit[i];
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
        const half = transposedTimes(triangle, triangleTimes(triangle, mean.map((value, i) => value - 0.5 * x[i])));
        const roots = piece ? sum(range(x.length).map((i) => Math.log(triangle[at(i, i)]))) : 0;
        return [...x.map((value, i) => value * half[i]), roots - 0.5 * squares(triangleTimes(triangle, mean))];
      }, Array);
      const byEntry = range(x.length + 1).map((i) => centred(terms.map((of_class) => of_class[i])));
      const whole = row.each((k) => sum(byEntry.map((nats) => nats[k])));
      const scale = whole.map((v, k) => (formula.most / Math.max(Math.abs(v), formula.most)) * formula.weights[piece][k]);
      byEntry.forEach((nats, i) => {
        row.add(i < x.length ? formula.parts[formula.owner[i]] : 0, nats.map((v, k) => v * scale[k]));
      });
    });
  }

  // The counts of all nodes, from those of the leaves: children come after their parents.
  function prepareTrees(formula, classes) {
    const { starts, column, left, counts } = formula;
    const sums = zeros(column.length * classes);
    let leaf = counts.length;
    for (let tree = starts.length - 2; tree >= 0; tree--) {
      for (let node = starts[tree + 1] - 1; node >= starts[tree]; node--) {
        if (column[node] < 0) {
          sums.set(counts[--leaf], node * classes);
          continue;
        }
        const child = (starts[tree] + left[node]) * classes;
        for (let k = 0; k < classes; k++) sums[node * classes + k] = sums[child + k] + sums[child + classes + k];
      }
    }
    return { ...formula, sums };
  }

  function addTrees(formula, row) {
    const { starts, column, left, code, ordered, prior, virtual, weights, sums, parts } = formula;
    const codes = formula.codes.map((one) => codeOf(row, one));
    const trees = starts.length - 1;
    const said = (node) =>
      centred(row.each((k) => Math.log(sums[node * row.classes + k] + virtual * prior[k]) - Math.log(prior[k])));
    for (let tree = 0; tree < trees; tree++) {
      let node = starts[tree], before = said(node);
      while (column[node] >= 0) {
        const asked = column[node], value = codes[asked];
        const goesLeft = ordered[asked] ? value <= code[node] : value === code[node];
        node = starts[tree] + left[node] + (goesLeft ? 0 : 1);
        const after = said(node);
        row.add(parts[asked], after.map((v, k) => ((v - before[k]) / trees) * weights[k]));
        before = after;
      }
    }
  }

  function prepareBag(formula) {
    return { ...formula, places: new Map(formula.terms.map((term, place) => [term, place])) };
  }

  // The terms of a row: how often each is there, and how it is called.
  function termsOf(formula, row) {
    const times = new Map(), names = new Map();
    const plain = [...formula.cut.slice(0, -1), 0];
    let there = false;
    for (const column of formula.columns) {
      if (row.cells[column] === null) continue;
      there = true;
      const text = String(row.cells[column]), terms = Terms.cut(text, formula.cut);
      const called = formula.cut[5] ? Terms.cut(text, plain) : terms; // terms that became numbers: by the first that did
      terms.forEach((term, i) => {
        const place = formula.places.get(term);
        if (place === undefined) return;
        times.set(place, (times.get(place) ?? 0) + 1);
        if (!names.has(place)) names.set(place, called[i]);
      });
    }
    return { there, names, places: [...times.keys()].sort((a, b) => a - b), times };
  }

  function addBag(formula, row) {
    const { there, names, places, times } = termsOf(formula, row);
    const add = (name, nats) => (formula.part === undefined ? row.line((formula.title ?? "") + name, nats) : row.add(formula.part, nats));
    if (formula.absent) {
      const lacks = row.each((k) => there && formula.certain && formula.certain.some((of, place) => of[k] && !times.has(place)));
      add("absent terms", formula.absent.map((v, k) => (!there ? 0 : lacks[k] ? -Infinity : v)));
    }
    for (const place of places) {
      const often = formula.once ? 1 : times.get(place);
      add(names.get(place), formula.table[place].map((v) => often * v));
    }
  }

  function addProducts(formula, row) {
    const away = formula.columns.map((column, j) => numberOf(row, column) - formula.origin[j]);
    let place = 0;
    for (let i = 0; i < away.length; i++) {
      for (let j = i; j < away.length; j++, place++) {
        row.add(formula.parts[i], formula.table[place].map((v) => v * away[i] * away[j]));
      }
    }
  }

  const addAlways = (formula, row) => row.add(formula.part, formula.nats);

  const ADD = {
    lookup: addLookup, curve: addCurve, joint: addJoint, mixed: addMixed, trees: addTrees, bag: addBag,
    products: addProducts, always: addAlways,
  };
  const PREPARE = { trees: prepareTrees, bag: prepareBag };

  // ---- from scores to probabilities ----------------------------------------------------------------------------------

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
    const odds = logP[k] - logSum(Array.from(logP).filter((_, other) => other !== k));
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
    const kept = p.map((x) => Math.max(x, TINY)), total = Math.log(sum(kept));
    return kept.map((x) => Math.log(x) - total);
  }

  const MEANS = {
    gaussian: (eta) => eta,
    poisson: (eta) => Math.exp(eta),
    exponential: (eta) => (eta < 0 ? -1 / eta : Infinity),
  };

  // What is made of the scores: probabilities and the most probable class, or a mean.
  function finished(joint, finish) {
    if (finish.mean) return { proba: [], predicted: 0, mean: MEANS[finish.mean](joint[0]) };
    if (!finish.probable) return { proba: undefined, predicted: largest(joint) };
    let logP = logProba(joint, finish.prior), predicted = largest(joint.every((x) => x === -Infinity) ? finish.prior : joint);
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
      cells, classes, parts, lines,
      columns: model.columns,
      places: model.places,
      each: (of, Kind = Float64Array) => Kind.from({ length: classes }, (_, k) => of(k)),
      add: (part, nats) => into(parts[part], nats),
      line: (name, nats) => into(lines.get(name) ?? lines.set(name, zeros(classes)).get(name), nats),
    };
  }

  function scored(model, raw) {
    if (!Array.isArray(raw) || raw.length !== model.columns.length) {
      throw new Refused(`a row has ${model.columns.length} cells`);
    }
    const row = rowOf(model, model.columns.map((column, j) => cellOf(column, raw[j])));
    for (const formula of model.formulas) ADD[formula.kind](formula, row);
    const nats = [...row.parts, ...row.lines.values()];
    const joint = row.each((k) => sum(nats.map((part) => part[k])));
    const found = finished(joint, model.finish);
    const scale = model.finish.corrections.reduce((product, { beta, curves }) => (curves ? product : product * beta), 1);
    return {
      names: [...model.parts, ...row.lines.keys()],
      nats: nats.map((part) => Array.from(part, (x) => x * scale)),
      joint: Array.from(joint, (x) => x * scale),
      ...found,
    };
  }

  function refused(model, problem) {
    return { names: [], nats: [], joint: [], proba: [], predicted: -1, mean: undefined, problem };
  }

  async function load(scoring) {
    if (scoring.why !== undefined) {
      return { columns: [], classes: [], score: () => refused(scoring, scoring.why) };
    }
    const model = unpacked(scoring, await bytesOf(scoring.arrays));
    model.columns = scoring.columns;
    model.places = scoring.columns.map((column) => {
      const key = (level) => (typeof level === "boolean" ? Number(level) : level);
      return column.levels && new Map(column.levels.map((level, place) => [key(level), place]));
    });
    model.formulas = model.formulas.map((formula) => PREPARE[formula.kind]?.(formula, model.start.length) ?? formula);
    const score = (cells) => {
      try {
        return scored(model, cells);
      } catch (error) {
        if (error instanceof Refused) return refused(model, error.message);
        throw error;
      }
    };
    return { columns: scoring.columns, classes: scoring.classes, score };
  }

  return { load, read };
})();
