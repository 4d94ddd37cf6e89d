// The formulas of export/formulas.py: each adds nats to the parts of a row.
const Formulas = (() => {
  "use strict";

  const { numberOf, codeOf } = Cells;
  const range = (n) => Array.from({ length: n }, (_, i) => i);
  const zeros = (n) => new Float64Array(n);
  const sum = (values) => values.reduce((total, x) => total + x, 0);
  const centred = (nats, mean = sum(nats) / nats.length) => nats.map((x) => x - mean);

  // Where one of two codes is unknown, the table of the other alone is used.
  function addLookup(formula, row) {
    const { codes, table, alone } = formula;
    const own = codes.map((code) => codeOf(row, code));
    const known = range(own.length).filter((i) => own[i] >= 0);
    if (known.length === own.length) {
      const place = own.reduce((before, code, i) => before * codes[i].size + code, 0);
      row.add(formula.part, table[place]);
    } else if (alone && known.length === 1) row.add(formula.part, alone[known[0]][own[known[0]]]);
  }

  // Combinations of known codes, of which only some are listed.
  function addCombinations({ codes, keys, table, parts }, row) {
    const own = codes.map((code) => codeOf(row, code));
    if (own.some((code) => code < 0)) return;
    const key = own.reduce((before, code, i) => before * codes[i].size + code, 0);
    let [low, high] = [0, keys.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (keys[middle] < key) low = middle + 1;
      else high = middle;
    }
    if (keys[low] === key) for (const part of parts) row.add(part, table[low]);
  }

  // Weights depend on which features are unknown in a row, and are never negative; an unknown feature adds 0.
  function addWeighted({ formula, weights, changes, column }, row) {
    if (row.unknown.includes(column)) return;
    const changed = (k) => row.unknown.reduce((total, c) => total + changes[c][k], weights[k]);
    const own = row.each((k) => Math.max(changed(k), 0));
    const weighted = (nats) => row.each((k) => nats[k] * own[k]);
    ADD[formula.kind](formula, {
      ...row,
      add: (part, nats) => row.add(part, weighted(nats)),
      line: (name, nats, times) => row.line(name, weighted(nats), times),
    });
  }

  // The bias shrinks to 0 as more features are unknown.
  function addIntercept({ nats, changes, part }, row) {
    const [several, unknown] = [changes.length, row.unknown];
    const left = unknown.length ? (several - unknown.length) / Math.max(1, several - 1) : 1;
    const bias = row.each((k) => left * unknown.reduce((total, c) => total + changes[c][k], nats[k]));
    row.add(part, bias);
  }

  function addCurve(formula, row) {
    const { middle, constant, slope, square, missing, low, high, most, factorial } = formula;
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
      if (most !== undefined) nats = centred(nats).map((v) => Math.min(Math.max(v, -most), most));
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

  const at = (i, j) => (i * (i + 1)) / 2 + j; // position in a lower triangle, stored row by row

  // A symmetric matrix, given by its lower triangle, times a vector.
  function symmetricTimes(triangle, vector) {
    const product = zeros(vector.length);
    let place = 0;
    for (let i = 0; i < vector.length; i++) {
      for (let j = 0; j < i; j++, place++) {
        product[i] += triangle[place] * vector[j];
        product[j] += triangle[place] * vector[i];
      }
      product[i] += triangle[place++] * vector[i];
    }
    return product;
  }

  // The terms of a joint normal, entry by entry: logs − ½z², z = R^(−½)·(x − μ)/σ (families/whitening.py).
  function normalTerms(whitened, k, x, mean) {
    const one = Math.min(k, whitened.root.length - 1);
    const scale = whitened.scale[one];
    const z = symmetricTimes(
      whitened.root[one],
      x.map((value, i) => (value - mean[i]) * scale[i]),
    );
    return z.map((value, i) => whitened.logs[one][i] - 0.5 * value * value);
  }

  function addJoint(formula, row) {
    const x = Float64Array.from(formula.columns, (column) => numberOf(row, column));
    const present = range(x.length).filter((j) => !Number.isNaN(x[j]));
    if (present.length === 0) return;
    const whitened = present.length === x.length ? formula.whitened : marginal(formula, present);
    const known = Float64Array.from(present, (j) => x[j]);
    const terms = row.each((k) => normalTerms(whitened, k, known, Float64Array.from(present, (j) => formula.mean[k][j])), Array);
    present.forEach((j, i) => {
      const nats = row.each((k) => terms[k][i]);
      row.add(formula.parts[j], nats);
    });
  }

  // The whitening of some columns, from their part of Σ; cached for each set of columns.
  function marginal(formula, present) {
    const key = present.join();
    if (!formula.marginals.has(key)) {
      const all = formula.covariance.map((sigma) => whitening(sigma, present));
      const gather = (name) => all.map((one) => one[name]);
      formula.marginals.set(key, { root: gather("root"), scale: gather("scale"), logs: gather("logs") });
    }
    return formula.marginals.get(key);
  }

  // R^(−½), 1/σ and the constants of some columns; 0 for constant columns.
  function whitening(sigma, present) {
    const scale = Float64Array.from(present, (j) => (sigma[at(j, j)] > 0 ? 1 / Math.sqrt(sigma[at(j, j)]) : 0));
    const kept = range(present.length).filter((i) => scale[i] > 0);
    const correlations = kept.map((i) =>
      Float64Array.from(kept, (j) => {
        const place = at(Math.max(present[i], present[j]), Math.min(present[i], present[j]));
        return sigma[place] * scale[i] * scale[j];
      }),
    );
    const { values, vectors } = eigen(correlations);
    const root = zeros(at(present.length, 0));
    const logs = zeros(present.length);
    kept.forEach((i, a) => {
      const own = sum(values.map((value, e) => vectors[e][a] ** 2 * Math.log(value)));
      logs[i] = Math.log(scale[i]) - 0.5 * (own + Math.log(2 * Math.PI));
      for (let b = 0; b <= a; b++) {
        root[at(i, kept[b])] = sum(values.map((value, e) => (vectors[e][a] * vectors[e][b]) / Math.sqrt(value)));
      }
    });
    return { root, scale, logs };
  }

  // Eigenvalues and eigenvectors (as rows) of a symmetric matrix, by Jacobi rotations.
  function eigen(matrix) {
    const n = matrix.length;
    const vectors = range(n).map((i) => Float64Array.from({ length: n }, (_, j) => Number(i === j)));
    const rotate = (p, q) => {
      const apart = (matrix[q][q] - matrix[p][p]) / (2 * matrix[p][q]);
      const t = (apart < 0 ? -1 : 1) / (Math.abs(apart) + Math.hypot(apart, 1));
      const c = 1 / Math.hypot(t, 1);
      const s = t * c;
      const turn = (a, b, i) => ([a[i], b[i]] = [c * a[i] - s * b[i], s * a[i] + c * b[i]]);
      for (let i = 0; i < n; i++) {
        turn(matrix[p], matrix[q], i);
        turn(vectors[p], vectors[q], i);
      }
      for (const line of matrix) [line[p], line[q]] = [c * line[p] - s * line[q], s * line[p] + c * line[q]];
    };
    for (let sweep = 0; sweep < 60; sweep++) {
      let largest = 0;
      for (let p = 0; p < n; p++) {
        for (let q = p + 1; q < n; q++) {
          largest = Math.max(largest, Math.abs(matrix[p][q]));
          if (Math.abs(matrix[p][q]) > 1e-300) rotate(p, q);
        }
      }
      if (largest < 1e-17) break;
    }
    return { values: matrix.map((line, i) => Math.max(line[i], Number.MIN_VALUE)), vectors };
  }

  // The entries of a row; NaN where they are unknown.
  function vectorOf(formula, row) {
    const x = zeros(formula.owner.length);
    for (const entry of formula.entries) {
      if (entry.code) {
        const place = codeOf(row, entry.code);
        const first = entry.entry + entry.code.size - entry.width;
        if (place < 0) x.fill(NaN, first, first + entry.width);
        else if (entry.entry + place >= first) x[entry.entry + place] = 1;
        continue;
      }
      const cell = numberOf(row, entry.column);
      const z = (Math.min(Math.max(cell, entry.low), entry.high) - entry.middle) / entry.spread;
      x[entry.entry] = Math.min(Math.max(z, -entry.farthest), entry.farthest);
    }
    return x;
  }

  // The terms of the known entries, centred; their sum is clipped to ±most.
  function addMixed(formula, row) {
    const x = vectorOf(formula, row);
    const present = range(x.length).filter((i) => !Number.isNaN(x[i]));
    if (present.length === 0) return;
    const whitened = present.length === x.length ? formula.whitened : marginal(formula, present);
    const known = Float64Array.from(present, (i) => x[i]);
    const terms = row.each((k) => normalTerms(whitened, k, known, Float64Array.from(present, (i) => formula.mean[k][i])), Array);
    const byEntry = range(present.length).map((i) => centred(Float64Array.from(terms, (ofClass) => ofClass[i])));
    const whole = row.each((k) => sum(byEntry.map((nats) => nats[k])));
    const scale = whole.map((v) => formula.most / Math.max(Math.abs(v), formula.most));
    byEntry.forEach((nats, i) => {
      const scaled = nats.map((v, k) => v * scale[k]);
      row.add(formula.parts[formula.owner[present[i]]], scaled);
    });
  }

  // Σ from its whitening, when it is first needed: R is the inverse of the square of R^(−½).
  function withCovariance(mixed) {
    let covariance;
    const whitened = mixed.whitened;
    const made = () => whitened.root.map((root, one) => covarianceOf(root, whitened.scale[one]));
    return { ...mixed, marginals: new Map(), get covariance() { return (covariance ??= made()); } };
  }

  function covarianceOf(root, scale) {
    const n = scale.length;
    const inverse = inverseOf(range(n).map((i) => Float64Array.from({ length: n }, (_, j) => root[at(Math.max(i, j), Math.min(i, j))])));
    const sigma = zeros(at(n, 0));
    for (let i = 0; i < n; i++) {
      for (let j = 0; j <= i; j++) {
        let total = 0;
        for (let m = 0; m < n; m++) total += inverse[i][m] * inverse[j][m];
        sigma[at(i, j)] = total / (scale[i] * scale[j]);
      }
    }
    return sigma;
  }

  // The inverse of a symmetric, positive definite matrix, by Gauss-Jordan elimination.
  function inverseOf(matrix) {
    const n = matrix.length;
    const inverse = range(n).map((i) => Float64Array.from({ length: n }, (_, j) => Number(i === j)));
    for (let p = 0; p < n; p++) {
      const pivot = matrix[p][p];
      for (const side of [matrix, inverse]) side[p] = side[p].map((x) => x / pivot);
      for (let i = 0; i < n; i++) {
        const factor = matrix[i][p];
        if (i === p || factor === 0) continue;
        for (const side of [matrix, inverse]) for (let j = 0; j < n; j++) side[i][j] -= factor * side[p][j];
      }
    }
    return inverse;
  }

  // The counts of every node, from those of the leaves: pairs of children follow their parents, in the same order.
  function prepareTrees(formula, classes) {
    const { asked, counts } = formula;
    const rows = zeros(asked.length * classes);
    const left = new Uint32Array(asked.length);
    let leaf = counts.length;
    let child = asked.length;
    for (let node = asked.length - 1; node >= 0; node--) {
      if (asked[node] === 0) {
        rows.set(counts[--leaf], node * classes);
        continue;
      }
      left[node] = child -= 2;
      for (let k = 0; k < classes; k++) {
        rows[node * classes + k] = rows[child * classes + k] + rows[(child + 1) * classes + k];
      }
    }
    return { ...formula, rows, left };
  }

  // The evidence of a tree is that of the leaf, or of all leaves that a row may be in: the sum of its changes by level.
  // Each change is shared among the columns that rule out rows at that level, in proportion to these rows.
  function addTrees(formula, row) {
    const { trees, asked, left, code, ordered, rows, prior, virtual, parts } = formula;
    const { classes } = row;
    const codes = formula.codes.map((one) => codeOf(row, one));
    const shares = codes.map(() => zeros(classes));
    const countsOf = (nodes) => row.each((k) => nodes.reduce((total, node) => total + rows[node * classes + k], 0));
    const evidenceOf = (nodes) => centred(countsOf(nodes).map((n, k) => Math.log(n + virtual * prior[k]) - Math.log(prior[k])));
    for (let root = 0; root < trees; root++) {
      let nodes = [root];
      let before = evidenceOf(nodes);
      while (nodes.some((node) => asked[node] > 0)) {
        const ruledOut = new Map();
        nodes = nodes.flatMap((node) => {
          const column = asked[node] - 1;
          if (column < 0) return [node];
          if (codes[column] < 0) return [left[node], left[node] + 1];
          const goesLeft = ordered[column] ? codes[column] <= code[node] : codes[column] === code[node];
          const [taken, other] = goesLeft ? [left[node], left[node] + 1] : [left[node] + 1, left[node]];
          ruledOut.set(column, (ruledOut.get(column) ?? 0) + sum(countsOf([other])));
          return [taken];
        });
        const total = sum([...ruledOut.values()]);
        if (total <= 0) continue;
        const after = evidenceOf(nodes);
        for (const [column, count] of ruledOut) {
          for (let k = 0; k < classes; k++) shares[column][k] += ((count / total) * (after[k] - before[k])) / trees;
        }
        before = after;
      }
    }
    shares.forEach((share, column) => row.add(parts[column], share));
  }

  // The means and rows of all nodes, from those of the leaves: in each tree the root is 1, its children 2 and 3.
  function prepareSymmetric(formula) {
    const { asked, value, rows } = formula;
    const depth = asked[0].length;
    const leaves = 1 << depth;
    const outputs = value.length / rows.length;
    const mean = zeros(2 * value.length);
    const total = zeros(2 * rows.length);
    for (let tree = 0; tree < asked.length; tree++) {
      const first = 2 * leaves * tree;
      for (let leaf = 0; leaf < leaves; leaf++) {
        total[first + leaves + leaf] = rows[leaves * tree + leaf];
        for (let k = 0; k < outputs; k++) mean[(first + leaves + leaf) * outputs + k] = value[(leaves * tree + leaf) * outputs + k];
      }
      for (let node = leaves - 1; node > 0; node--) {
        const children = [first + 2 * node, first + 2 * node + 1];
        total[first + node] = sum(children.map((child) => total[child]));
        if (total[first + node] === 0) continue;
        for (let k = 0; k < outputs; k++) {
          mean[(first + node) * outputs + k] = sum(children.map((child) => (total[child] / total[first + node]) * mean[child * outputs + k]));
        }
      }
    }
    return { ...formula, depth, outputs, mean, total };
  }

  // Every level changes the mean of the nodes that a row may be in: both children of a node, if a value is unknown.
  function addSymmetric(formula, row) {
    const { asked, code, ordered, depth, outputs, mean, total, output, factor, parts } = formula;
    const codes = formula.codes.map((one) => codeOf(row, one));
    const shares = codes.map(() => zeros(outputs));
    const meanOf = (nodes) => {
      const rows = sum(nodes.map((node) => total[node]));
      return Float64Array.from({ length: outputs }, (_, k) => sum(nodes.map((node) => (total[node] / rows) * mean[node * outputs + k])));
    };
    asked.forEach((columns, tree) => {
      const first = (2 << depth) * tree;
      let nodes = [1];
      let before = meanOf([first + 1]);
      for (let level = 0; level < depth && columns[level] > 0; level++) {
        const column = columns[level] - 1;
        const own = codes[column];
        const right = Number(ordered[column] ? own > code[tree][level] : own !== code[tree][level]);
        nodes = nodes.flatMap((node) => (own < 0 ? [2 * node, 2 * node + 1] : [2 * node + right]));
        if (own < 0) continue; // both sides: the mean stays
        const after = meanOf(nodes.map((node) => first + node));
        for (let k = 0; k < outputs; k++) shares[column][k] += after[k] - before[k];
        before = after;
      }
    });
    const known = output.filter((place) => place > 0).length;
    shares.forEach((share, column) => {
      const nats = row.each((k) => (output[k] === 0 ? 0 : outputs === 1 ? (output[k] - 1.5) * share[0] : share[output[k] - 1]));
      const middle = sum(Array.from(nats)) / known;
      row.add(parts[column], nats.map((v, k) => (output[k] ? factor * (v - middle) : 0)));
    });
  }

  // The terms of a row: how often each occurs, and its name.
  function termsOf(formula, row) {
    const times = new Map();
    const names = new Map();
    const plain = [...formula.cut.slice(0, -1), 0];
    const texts = Array.from(formula.columns, (column) => row.cells[column]).filter((cell) => cell !== null);
    for (const text of texts.map(String)) {
      const terms = Terms.cut(text, formula.cut);
      // a hashed term has the name of the first term with that hash
      const called = formula.cut[5] ? Terms.cut(text, plain) : terms;
      terms.forEach((term, i) => {
        const place = formula.places.get(term);
        if (place === undefined) return;
        times.set(place, (times.get(place) ?? 0) + 1);
        if (!names.has(place)) names.set(place, called[i]);
      });
    }
    return { hasText: texts.length > 0, names, places: [...times.keys()].sort((a, b) => a - b), times };
  }

  function addBag(formula, row) {
    const { hasText, names, places, times } = termsOf(formula, row);
    const { absent, certain, part, title = "" } = formula;
    const add = (name, nats, often) => (part === undefined ? row.line(title + name, nats, often) : row.add(part, nats));
    for (const place of places) {
      const often = formula.once ? 1 : times.get(place);
      const nats = formula.table[place].map((v) => often * v);
      add(Terms.called(names.get(place), formula.cut), nats, times.get(place));
    }
    if (absent) {
      const lacks = (k) => certain && certain.some((of, place) => of[k] && !times.has(place));
      const nats = absent.map((v, k) => (!hasText ? 0 : lacks(k) ? -Infinity : v));
      add("absent words", nats, 0);
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
    combinations: addCombinations,
    curve: addCurve,
    joint: addJoint,
    mixed: addMixed,
    trees: addTrees,
    symmetric: addSymmetric,
    bag: addBag,
    products: addProducts,
    weighted: addWeighted,
    intercept: addIntercept,
    always: (formula, row) => row.add(formula.part, formula.nats),
  };
  const numbered = (bag) => ({ ...bag, places: new Map(bag.terms.map((term, place) => [term, place])) });
  const withMarginals = (joint) => ({ ...joint, marginals: new Map() });
  const PREPARE = { trees: prepareTrees, symmetric: prepareSymmetric, bag: numbered, joint: withMarginals, mixed: withCovariance };
  const prepared = (formula, classes) =>
    formula.kind === "weighted"
      ? { ...formula, formula: prepared(formula.formula, classes) }
      : (PREPARE[formula.kind]?.(formula, classes) ?? formula);

  return { ADD, prepared, range, zeros, sum };
})();
