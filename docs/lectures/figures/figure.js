/* Interactive figures of the lectures: what all of them share.

   A page holds <div class="lecture-figure" data-figure="coin" data-…></div>. A script registers how it is filled:

     lectures.register("coin", (box, options) => {          // options: the element's dataset
       const state = { heads: 7, flips: 10 };
       const controls = lectures.controls(box);
       controls.slider({ label: "heads", min: 0, max: 10, step: 1, value: state.heads,
                         change: (heads) => figure.set({ heads }) });
       const chart = lectures.chart(box, { label: "Posterior density of the coin", height: 260 });
       const note = lectures.note(box);
       const figure = lectures.figure(box, state, {
         results: (state) => ({ … }),                       // numbers only, no document
         draw: (state, results) => {                        // after every change, and when the width changes
           chart.frame({ x: [0, 1], y: [0, 4], xLabel: "share of heads", yLabel: "density" });
           chart.line(results.curve, "series-0");
           note.textContent = `…`;
         },
       });
       return figure;                                       // becomes box.figure = { state, set(partial), results() }
     });

   Positions are in the data's units; charts are drawn at the width that they have, so that text keeps its size on a
   phone. Colours come from classes (figures.css): series-0, series-1, … colour lines, areas, dots and text alike. */
"use strict";

