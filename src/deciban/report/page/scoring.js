// Scores rows as the model does, from the formulas that export/javascript.py packs.
//
//   const scorer = await Scoring.load(figures.scoring);
//   scorer.score(cells)               cells in the order of scorer.columns: number, text, boolean or null
//   Scoring.read(column, "3.5")       the value of typed text, or {problem}
const Scoring = (() => {
  "use strict";

  const { Refused, guarded, cellOf, codeOf, derivedOf, read, cutsBelow } = Cells;
  const { ADD, prepared, range, zeros, sum } = Formulas;
  const SURE = 1e4; // log-odds are clipped to ±SURE
  const TINY = 2 ** -1022; // the least probability
  const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };

  // ---- arrays -----------------------------------------------------------------------------------------------------

  async function bytesOf(arrays) {
    const text = atob(arrays.data);
    const packed = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
    if (!arrays.deflated) return packed.buffer;
    const whole = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(whole).arrayBuffer();
  }

  // Unpacks every array in an object or a list; a table is a list of rows, which may share memory.
  function unpacked(value, buffer) {
    if (Array.isArray(value)) return value.map((item) => unpacked(item, buffer));
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
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, unpacked(item, buffer)]));
  }

  // ---- from scores to probabilities -------------------------------------------------------------------------------

  const largest = (values) => values.reduce((best, x, k) => (x > values[best] ? k : best), 0); // the first among equals

  function logSum(values) {
    const most = Math.max(...values);
    return most === -Infinity ? most : most + Math.log(sum(values.map((x) => Math.exp(x - most))));
  }

  // log p(c|x), by a stable softmax; the prior for a row that is impossible under every class.
  function logProba(joint, prior) {
    const most = Math.max(...joint);
    if (most === -Infinity) return prior.slice();
    const less = joint.map((x) => x - most);
    const total = Math.log(sum(less.map(Math.exp)));
    return less.map((x) => x - total);
  }

  const sigmoid = (z) => (z < 0 ? Math.exp(z) / (1 + Math.exp(z)) : 1 / (1 + Math.exp(-z)));

  function logOdds(logP, k) {
    const odds = logP[k] - logSum(logP.filter((_, other) => other !== k));
    return Number.isNaN(odds) ? 0 : Math.min(Math.max(odds, -SURE), SURE);
  }

  // Linear interpolation, constant beyond the ends.
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

  // Probabilities and the most probable class, or a mean, from scores.
  function finished(joint, finish) {
    if (finish.mean) return { proba: [], predicted: 0, mean: new Function("eta", `return ${finish.mean}`)(joint[0]) };
    if (!finish.probabilities) return { proba: undefined, predicted: largest(joint) };
    let logP = logProba(joint, finish.prior);
    let predicted = largest(joint.some((x) => x > -Infinity) ? joint : finish.prior);
    for (const correction of finish.corrections) {
      logP = corrected(logP, correction);
      if (correction.curves) predicted = largest(logP);
    }
    return { proba: Array.from(logP, Math.exp), predicted };
  }

  // A row while it is scored: its values, and the nats of each part so far.
  function rowOf(model, cells) {
    const classes = model.start.length;
    const parts = model.parts.map((_, i) => (i === 0 ? Float64Array.from(model.start) : zeros(classes)));
    const lines = new Map();
    const into = (nats, more) => more.forEach((x, k) => (nats[k] += x));
    const columns = [...model.columns, ...model.derived];
    const codes = model.unknown.map((code) => codeOf({ cells, columns, places: model.places }, code));
    return {
      cells,
      unknown: range(codes.length).filter((c) => codes[c] < 0), // of the columns that change weights
      classes,
      parts,
      lines,
      columns,
      places: model.places,
      each: (of, Kind = Float64Array) => Kind.from({ length: classes }, (_, k) => of(k)),
      add: (part, nats) => {
        const shared = part < parts.length ? [part] : model.shared[part - parts.length]; // a gap belongs to both dates
        for (const one of shared) into(parts[one], shared.length > 1 ? nats.map((x) => x / shared.length) : nats);
      },
      line: (name, nats, times) => {
        if (!lines.has(name)) lines.set(name, { nats: zeros(classes), times });
        into(lines.get(name).nats, nats);
      },
    };
  }

  const MOST_CHARACTERS = 30;

  // A value as explanations print it: numbers with six digits at most, text on one line and cut (explanation.short).
  function short(cell) {
    if (typeof cell === "number") return String(Number.isInteger(cell) ? cell : Number(cell.toPrecision(6)));
    const text = String(cell).trim().replace(/\s+/g, " ");
    return (text.length <= MOST_CHARACTERS ? text : `${text.slice(0, MOST_CHARACTERS - 1)}…`) || "''";
  }

  // A part with the value of its feature: "age = 39", "age is missing".
  function labelOf(model, part, cells) {
    const column = model.owners[part];
    if (column < 0) return model.parts[part];
    return `${model.parts[part]} ${cells[column] === null ? "is missing" : `= ${short(cells[column])}`}`;
  }

  const termLabel = ([name, { times }]) => (times > 1 ? `${name} (×${times})` : name);

  // The change of scores by the limit, centred: log((1 − ε)·softmax + ε·prior) − score, where the score is finite.
  function limitOf(joint, { prior, limit }) {
    const limited = logProba(joint, prior).map((x, k) =>
      Math.log((1 - limit.share) * Math.exp(x) + limit.share * Math.exp(prior[k])),
    );
    const known = range(joint.length).filter((k) => Number.isFinite(joint[k]));
    const mean = sum(known.map((k) => limited[k] - joint[k])) / Math.max(known.length, 1);
    return joint.map((x, k) => (Number.isFinite(x) ? limited[k] - x - mean : 0));
  }

  function scored(model, raw) {
    const size = model.columns.length;
    if (!Array.isArray(raw) || raw.length !== size) throw new Refused(`a row of this model has ${size} values`);
    const own = model.columns.map((column, j) => cellOf(column, raw[j]));
    const row = rowOf(model, [...own, ...model.derived.map((derived) => derivedOf(derived, own))]);
    const isDate = ({ kind }) => kind === "date" || kind === "time";
    const shown = own.map((cell, j) => (cell !== null && isDate(model.columns[j]) ? String(raw[j]) : cell));
    for (const formula of model.formulas) ADD[formula.kind](formula, row);
    const { limit } = model.finish;
    const total = (k) => sum([...row.parts, ...Array.from(row.lines.values(), (line) => line.nats)].map((part) => part[k]));
    if (limit) row.line(limit.name, limitOf(row.each(total), model.finish), 0);
    const nats = [...row.parts, ...Array.from(row.lines.values(), (line) => line.nats)];
    const joint = row.each((k) => sum(nats.map((part) => part[k])));
    const scale = model.finish.corrections.reduce(
      (product, { beta, curves }) => (curves ? product : product * beta),
      1,
    );
    return {
      names: [...model.parts, ...row.lines.keys()],
      labels: [...model.parts.map((name, i) => labelOf(model, i, shown)), ...Array.from(row.lines, termLabel)],
      last: [...model.owners.map((owner) => owner < -1), ...Array.from(row.lines.values(), (line) => !line.times)],
      nats: nats.map((part) => Array.from(part, (x) => x * scale)),
      joint: Array.from(joint, (x) => x * scale),
      ...finished(joint, model.finish),
    };
  }

  const refused = (problem) => ({ names: [], labels: [], last: [], nats: [], joint: [], proba: [], predicted: -1, mean: undefined, problem });

  async function load(scoring) {
    const { columns, derived, classes, why } = scoring;
    if (why !== undefined) return { columns: [], classes: [], score: () => refused(why) };
    const packed = { ...scoring, columns: [], derived: [] };
    const model = { ...unpacked(packed, await bytesOf(scoring.arrays)), columns, derived };
    const key = (level) => (typeof level === "boolean" ? Number(level) : level);
    const all = [...columns, ...derived];
    model.places = all.map(({ levels }) => levels && new Map(levels.map((level, place) => [key(level), place])));
    model.formulas = model.formulas.map((formula) => prepared(formula, model.start.length));
    return { columns, classes, score: (cells) => guarded(() => scored(model, cells), refused) };
  }

  return { load, read };
})();
