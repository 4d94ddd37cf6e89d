// Formulas of families/formulas.py: each adds to the parts of a row.
const Formulas = (() => {
  "use strict";

  const { numberOf, codeOf } = Cells;
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

  return { ADD, PREPARE, range, zeros, sum };
})();