window.lectures = (() => {
  const builders = new Map();
  const SVG = "http://www.w3.org/2000/svg";
  let identifiers = 0;

  // Registration ---------------------------------------------------------------------------------------------------

  function fill() {
    for (const box of document.querySelectorAll(".lecture-figure[data-figure]")) {
      const build = builders.get(box.dataset.figure);
      if (!build || box.figure) continue;
      box.replaceChildren();
      box.figure = build(box, box.dataset);
    }
  }

  function register(name, build) {
    builders.set(name, build);
    if (document.readyState !== "loading") fill();
  }

  document.addEventListener("DOMContentLoaded", fill);

  /* The object that a build returns. `results(state)` is computed once for every state; `draw(state, results)` runs
     at once, after every set, and when the box becomes wider or narrower. */
  function figure(box, state, { results, draw }) {
    let computed = null;
    let width = box.clientWidth;
    const self = {
      state,
      set(partial) {
        Object.assign(state, partial);
        computed = null;
        draw(state, self.results());
        return self.results();
      },
      results() {
        computed ??= results(state);
        return computed;
      },
    };
    // The first drawing waits until the build's own `const figure` exists, but not for another frame.
    queueMicrotask(() => draw(state, self.results()));
    new ResizeObserver(() => {
      if (box.clientWidth === width) return;
      width = box.clientWidth;
      draw(state, self.results());
    }).observe(box);
    return self;
  }

  // Elements -------------------------------------------------------------------------------------------------------

  function fillElement(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value === null || value === undefined || value === false) continue;
      node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children);
    return node;
  }

  const html = (tag, attributes, ...children) => fillElement(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) => fillElement(document.createElementNS(SVG, tag), attributes, children);
  const clamp = (x, [low, high]) => Math.min(Math.max(x, Math.min(low, high)), Math.max(low, high));
  const reducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  // Numbers --------------------------------------------------------------------------------------------------------

  /* A number to be read: so many significant digits, a true minus sign, powers of ten only far from 1. */
  function format(x, digits = 3) {
    if (x === Infinity) return "∞";
    if (x === -Infinity) return "−∞";
    if (Number.isNaN(x)) return "–";
    if (x === 0) return "0";
    const size = Math.abs(x);
    let text;
    if (size >= 1e6 || size < 1e-4) {
      const [mantissa, power] = x.toExponential(digits - 1).split("e");
      const raised = [...String(Number(power))].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("");
      text = `${mantissa}·10${raised}`;
    } else {
      text = size >= 10 ** digits ? x.toFixed(0) : Number(x.toPrecision(digits)).toString();
    }
    return text.replace("-", "−");
  }

  /* A number with a fixed count of decimals and a true minus sign. */
  const fixed = (x, decimals = 2) => {
    const text = x.toFixed(decimals);
    return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
  };

  /* Round numbers from low to high, about `count` of them, at steps of 1, 2 or 5 times a power of ten. */
  function ticks(low, high, count = 5) {
    const raw = (high - low) / Math.max(count, 1);
    if (!(raw > 0)) return [low];
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999) * power;
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) {
      found.push(Number((k * step).toFixed(decimals)));
    }
    return found;
  }

  /* Powers of ten, with 2 and 5 between them where there is room. */
  function logTicks(low, high, count = 5) {
    const found = [];
    const decades = Math.log10(high / low);
    const factors = decades * 3 <= count + 2 ? [1, 2, 5] : [1];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const factor of factors) {
        const value = factor * 10 ** power;
        if (value >= low * 0.999 && value <= high * 1.001) found.push(Number(value.toPrecision(3)));
      }
    }
    return found;
  }

  // Scales ---------------------------------------------------------------------------------------------------------

  /* domain → range; `scale.invert` goes back. */
  function scale([low, high], [start, end], log = false) {
    const into = log ? Math.log : (x) => x;
    const back = log ? Math.exp : (x) => x;
    const slope = (end - start) / (into(high) - into(low));
    const map = (x) => start + (into(x) - into(low)) * slope;
    map.invert = (position) => back(into(low) + (position - start) / slope);
    map.domain = [low, high];
    map.range = [start, end];
    return map;
  }

  // Charts ---------------------------------------------------------------------------------------------------------

  /* An SVG with axes. `height` is in pixels, or a function of the width. Call `frame` first in every drawing: it
     clears the marks, and sets the scales chart.x and chart.y. Handles stay, and are placed again by their figure. */
  function chart(parent, { label, height = 280, maxWidth = 720, margin = {} } = {}) {
    const holder = html("div", { class: "figure-chart", style: `max-width: ${maxWidth}px` });
    const clip = `figure-clip-${++identifiers}`;
    const window_ = svg("rect");
    const axes = svg("g", { class: "figure-axes", "aria-hidden": "true" });
    const marks = svg("g", { "clip-path": `url(#${clip})` });
    const labels = svg("g");
    const handles = svg("g");
    const root = svg(
      "svg",
      { role: "group", "aria-label": label },
      svg("defs", null, svg("clipPath", { id: clip }, window_)),
      axes,
      marks,
      labels,
      handles,
    );
    holder.append(root);
    parent.append(holder);

    const positions = (points) => points.map(([x, y]) => `${self.x(x).toFixed(2)},${self.y(y).toFixed(2)}`);
    const add = (layer, tag, attributes, ...children) => {
      const node = svg(tag, attributes, ...children);
      layer.append(node);
      return node;
    };

    const self = {
      svg: root,
      marks,
      labels,
      handles,
      holder,

      /* x, y: [low, high]. Ticks are chosen unless given: xTicks: [1, 2], or [[1, "one"], [2, "two"]], or [] for none. */
      frame({ x, y, xLabel, yLabel, xTicks, yTicks, xLog = false, yLog = false, grid = true }) {
        const width = Math.max(240, Math.min(holder.clientWidth || 320, maxWidth));
        const tall = typeof height === "function" ? height(width) : height;
        const space = { top: yLabel ? 26 : 12, right: 14, bottom: xLabel ? 44 : 28, left: 46, ...margin };
        root.setAttribute("viewBox", `0 0 ${width} ${tall}`);
        root.setAttribute("width", width);
        root.setAttribute("height", tall);
        self.width = width;
        self.height = tall;
        self.inner = {
          left: space.left,
          right: width - space.right,
          top: space.top,
          bottom: tall - space.bottom,
        };
        const { left, right, top, bottom } = self.inner;
        self.x = scale(x, [left, right], xLog);
        self.y = scale(y, [bottom, top], yLog);
        fillElement(window_, { x: left, y: top, width: right - left, height: bottom - top }, []);
        axes.replaceChildren();
        marks.replaceChildren();
        labels.replaceChildren();
        const choose = (given, domain, log, count) =>
          (given ?? (log ? logTicks(...domain, count) : ticks(...domain, count))).map((tick) =>
            Array.isArray(tick) ? tick : [tick, String(tick).replace("-", "−")],
          );
        for (const [at, text] of choose(xTicks, x, xLog, (right - left) / 70)) {
          const px = self.x(at);
          if (grid) add(axes, "line", { class: "figure-grid", x1: px, x2: px, y1: top, y2: bottom });
          add(axes, "line", { x1: px, x2: px, y1: bottom, y2: bottom + 4 });
          add(axes, "text", { x: px, y: bottom + 17, "text-anchor": "middle" }, text);
        }
        for (const [at, text] of choose(yTicks, y, yLog, (bottom - top) / 45)) {
          const py = self.y(at);
          if (grid) add(axes, "line", { class: "figure-grid", x1: left, x2: right, y1: py, y2: py });
          add(axes, "line", { x1: left - 4, x2: left, y1: py, y2: py });
          add(axes, "text", { x: left - 8, y: py + 4, "text-anchor": "end" }, text);
        }
        add(axes, "line", { x1: left, x2: right, y1: bottom, y2: bottom });
        add(axes, "line", { x1: left, x2: left, y1: top, y2: bottom });
        if (xLabel) add(axes, "text", { x: (left + right) / 2, y: bottom + 36, "text-anchor": "middle" }, xLabel);
        if (yLabel) add(axes, "text", { x: 2, y: 14 }, yLabel);
        return self;
      },

      // Marks, in the data's units; `look` is a class such as "series-1" or "series-1 figure-dashed".
      line: (points, look = "") =>
        add(marks, "polyline", { class: `figure-line ${look}`, points: positions(points).join(" ") }),
      /* Lines that share a look: a list of lists of points, in one path. */
      lines: (many, look = "") =>
        add(marks, "path", {
          class: `figure-line ${look}`,
          d: many.map((points) => `M${positions(points).join("L")}`).join(""),
        }),
      /* What lies between a curve and a base line. */
      area: (points, look = "", base = 0) =>
        add(marks, "polygon", {
          class: `figure-area ${look}`,
          points: positions([[points[0][0], base], ...points, [points.at(-1)[0], base]]).join(" "),
        }),
      polygon: (points, look = "") =>
        add(marks, "polygon", { class: `figure-area ${look}`, points: positions(points).join(" ") }),
      rect: ([x0, x1], [y0, y1], look = "") =>
        add(marks, "rect", {
          class: `figure-area ${look}`,
          x: Math.min(self.x(x0), self.x(x1)),
          y: Math.min(self.y(y0), self.y(y1)),
          width: Math.abs(self.x(x1) - self.x(x0)),
          height: Math.abs(self.y(y1) - self.y(y0)),
        }),
      dot: (x, y, look = "", radius = 4) =>
        add(marks, "circle", { class: `figure-dot ${look}`, cx: self.x(x), cy: self.y(y), r: radius }),
      /* Text at a place; dx and dy are pixels. Labels are not clipped, and have a halo of the page's colour. */
      text: (x, y, text, look = "", { dx = 0, dy = 0, anchor = "start" } = {}) =>
        add(
          labels,
          "text",
          { class: `figure-label ${look}`, x: self.x(x) + dx, y: self.y(y) + dy, "text-anchor": anchor },
          text,
        ),

      /* A point that is dragged, or moved by the arrow keys (Shift: ten steps; Delete or Backspace: remove).
         move(x, y) gets the new place, inside the axes. axis: "x" or "y" fixes the other coordinate. Returns
         { node, place(x, y), remove() }: call place in every drawing. */
      handle({ label: name, look = "series-0", shape = "circle", step, axis = "both", move, remove, describe }) {
        const node = svg(
          "g",
          {
            class: `figure-handle ${look}`,
            tabindex: 0,
            role: "slider",
            "aria-roledescription": "movable point",
            "aria-label": name,
          },
          svg("circle", { class: "figure-reach", r: 14 }),
          mark(shape),
        );
        let at = [0, 0];
        const go = (x, y) => {
          const to = [
            axis === "y" ? at[0] : clamp(x, self.x.domain),
            axis === "x" ? at[1] : clamp(y, self.y.domain),
          ];
          move(...to);
        };
        let held = null; // offset of the pointer from the point, in pixels
        const place = (event) => {
          const frame = root.getBoundingClientRect();
          return [event.clientX - frame.left, event.clientY - frame.top];
        };
        node.addEventListener("pointerdown", (event) => {
          if (event.button !== 0) return;
          const [px, py] = place(event);
          held = [px - self.x(at[0]), py - self.y(at[1])];
          node.setPointerCapture(event.pointerId);
          node.focus({ preventScroll: true });
          event.preventDefault();
          event.stopPropagation();
        });
        node.addEventListener("pointermove", (event) => {
          if (!held) return;
          const [px, py] = place(event);
          go(self.x.invert(px - held[0]), self.y.invert(py - held[1]));
        });
        const release = () => (held = null);
        node.addEventListener("pointerup", release);
        node.addEventListener("pointercancel", release);
        node.addEventListener("lostpointercapture", release);
        node.addEventListener("keydown", (event) => {
          if ((event.key === "Delete" || event.key === "Backspace") && remove) {
            event.preventDefault();
            remove();
            return;
          }
          const direction = {
            ArrowLeft: [-1, 0],
            ArrowRight: [1, 0],
            ArrowUp: [0, 1],
            ArrowDown: [0, -1],
          }[event.key];
          if (!direction || event.altKey || event.ctrlKey || event.metaKey) return;
          event.preventDefault();
          const far = event.shiftKey ? 10 : 1;
          const size = (domain, k) => {
            const given = Array.isArray(step) ? step[k] : step;
            return given ?? (domain[1] - domain[0]) / 100;
          };
          // Rounded, so that steps there and back end at the same number.
          const next = (k, domain) => Number((at[k] + direction[k] * far * size(domain, k)).toPrecision(12));
          go(next(0, self.x.domain), next(1, self.y.domain));
        });
        handles.append(node);
        return {
          node,
          place(x, y) {
            at = [x, y];
            node.setAttribute("transform", `translate(${self.x(x).toFixed(2)} ${self.y(y).toFixed(2)})`);
            const told = axis === "y" ? y : x;
            const range = axis === "y" ? self.y.domain : self.x.domain;
            node.setAttribute("aria-valuemin", range[0]);
            node.setAttribute("aria-valuemax", range[1]);
            node.setAttribute("aria-valuenow", Number(told.toPrecision(6)));
            const spoken = { both: `x ${format(x)}, y ${format(y)}`, x: format(x), y: format(y) }[axis];
            node.setAttribute("aria-valuetext", describe ? describe(x, y) : spoken);
          },
          remove: () => node.remove(),
        };
      },
    };
    return self;
  }

  /* The sign of a class: shapes differ, so that colour is not needed to tell classes apart. */
  function mark(shape, size = 6) {
    const s = size;
    if (shape === "square") return svg("rect", { class: "figure-mark", x: -s + 0.5, y: -s + 0.5, width: 2 * s - 1, height: 2 * s - 1 });
    if (shape === "triangle") {
      return svg("polygon", { class: "figure-mark", points: `0,${-s - 1.5} ${s + 1},${s - 1} ${-s - 1},${s - 1}` });
    }
    return svg("circle", { class: "figure-mark", r: s });
  }

  // Controls -------------------------------------------------------------------------------------------------------

  /* A row of controls. Each maker returns { input, set(value) }; set changes what is shown and calls nothing. */
  function controls(parent) {
    const row = html("div", { class: "figure-controls" });
    parent.append(row);
    const labelled = (label, input, after = []) => {
      input.id = `figure-input-${++identifiers}`;
      const name = html("label", { for: input.id }, label);
      const holder = html("div", { class: "figure-control" }, name, input, ...after);
      row.append(holder);
      return holder;
    };

    return {
      row,

      /* `show` writes the value beside the slider; `log: true` makes equal distances equal factors (min > 0). */
      slider({ label, min, max, step = "any", value, show = (x) => format(x), log = false, change }) {
        const into = log ? Math.log : (x) => x;
        const back = log ? (x) => Math.exp(x) : (x) => x;
        const input = html("input", {
          type: "range",
          min: into(min),
          max: into(max),
          step: log ? "any" : step,
        });
        const output = html("output", { class: "figure-value" });
        labelled(label, input, [output]).classList.add("figure-slider");
        output.htmlFor = input.id;
        const write = (x) => {
          output.textContent = show(x);
          input.setAttribute("aria-valuetext", show(x));
        };
        input.addEventListener("input", () => {
          const x = back(Number(input.value));
          write(x);
          change(x);
        });
        const set = (x) => {
          input.value = into(x);
          write(x);
        };
        set(value);
        return { input, set };
      },

      checkbox({ label, checked = false, look, change }) {
        const input = html("input", { type: "checkbox" });
        input.checked = checked;
        input.addEventListener("change", () => change(input.checked));
        const holder = labelled(label, input);
        holder.classList.add("figure-tick");
        if (look) holder.classList.add(...look.split(" "));
        return { input, set: (value) => (input.checked = value) };
      },

      /* options: ["a", "b"] or [["a", "the first"], …] */
      select({ label, options, value, change }) {
        const input = html("select");
        for (const option of options) {
          const [key, text] = Array.isArray(option) ? option : [option, option];
          input.append(html("option", { value: key }, text));
        }
        input.value = value;
        input.addEventListener("change", () => change(input.value));
        labelled(label, input);
        return { input, set: (chosen) => (input.value = chosen) };
      },

      button({ label, press }) {
        const input = html("button", { type: "button" }, label);
        input.addEventListener("click", press);
        row.append(input);
        return { input, set: (text) => (input.textContent = text) };
      },
    };
  }

  // Words and tables -----------------------------------------------------------------------------------------------

  /* A paragraph that is read out when it changes. */
  function note(parent, look = "") {
    const node = html("p", { class: `figure-note ${look}`, "aria-live": "polite" });
    parent.append(node);
    return node;
  }

  /* A table; `set(rows)` fills it. A cell is text, a number, a node, or { text, look }. The first cell of a row heads it. */
  function table(parent, { caption, head }) {
    const body = html("tbody");
    const node = html(
      "table",
      { class: "figure-table" },
      ...(caption ? [html("caption", null, caption)] : []),
      html("thead", null, html("tr", null, ...head.map((text) => html(text ? "th" : "td", text ? { scope: "col" } : null, text)))),
      body,
    );
    const holder = html("div", { class: "figure-scroll" }, node);
    parent.append(holder);
    const cell = (content, k) => {
      const { text, look } = content?.text === undefined || content.nodeType ? { text: content } : content;
      const shown = typeof text === "number" ? format(text) : text;
      return html(k ? "td" : "th", { class: look, scope: k ? null : "row" }, shown);
    };
    return { node, holder, set: (rows) => body.replaceChildren(...rows.map((row) => html("tr", null, ...row.map(cell)))) };
  }

  /* Entries: { label, look, shape }; shape "line" or the shape of a point. */
  function legend(parent, entries) {
    const node = html("ul", { class: "figure-legend" });
    parent.append(node);
    const set = (list) =>
      node.replaceChildren(
        ...list.map(({ label, look = "", shape = "line" }) => {
          const sign = shape === "line" ? svg("line", { class: `figure-line ${look}`, x1: -9, x2: 9 }) : mark(shape, 5);
          const picture = svg("svg", { width: 20, height: 14, viewBox: "-10 -7 20 14", class: look, "aria-hidden": "true" }, sign);
          return html("li", null, picture, label);
        }),
      );
    set(entries);
    return { node, set };
  }

  /* Calls step() every `interval` milliseconds until it returns false; where motion is not wanted, all at once.
     Returns a function that stops it. */
  function play(step, interval = 400, most = 1000) {
    if (reducedMotion()) {
      for (let k = 0; k < most && step() !== false; k++);
      return () => {};
    }
    const timer = setInterval(() => step() === false && clearInterval(timer), interval);
    return () => clearInterval(timer);
  }

  return {
    register, figure, chart, controls, note, table, legend, play, mark,
    html, svg, scale, ticks, logTicks, format, fixed, clamp, reducedMotion,
  };
})();
