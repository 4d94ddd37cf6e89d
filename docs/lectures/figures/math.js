/* The formulas of the figures: plain functions of numbers and arrays, without the document. They compute what
   deciban computes; the tests compare the two.

   Rows X are lists of lists, classes y are 0, 1, …, K − 1. A fitted model has status ("ok" or what is wrong) and
   scores(x): one number for each class, whose differences are log-odds; probabilities(model, x) normalises them. */
"use strict";

lectures.math = (() => {
  // Logarithms and vectors -----------------------------------------------------------------------------------------

  /* log Σ exp(v), without overflow. */
  function logSumExp(values) {
    const top = Math.max(...values);
    if (top === -Infinity) return -Infinity;
    return top + Math.log(values.reduce((sum, v) => sum + Math.exp(v - top), 0));
  }

  const sigmoid = (x) => (x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x)));
  /* log(1 + exp(x)) */
  const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
  const dot = (a, b) => a.reduce((sum, v, k) => sum + v * b[k], 0);
  const norm = (a) => Math.sqrt(dot(a, a));
  const zeros = (n) => new Array(n).fill(0);
  const matrix = (n, m = n) => Array.from({ length: n }, () => zeros(m));

  /* L with L·Lᵀ = A, or null if A is not positive definite beyond rounding. */
  function cholesky(a) {
    const n = a.length;
    const l = matrix(n);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j <= i; j++) {
        let sum = a[i][j];
        for (let k = 0; k < j; k++) sum -= l[i][k] * l[j][k];
        if (i !== j) l[i][j] = sum / l[j][j];
        else if (sum > 1e-13 * a[i][i]) l[i][i] = Math.sqrt(sum);
        else return null;
      }
    }
    return l;
  }

  /* x with L·Lᵀ·x = b. */
  function solveCholesky(l, b) {
    const n = l.length;
    const x = [...b];
    for (let i = 0; i < n; i++) {
      for (let k = 0; k < i; k++) x[i] -= l[i][k] * x[k];
      x[i] /= l[i][i];
    }
    for (let i = n - 1; i >= 0; i--) {
      for (let k = i + 1; k < n; k++) x[i] -= l[k][i] * x[k];
      x[i] /= l[i][i];
    }
    return x;
  }

  // Gaussian classes -----------------------------------------------------------------------------------------------

  /* p(c|x) ∝ p(c) N(x; μ_c, Σ_c) by maximum likelihood: prior n_c/n, scatter divided by n ("shared") or by n_c
     ("per-class"; "diagonal" has no covariances: Gaussian naive Bayes). covariances[c] is Σ_c. */
  function gaussian(X, y, K, covariance) {
    const d = X[0]?.length ?? 0;
    const counts = zeros(K);
    const means = matrix(K, d);
    X.forEach((x, i) => {
      counts[y[i]]++;
      for (let j = 0; j < d; j++) means[y[i]][j] += x[j];
    });
    if (counts.some((n) => n === 0)) return { status: "every class needs points" };
    means.forEach((mean, c) => mean.forEach((sum, j) => (mean[j] = sum / counts[c])));
    const scatters = counts.map(() => matrix(d));
    X.forEach((x, i) => {
      const c = y[i];
      for (let j = 0; j < d; j++) {
        for (let k = 0; k <= j; k++) {
          if (covariance === "diagonal" && k < j) continue;
          scatters[c][j][k] += (x[j] - means[c][j]) * (x[k] - means[c][k]);
        }
      }
    });
    const total = matrix(d);
    for (let j = 0; j < d; j++) {
      for (let k = 0; k <= j; k++) {
        for (const scatter of scatters) total[j][k] += scatter[j][k];
      }
    }
    const scaled = (scatter, n) => scatter.map((row, j) => row.map((_, k) => scatter[Math.max(j, k)][Math.min(j, k)] / n));
    const covariances = scatters.map((scatter, c) =>
      covariance === "shared" ? scaled(total, X.length) : scaled(scatter, counts[c]),
    );
    const factors = covariances.map(cholesky);
    if (factors.includes(null)) {
      return { status: covariance === "diagonal" ? "a variance is 0" : "a covariance is singular" };
    }
    const prior = counts.map((n) => n / X.length);
    // score_c(x) = constant_c − ½ |L_c⁻¹(x − μ_c)|²
    const constants = factors.map(
      (l, c) => Math.log(prior[c]) - l.reduce((sum, row, j) => sum + Math.log(row[j]), 0) - (d / 2) * Math.log(2 * Math.PI),
    );
    const offset = zeros(d);
    const distance = (c, x) => {
      const l = factors[c];
      let square = 0;
      for (let i = 0; i < d; i++) {
        let sum = x[i] - means[c][i];
        for (let k = 0; k < i; k++) sum -= l[i][k] * offset[k];
        offset[i] = sum / l[i][i];
        square += offset[i] * offset[i];
      }
      return square;
    };
    const model = {
      status: "ok",
      prior,
      means,
      covariances,
      factors,
      scores: (x) => constants.map((constant, c) => constant - distance(c, x) / 2),
    };
    if (covariance === "shared") {
      // Scores up to what all classes share are w_c·x + b_c, with w_c = Σ⁻¹μ_c.
      model.weights = means.map((mean) => solveCholesky(factors[0], mean));
      model.intercepts = means.map((mean, c) => Math.log(prior[c]) - dot(mean, model.weights[c]) / 2);
    }
    return model;
  }

  // Newton's method and gradient descent ---------------------------------------------------------------------------

  /* Minimises a convex cost { value(w), gradient(w), hessian(w) } by w ← w − t·H⁻¹∇J; t is halved from 1 until J
     falls. Returns the path: { w, value, gradient, step } of every iteration, step 0 at the end. */
  function newton(cost, start, { most = 200, tolerance = 1e-28 } = {}) {
    const path = [];
    let w = start;
    let value = cost.value(w);
    for (let k = 0; ; k++) {
      const gradient = cost.gradient(w);
      path.push({ w, value, gradient, step: 0 });
      const factor = k < most ? cholesky(cost.hessian(w)) : null;
      if (!factor) return path;
      const direction = solveCholesky(factor, gradient);
      const promise = dot(direction, gradient); // twice what the quadratic model promises
      if (!(promise > tolerance * (1 + Math.abs(value)))) return path;
      let step = 1;
      let next = null;
      let lower = Infinity;
      for (; step > 1e-10; step /= 2) {
        next = w.map((v, j) => v - step * direction[j]);
        lower = cost.value(next);
        if (lower <= value - 1e-4 * step * promise + 1e-15 * Math.abs(value)) break;
      }
      if (step <= 1e-10) return path;
      path.at(-1).step = step;
      w = next;
      value = lower;
    }
  }

  /* w ← w − rate·∇J, so many times. */
  function gradientDescent(cost, start, rate, steps) {
    const path = [];
    let w = start;
    for (let k = 0; ; k++) {
      const gradient = cost.gradient(w);
      path.push({ w, value: cost.value(w), gradient, step: k < steps ? rate : 0 });
      if (k === steps || !gradient.every(Number.isFinite)) return path;
      w = w.map((v, j) => v - rate * gradient[j]);
    }
  }

  // Logistic and softmax regression --------------------------------------------------------------------------------

  /* J(w) = −Σ [y log h + (1 − y) log(1 − h)] + l2/2 Σ s_j w_j², h = sigmoid(w₀ + Σ w_j x_j). The intercept w₀ comes
     first, and has no penalty. `shares` s: 1, or what standardised features need. */
  function logisticCost(X, y, l2 = 0, shares = null) {
    const p = X[0].length + 1;
    const penalty = (j) => (j === 0 ? 0 : l2 * (shares ? shares[j - 1] : 1));
    const eta = (w, x) => {
      let sum = w[0];
      for (let j = 1; j < p; j++) sum += w[j] * x[j - 1];
      return sum;
    };
    return {
      value(w) {
        let sum = 0;
        X.forEach((x, i) => (sum += softplus(y[i] ? -eta(w, x) : eta(w, x))));
        for (let j = 1; j < p; j++) sum += (penalty(j) * w[j] * w[j]) / 2;
        return sum;
      },
      gradient(w) {
        const g = w.map((v, j) => penalty(j) * v);
        X.forEach((x, i) => {
          const e = eta(w, x);
          const error = y[i] ? -sigmoid(-e) : sigmoid(e);
          g[0] += error;
          for (let j = 1; j < p; j++) g[j] += error * x[j - 1];
        });
        return g;
      },
      hessian(w) {
        const h = matrix(p);
        for (const x of X) {
          const e = eta(w, x);
          const weight = sigmoid(e) * sigmoid(-e);
          for (let j = 0; j < p; j++) {
            const left = weight * (j ? x[j - 1] : 1);
            for (let k = 0; k <= j; k++) h[j][k] += left * (k ? x[k - 1] : 1);
          }
        }
        for (let j = 0; j < p; j++) {
          h[j][j] += penalty(j);
          for (let k = 0; k < j; k++) h[k][j] = h[j][k];
        }
        return h;
      },
    };
  }

  const classCounts = (y, K) => y.reduce((counts, c) => (counts[c]++, counts), zeros(K));

  /* The minimum of J, from the class shares. */
  function logistic(X, y, l2) {
    const [n0, n1] = classCounts(y, 2);
    if (!n0 || !n1) return { status: "both classes need points" };
    const d = X[0].length;
    const path = newton(logisticCost(X, y, l2), [Math.log(n1 / n0), ...zeros(d)]);
    const { w, value } = path.at(-1);
    const coef = w.slice(1);
    return {
      status: "ok",
      coef,
      intercept: w[0],
      objective: value,
      weights: [zeros(d), coef],
      intercepts: [0, w[0]],
      scores: (x) => [0, w[0] + dot(coef, x)],
    };
  }

  /* One vector for every class; they sum to 0. J = −Σ log p + l2/2 Σ_c |w_c|². Free are the vectors of the first
     K − 1 classes, each with its intercept first; the last is minus their sum. */
  function softmax(X, y, K, l2) {
    const counts = classCounts(y, K);
    if (counts.some((n) => n === 0)) return { status: "every class needs points" };
    const d = X[0].length;
    const q = d + 1;
    const m = (K - 1) * q;
    const unpack = (theta) => {
      const all = Array.from({ length: K - 1 }, (_, c) => theta.slice(c * q, (c + 1) * q));
      all.push(Array.from({ length: q }, (_, j) => -all.reduce((sum, w) => sum + w[j], 0)));
      return all;
    };
    const score = (w, x) => w[0] + x.reduce((sum, v, j) => sum + v * w[j + 1], 0);
    const shares = (w, x) => {
      const scores = w.map((v) => score(v, x));
      const total = logSumExp(scores);
      return scores.map((s) => Math.exp(s - total));
    };
    const cost = {
      value(theta) {
        const w = unpack(theta);
        let sum = 0;
        X.forEach((x, i) => {
          const scores = w.map((v) => score(v, x));
          sum += logSumExp(scores) - scores[y[i]];
        });
        for (const v of w) for (let j = 1; j < q; j++) sum += (l2 * v[j] * v[j]) / 2;
        return sum;
      },
      gradient(theta) {
        const w = unpack(theta);
        const full = w.map((v) => v.map((value, j) => (j ? l2 * value : 0)));
        X.forEach((x, i) => {
          shares(w, x).forEach((share, c) => {
            const error = share - (y[i] === c ? 1 : 0);
            full[c][0] += error;
            for (let j = 1; j < q; j++) full[c][j] += error * x[j - 1];
          });
        });
        return Array.from({ length: m }, (_, k) => full[Math.floor(k / q)][k % q] - full[K - 1][k % q]);
      },
      hessian(theta) {
        const w = unpack(theta);
        const h = matrix(m);
        for (const x of X) {
          const p = shares(w, x);
          const last = p[K - 1];
          const one = [1, ...x];
          for (let a = 0; a < K - 1; a++) {
            for (let b = 0; b < K - 1; b++) {
              // cov(e_a − e_K, e_b − e_K) of the class's indicator
              const weight = (a === b ? p[a] : 0) + last - (p[a] - last) * (p[b] - last);
              for (let j = 0; j < q; j++) for (let k = 0; k < q; k++) h[a * q + j][b * q + k] += weight * one[j] * one[k];
            }
          }
        }
        for (let a = 0; a < K - 1; a++) {
          for (let b = 0; b < K - 1; b++) for (let j = 1; j < q; j++) h[a * q + j][b * q + j] += l2 * (a === b ? 2 : 1);
        }
        return h;
      },
    };
    const start = zeros(m);
    const logs = counts.map(Math.log);
    const mean = logs.reduce((sum, v) => sum + v, 0) / K;
    for (let c = 0; c < K - 1; c++) start[c * q] = logs[c] - mean;
    const path = newton(cost, start);
    const w = unpack(path.at(-1).w);
    const weights = w.map((v) => v.slice(1));
    const intercepts = w.map((v) => v[0]);
    return {
      status: "ok",
      weights,
      intercepts,
      objective: path.at(-1).value,
      scores: (x) => weights.map((v, c) => intercepts[c] + dot(v, x)),
    };
  }

  const probabilities = (model, x) => {
    const scores = model.scores(x);
    const total = logSumExp(scores);
    return scores.map((s) => Math.exp(s - total));
  };

  /* Of rows: how many are predicted wrongly (a tie goes to the first class), and the mean of −log p(true class). */
  function evaluate(model, X, y) {
    let errors = 0;
    let loss = 0;
    X.forEach((x, i) => {
      const scores = model.scores(x);
      if (scores.indexOf(Math.max(...scores)) !== y[i]) errors++;
      loss += logSumExp(scores) - scores[y[i]];
    });
    return { errors, logLoss: loss / X.length };
  }

  // Halfspaces in the plane ----------------------------------------------------------------------------------------

  /* w, d with s_i (w·x_i − d) ≥ 1 for all i, s = −1 for class 0 and +1 for class 1.

     If there are any, those of the widest gap: its direction is that from a point to one of the other class, or at
     right angles to two points of one class, so that all are tried. If there are none, those of the least total slack
     Σ max(0, 1 − s_i (w·x_i − d)): a convex function with flat faces, whose minimum is reached where three margins
     are exactly 1 (fewer, if the points lie on a line or in one place), so that all are tried. Of equally good lines it
     is the one with the shortest w. */
  function halfspace(X, y) {
    const counts = classCounts(y, 2);
    if (!counts[0] || !counts[1]) return { status: "both classes need points" };
    const size = Math.max(...X.flat().map(Math.abs), 1e-300);
    let best = { gap: 0 };
    const attempt = (u, v) => {
      const length = Math.hypot(u, v);
      if (length <= 1e-14 * size) return;
      const n = [u / length, v / length];
      const range = [[Infinity, -Infinity], [Infinity, -Infinity]];
      X.forEach((x, i) => {
        const s = dot(n, x);
        const of = range[y[i]];
        of[0] = Math.min(of[0], s);
        of[1] = Math.max(of[1], s);
      });
      for (const sign of [1, -1]) {
        const high = sign > 0 ? range[1][0] : -range[1][1];
        const low = sign > 0 ? range[0][1] : -range[0][0];
        if (high - low > best.gap) best = { gap: high - low, n: n.map((a) => sign * a), middle: (high + low) / 2 };
      }
    };
    for (let i = 0; i < X.length; i++) {
      for (let j = 0; j < i; j++) {
        const u = X[i][0] - X[j][0];
        const v = X[i][1] - X[j][1];
        if (y[i] === y[j]) attempt(-v, u);
        else attempt(u, v);
      }
    }
    const separable = best.gap > 1e-12 * size;
    const plane = separable
      ? { w: best.n.map((a) => (2 * a) / best.gap), d: (2 * best.middle) / best.gap, slack: 0 }
      : leastSlack(X, y);
    const { w, d, slack } = plane;
    return {
      status: "ok",
      separable,
      w,
      d,
      slack,
      gap: separable ? best.gap : 0,
      weights: [[0, 0], w],
      intercepts: [0, -d],
      scores: (x) => [0, dot(w, x) - d],
    };
  }

  function leastSlack(X, y) {
    const n = X.length;
    const signs = y.map((c) => (c ? 1 : -1));
    const margin = (a, b, d, i) => signs[i] * (a * X[i][0] + b * X[i][1] - d);
    let best = { slack: Infinity };
    const attempt = (a, b, d) => {
      if (!(Number.isFinite(a) && Number.isFinite(b) && Number.isFinite(d))) return;
      let slack = 0;
      const bound = best.slack * (1 + 1e-12);
      for (let i = 0; i < n && slack <= bound; i++) slack += Math.max(0, 1 - margin(a, b, d, i));
      if (slack > bound) return;
      if (slack < best.slack * (1 - 1e-12) || Math.hypot(a, b) < Math.hypot(...best.w)) best = { w: [a, b], d, slack };
    };
    // Nothing but d: all of the larger class are right.
    attempt(0, 0, -1);
    attempt(0, 0, 1);
    // w·x_i − d = s_i for two points, and w of the least length: along their difference.
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < i; j++) {
        const u = X[i][0] - X[j][0];
        const v = X[i][1] - X[j][1];
        const factor = (signs[i] - signs[j]) / (u * u + v * v);
        attempt(u * factor, v * factor, factor * (u * X[i][0] + v * X[i][1]) - signs[i]);
        for (let k = 0; k < j; k++) {
          const p = X[k][0] - X[j][0];
          const q = X[k][1] - X[j][1];
          const determinant = u * q - v * p;
          if (Math.abs(determinant) <= 1e-12 * (Math.abs(u * q) + Math.abs(v * p))) continue;
          const r = signs[i] - signs[j];
          const t = signs[k] - signs[j];
          const a = (r * q - v * t) / determinant;
          const b = (u * t - r * p) / determinant;
          attempt(a, b, a * X[j][0] + b * X[j][1] - signs[j]);
        }
      }
    }
    return best;
  }

  // Geometry -------------------------------------------------------------------------------------------------------

  /* The part of the line a·x + b·y = c inside a box [x0, x1] × [y0, y1] and inside half-planes p·x + q·y ≤ r:
     two points, or null. */
  function clipLine([a, b], c, [[x0, x1], [y0, y1]], halves = []) {
    const square = a * a + b * b;
    if (!(square > 0)) return null;
    const [px, py] = [(a * c) / square, (b * c) / square];
    let low = -Infinity;
    let high = Infinity;
    for (const [[p, q], r] of [[[1, 0], x1], [[-1, 0], -x0], [[0, 1], y1], [[0, -1], -y0], ...halves]) {
      const slope = -p * b + q * a; // of p·x + q·y along the direction (−b, a)
      const room = r - p * px - q * py;
      if (slope > 0) high = Math.min(high, room / slope);
      else if (slope < 0) low = Math.max(low, room / slope);
      else if (room < 0) return null;
    }
    return low < high ? [low, high].map((t) => [px - b * t, py + a * t]) : null;
  }

  /* Values f(x, y) on a grid of columns × rows cells over a box. */
  function grid(f, [[x0, x1], [y0, y1]], columns, rows) {
    const xs = Array.from({ length: columns + 1 }, (_, i) => x0 + ((x1 - x0) * i) / columns);
    const ys = Array.from({ length: rows + 1 }, (_, j) => y0 + ((y1 - y0) * j) / rows);
    return { xs, ys, values: ys.map((y) => xs.map((x) => f(x, y))) };
  }

  /* Marching squares: segments [[x, y], [x, y]] of the set f = level, by linear interpolation on the grid. */
  function contour({ xs, ys, values }, level = 0) {
    const segments = [];
    const between = (p, q, f, g) => {
      const t = f / (f - g);
      return [p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])];
    };
    for (let j = 0; j + 1 < ys.length; j++) {
      for (let i = 0; i + 1 < xs.length; i++) {
        const corners = [[xs[i], ys[j]], [xs[i + 1], ys[j]], [xs[i + 1], ys[j + 1]], [xs[i], ys[j + 1]]];
        const f = [values[j][i], values[j][i + 1], values[j + 1][i + 1], values[j + 1][i]].map((v) => v - level);
        const crossings = [];
        for (let k = 0; k < 4; k++) {
          const next = (k + 1) % 4;
          if (f[k] > 0 !== f[next] > 0) crossings.push(between(corners[k], corners[next], f[k], f[next]));
        }
        if (crossings.length === 2) segments.push(crossings);
        if (crossings.length === 4) {
          // A saddle: the sign of the mean tells which corners are connected.
          const joined = f[0] + f[1] + f[2] + f[3] > 0 === f[0] > 0;
          const order = joined ? [0, 1, 2, 3] : [3, 0, 1, 2];
          segments.push([crossings[order[0]], crossings[order[1]]], [crossings[order[2]], crossings[order[3]]]);
        }
      }
    }
    return segments;
  }

  /* Segments joined to polylines, where ends meet: fewer and smoother paths. */
  function joinSegments(segments) {
    const key = ([x, y]) => `${x.toPrecision(10)},${y.toPrecision(10)}`;
    const ends = new Map();
    const lines = new Set();
    for (const [a, b] of segments) {
      const left = ends.get(key(a));
      const right = ends.get(key(b));
      let line = [a, b];
      if (left && left === right) {
        // Closes a ring.
        left.push(key(left.at(-1)) === key(a) ? b : a);
        ends.delete(key(a));
        ends.delete(key(b));
        continue;
      }
      for (const [other, end] of [[left, a], [right, b]]) {
        if (!other) continue;
        lines.delete(other);
        ends.delete(key(other[0]));
        ends.delete(key(other.at(-1)));
        const forward = key(other.at(-1)) === key(end) ? other : [...other].reverse();
        line = key(line[0]) === key(end) ? [...forward, ...line.slice(1)] : [...line.slice(0, -1), ...[...forward].reverse()];
      }
      lines.add(line);
      ends.set(key(line[0]), line);
      ends.set(key(line.at(-1)), line);
    }
    return [...lines];
  }

  /* The ellipse of all x with (x − μ)ᵀΣ⁻¹(x − μ) = r², from L with L·Lᵀ = Σ. */
  const ellipse = (mean, l, r, count = 72) =>
    Array.from({ length: count + 1 }, (_, k) => {
      const [u, v] = [r * Math.cos((2 * Math.PI * k) / count), r * Math.sin((2 * Math.PI * k) / count)];
      return [mean[0] + l[0][0] * u, mean[1] + l[1][0] * u + l[1][1] * v];
    });

  // Random numbers -------------------------------------------------------------------------------------------------

  /* mulberry32 (Tommy Ettinger): numbers in [0, 1) from a seed of 32 bits, the same in every browser. */
  function uniform(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = state;
      t = Math.imul(t ^ (t >>> 15), t | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  }

  /* A standard normal from two uniform numbers (Box and Muller); the second of the pair is not used. */
  const normal = (random) => {
    const radius = Math.sqrt(-2 * Math.log(1 - random()));
    return radius * Math.cos(2 * Math.PI * random());
  };

  const exponential = (random) => -Math.log(1 - random());

  // Learning curves ------------------------------------------------------------------------------------------------

  /* Where rows come from. All have 8 features; classes alternate, 0 first. `row(random, c)` draws the features of a row,
     in order; `logOdds(x)` is the true log p(1|x)/p(0|x).
       independent  N(0, 1) in class 0 and N(0.7, 1) in class 1
       correlated   each two features have a correlation of 0.6 (a normal number for each feature, then one for all);
                    the first four have means of 0.7 in class 1, the others 0
       exponential  means 1 in class 0 and 2.2 in class 1 */
  const FEATURES = 8;
  const SHIFT = 0.7;
  const CORRELATION = 0.6;
  const MEAN = 2.2;
  const features = (f) => Array.from({ length: FEATURES }, (_, j) => f(j));
  const correlatedShift = features((j) => (j < FEATURES / 2 ? SHIFT : 0));
  const correlatedWeights = (() => {
    // ((1 − ρ)I + ρ11ᵀ)⁻¹ = (I − ρ/(1 − ρ + dρ) 11ᵀ)/(1 − ρ)
    const total = correlatedShift.reduce((sum, v) => sum + v, 0);
    const common = (CORRELATION / (1 - CORRELATION + FEATURES * CORRELATION)) * total;
    return correlatedShift.map((v) => (v - common) / (1 - CORRELATION));
  })();
  const truths = {
    independent: {
      row: (random, c) => features(() => normal(random) + c * SHIFT),
      logOdds: (x) => x.reduce((sum, v) => sum + SHIFT * (v - SHIFT / 2), 0),
    },
    correlated: {
      row: (random, c) => {
        const own = features(() => normal(random));
        const all = normal(random);
        return own.map((v, j) => Math.sqrt(1 - CORRELATION) * v + Math.sqrt(CORRELATION) * all + c * correlatedShift[j]);
      },
      logOdds: (x) => dot(correlatedWeights, x) - dot(correlatedWeights, correlatedShift) / 2,
    },
    exponential: {
      row: (random, c) => features(() => exponential(random) * (c ? MEAN : 1)),
      logOdds: (x) => x.reduce((sum, v) => sum + v * (1 - 1 / MEAN) - Math.log(MEAN), 0),
    },
  };

  /* n rows of a truth from a seed: the first rows are the same for every n. */
  function sample(truth, seed, n) {
    const random = uniform(seed);
    const y = Array.from({ length: n }, (_, i) => i % 2);
    return { X: y.map((c) => truths[truth].row(random, c)), y };
  }

  return {
    truths, sample,
    logSumExp, sigmoid, softplus, dot, norm, zeros, matrix, cholesky, solveCholesky,
    gaussian, newton, gradientDescent, logisticCost, logistic, softmax, probabilities, evaluate, halfspace,
    clipLine, grid, contour, joinSegments, ellipse, uniform, normal, exponential,
  };
})();
