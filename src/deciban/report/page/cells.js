// Cells: the values of rows, and text that a user types, as numbers, codes and text.
const Cells = (() => {
  "use strict";

  const MISSING = -1; // the code of a missing value
  const UNSEEN = -2; // the code of an unseen level

  // Domains of numbers, and the message for a number outside a domain.
  const DOMAINS = {
    binary: [(x) => x === 0 || x === 1, "is neither 0 nor 1"],
    positive: [(x) => x > 0, "is not above 0, as a waiting time must be"],
    count: [(x) => x >= 0 && Number.isInteger(x), "is not a whole number of 0 or more, as a count must be"],
    amount: [(x) => x >= 0, "is not a count: it must be 0 or more"],
    squarable: [(x) => Math.abs(x) <= 2 ** 500, "is too large to be squared"],
    there: [(x) => !Number.isNaN(x), "is missing: this model needs complete rows"],
  };

  class Refused extends Error {} // for a value that cannot be parsed, or that the model does not allow

  function refuse(column, cell, problem) {
    const shown = typeof cell === "string" ? JSON.stringify(cell) : cell === null ? "the cell" : String(cell);
    throw new Refused(`column ${column.name}: ${shown} ${problem}`);
  }

  // Parses a number; undefined if text is not a number. Integers beyond the exact range stay text.
  function numberIn(column, text) {
    if (/^[+-]?inf(inity)?$/i.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
    if (/^nan$/i.test(text)) return NaN;
    if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return undefined;
    const x = Number(text);
    const integer = column.integers && /^[+-]?\d+$/.test(text);
    return integer && !Number.isSafeInteger(x) ? String(BigInt(text)) : x;
  }

  function ofNumbers(column) {
    return column.integers || (column.levels?.length > 0 && column.levels.every((level) => typeof level !== "string"));
  }

  // Parses a number or a boolean; null if text is empty.
  function parsed(column, text) {
    const trimmed = text.trim();
    if (trimmed === "") return null;
    if (column.kind === "boolean" && /^(true|false)$/i.test(trimmed)) return trimmed.toLowerCase() === "true";
    const cell = numberIn(column, trimmed);
    if (cell === undefined)
      refuse(column, text, column.kind === "number" ? "is not a number" : "is neither true nor false");
    return cell;
  }

  const CLOCK = "(\\d{2}):(\\d{2})(?::(\\d{2})(?:[.,](\\d{1,9}))?)?";
  const DATE = new RegExp(`^(\\d{4})([-/])(\\d{2})\\2(\\d{2})(?:[T ]${CLOCK}\\s?(?:[zZ]|[+-]\\d{2}:?\\d{2})?)?$`);
  const TIME = new RegExp(`^${CLOCK}$`);
  const DAY = 864e5; // milliseconds

  // Microseconds since midnight; NaN for an impossible time.
  function clockOf(hour = "0", minute = "0", second = "0", fraction = "") {
    const inside = Number(hour) < 24 && Number(minute) < 60 && Number(second) < 60;
    const seconds = (Number(hour) * 60 + Number(minute)) * 60 + Number(second);
    return inside ? seconds * 1e6 + Number(fraction.padEnd(6, "0").slice(0, 6)) : NaN;
  }

  // Days since 1970; NaN for an impossible date.
  function daysOf(text) {
    const [, year, , month, day, ...clock] = DATE.exec(text) ?? [];
    if (year === undefined) return NaN;
    const date = new Date(0);
    date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
    const same = Number(year) > 0 && date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day);
    return same ? date.getTime() / DAY + clockOf(...clock) / (1e3 * DAY) : NaN;
  }

  // Hours since midnight.
  function hoursOf(text) {
    const match = TIME.exec(text);
    const micros = match ? clockOf(...match.slice(1)) : NaN;
    return Math.floor(micros / 36e8) + (micros % 36e8) / 36e8;
  }

  // Parses a date or a time of day, as days or hours.
  function moment(column, text) {
    if (text.trim() === "") return null;
    const x = column.kind === "date" ? daysOf(text.trim()) : hoursOf(text.trim());
    const wanted = column.kind === "date" ? "a date, such as 2026-03-01 or 2026-03-01 12:30" : "a time, such as 12:30";
    if (Number.isNaN(x)) refuse(column, text, `is not ${wanted}`);
    return x;
  }

  const MONTHS =
    "January February March April May June July August September October November December".split(" ");
  const WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(" ");

  // The value of a derived feature: a part of a date, or the days between two dates.
  function derivedOf({ part, columns }, cells) {
    const [first, second] = columns.map((j) => cells[j]);
    if (first === null || second === null) return null;
    if (part === "gap") return second - first;
    const time = Math.round(first * DAY);
    const day = Math.floor(time / DAY);
    const date = new Date(day * DAY);
    const parts = {
      year: () => date.getUTCFullYear(),
      month: () => MONTHS[date.getUTCMonth()],
      day: () => date.getUTCDate(),
      weekday: () => WEEKDAYS[(((day + 3) % 7) + 7) % 7],
      hour: () => Math.floor((time - day * DAY) / 36e5),
    };
    return parts[part]();
  }

  // A raw value in the type of its column: null, a number, a boolean or text.
  function cellOf(column, raw) {
    if (raw === null || raw === undefined) return null;
    if (!["number", "string", "boolean"].includes(typeof raw)) refuse(column, String(typeof raw), "is not a value");
    const numbers = column.kind === "number" || column.kind === "boolean";
    const dated = column.kind === "date" || column.kind === "time";
    const text = typeof raw === "string";
    let cell = raw;
    if (text && dated) cell = moment(column, raw);
    else if (text && numbers) cell = parsed(column, raw);
    else if (text && column.kind === "category" && ofNumbers(column)) cell = numberIn(column, raw.trim()) ?? raw;
    else if (!text && (column.kind === "text" || (column.kind === "category" && !ofNumbers(column)))) {
      refuse(column, raw, "is not text, which this column holds");
    }
    if (cell === Infinity || cell === -Infinity) refuse(column, raw, "is infinite");
    return Number.isNaN(cell) ? null : cell;
  }

  // The value of text that a user typed, or {problem}; empty text is a missing value.
  const read = (column, text) =>
    guarded(
      () => (text === "" ? null : cellOf(column, text)),
      (problem) => ({ problem }),
    );

  // The value of a feature as a number within its domains; NaN if it is missing.
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

  // The code of a level or a bin: negative if it is missing or unseen.
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

  // The result of work(), or otherwise(message) if a value is refused.
  function guarded(work, otherwise) {
    try {
      return work();
    } catch (error) {
      if (error instanceof Refused) return otherwise(error.message);
      throw error;
    }
  }

  return { Refused, guarded, cellOf, derivedOf, read, numberOf, cutsBelow, codeOf };
})();
