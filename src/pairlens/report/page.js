// @ts-check
"use strict";

/** @typedef {Float32Array | Float64Array} Numbers */
/** @typedef {{key: string, title: string, axes: string[], columns: Packed[]}} View */
/** @typedef {{f4: string} | {f8: string}} Packed */
/** @typedef {{kind: string, a: Int32Array, b: Int32Array, judged: Uint8Array[], listed: Uint8Array}} Pairs */

(() => {
  // Elements that the page may lack, and whatever kind of element the page has under that name.
  /** @param {string} id @returns {any} */
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;
  const Plotly = /** @type {any} */ (globalThis).Plotly;
  const data = JSON.parse(byId("data").textContent);
  const GAP = NaN;
  // The golden ratio spreads the points of a strip evenly, and always in the same way.
  const SPREAD = 0.6180339887498949;
  const PRINT_SIZE = { width: 330, height: 318 };

  // ---- numbers from base64

  /** @param {string} text */
  const bytes = (text) => {
    const raw = atob(text);
    const result = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) result[i] = raw.charCodeAt(i);
    return result;
  };
  /** @param {string} text */
  const floats = (text) => new Float32Array(bytes(text).buffer);
  /** @param {Packed} packed @returns {Numbers} */
  const column = (packed) => ("f4" in packed ? floats(packed.f4) : new Float64Array(bytes(packed.f8).buffer));
  /** @param {string} text */
  const integers = (text) => new Int32Array(bytes(text).buffer);

  const n = data.n;
  const rowNumbers = data.rows === null ? null : integers(data.rows);
  /** @param {number} i @returns {string} */
  const nameOf = (i) => (data.ids === null ? String(rowNumbers === null ? i : rowNumbers[i]) : data.ids[i]);
  const colours = data.colours;
  const codes = colours && colours.codes ? bytes(colours.codes) : null;
  const scale = colours && colours.numbers ? floats(colours.numbers) : null;
  const label = colours && colours.label ? integers(colours.label) : null;
  /** @param {number} i @returns {string} */
  const labelOf = (i) => {
    if (scale) return Number.isNaN(scale[i]) ? "no label" : short(scale[i]);
    if (label && label[i] >= 0) return colours.labels[label[i]];
    return codes ? colours.legend[codes[i]] : "";
  };
  /** @param {number} value */
  const short = (value) => String(Number(value.toPrecision(4))).replaceAll("-", "\u2212");

  // Rows of one colour make one trace.
  /** @param {number} i */
  const groupOf = (i) => (codes ? codes[i] : scale && Number.isNaN(scale[i]) ? 1 : 0);
  /** @type {number[][]} */
  const groups = [];
  for (let g = 0; g < (codes ? colours.legend.length : scale ? 2 : 1); g++) groups.push([]);
  for (let i = 0; i < n; i++) groups[groupOf(i)].push(i);
  const hiddenGroups = new Set();

  /** @type {Pairs[]} */
  const pairs = data.pairs.map((/** @type {any} */ set) => ({
    kind: set.kind,
    a: integers(set.a),
    b: integers(set.b),
    judged: set.judged.map(bytes),
    listed: bytes(set.listed),
  }));
  // Points come first: of the pairs only those most violated are drawn, others when they are asked for.
  /** @type {Record<string, boolean>} */
  const shown = { must: true, cannot: true, prefer: true, listed: true, satisfied: false, violated: false };

  const canvas = document.createElement("canvas");
  const TRACE = canvas.getContext("webgl2") || canvas.getContext("webgl") ? "scattergl" : "scatter";

  const pixelSize = n <= 300 ? 8 : n <= 3000 ? 6 : n <= 20000 ? 4 : 2.5;
  const opacity = n <= 300 ? 0.85 : n <= 3000 ? 0.7 : n <= 20000 ? 0.6 : 0.5;

  /** @param {string} name */
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  /** @param {number} g */
  const groupColour = (g) => {
    if (!codes) return css(scale ? "--grey" : "--point");
    return g >= colours.legend.length - colours.grey ? css("--grey") : css(`--c${g}`);
  };

  // ---- the two panels

  class Panel {
    /** @param {View} view @param {number} place */
    constructor(view, place) {
      this.plot = byId(`${view.key}-plot`);
      this.overlay = byId(`${view.key}-overlay`);
      this.title = view.title;
      this.axisNames = view.axes;
      this.columns = view.columns.map(column);
      this.place = place;
      this.axes = [0, Math.min(1, this.columns.length - 1)];
      this.strip = this.columns.length === 1 ? this.stripHeights() : null;
      /** @type {number[]} */
      this.mark = [];
      this.listening = false;
      for (const [which, id] of /** @type {[string, number][]} */ ([
        ["x", 0],
        ["y", 1],
      ])) {
        const select = byId(`${view.key}-${which}`);
        if (select)
          select.addEventListener("change", () => {
            this.axes[id] = Number(select.value);
            this.revision++;
            this.draw();
          });
      }
      this.revision = 0;
    }

    stripHeights() {
      if (scale) {
        const known = scale.filter((value) => !Number.isNaN(value));
        const low = known.reduce((a, b) => Math.min(a, b), Infinity),
          high = known.reduce((a, b) => Math.max(a, b), -Infinity);
        return scale.map((value) => (Number.isNaN(value) ? low - 0.1 * (high - low) : value));
      }
      return Float32Array.from(
        { length: n },
        (_, i) => (codes ? -codes[i] : 0) + 0.7 * (((i + 1) * SPREAD) % 1) - 0.35,
      );
    }

    get x() {
      return this.columns[this.axes[0]];
    }
    /** @returns {Numbers} */
    get y() {
      return this.strip || this.columns[this.axes[1]];
    }

    traces() {
      const { x, y } = this;
      /** @param {Numbers} like @param {Iterable<number>} values */
      const packed = (like, values) =>
        like instanceof Float32Array ? Float32Array.from(values) : Float64Array.from(values);
      /** @type {object[]} */
      const found = groups.map((rows, g) => ({
        type: TRACE,
        mode: "markers",
        meta: "rows",
        hoverinfo: "none",
        x: packed(
          x,
          rows.map((i) => x[i]),
        ),
        y: packed(
          y,
          rows.map((i) => y[i]),
        ),
        visible: !hiddenGroups.has(g),
        marker: {
          size: printing ? 0.65 * pixelSize : pixelSize,
          opacity,
          line: { width: 0 },
          ...this.markerColour(rows, g),
        },
      }));
      for (const set of pairs) {
        for (const status of ["satisfied", "violated", "listed"]) {
          const xs = [],
            ys = [],
            sizes = [];
          let count = 0;
          for (let k = 0; k < set.a.length; k++) {
            const own = set.listed[k] && shown.listed ? "listed" : set.judged[this.place][k] ? "satisfied" : "violated";
            if (own !== status) continue;
            count++;
            xs.push(x[set.a[k]], x[set.b[k]], GAP);
            ys.push(y[set.a[k]], y[set.b[k]], GAP);
            sizes.push(
              ...(set.kind === "prefer" ? [9, 0, 0] : [5, 5, 0]).map((size) => (printing ? 0.65 * size : size)),
            );
          }
          const satisfied = status === "satisfied";
          const colour = css(satisfied ? "--satisfied" : "--violated");
          found.push({
            type: TRACE,
            mode: "lines+markers",
            meta: `${set.kind} ${status}`,
            hoverinfo: "skip",
            x: packed(x, xs),
            y: packed(y, ys),
            visible: shown[set.kind] && shown[status],
            opacity: Math.min(satisfied ? 0.6 : 0.9, Math.max(0.15, 60 / count)),
            line: { color: colour, width: satisfied ? 1.2 : 1.6, dash: set.kind === "cannot" ? "dash" : "solid" },
            marker: { color: colour, size: sizes, line: { width: 0 } },
          });
        }
      }
      return found;
    }

    /** @param {number[]} rows @param {number} g */
    markerColour(rows, g) {
      if (!scale || g === 1) return { color: groupColour(g) };
      return {
        color: Float32Array.from(rows, (i) => scale[i]),
        colorscale: [
          [0, css("--low")],
          [0.5, css("--middle")],
          [1, css("--high")],
        ],
        showscale: this.place === 0,
        colorbar: { thickness: 10, len: 0.6, outlinewidth: 0, tickfont: { color: css("--soft") } },
      };
    }

    layout() {
      /** @param {string} text */
      const axis = (text) => ({
        title: { text, font: { size: 12, color: css("--soft") }, standoff: 6 },
        tickfont: { size: 11, color: css("--soft") },
        gridcolor: css("--grid"),
        zeroline: false,
        nticks: 6,
        showline: false,
        automargin: true,
        uirevision: this.revision,
      });
      const layout = {
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        showlegend: false,
        hovermode: "closest",
        dragmode: "zoom",
        margin: { l: 8, r: 8, t: 10, b: 8 },
        font: { family: css("--sans"), color: css("--ink") },
        modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--soft"), activecolor: css("--accent") },
        xaxis: axis(this.axisNames[this.axes[0]]),
        yaxis: axis(this.strip ? (scale ? "label" : "") : this.axisNames[this.axes[1]]),
        uirevision: this.revision,
        hoverdistance: 12,
      };
      if (this.strip && !scale)
        Object.assign(layout.yaxis, { showticklabels: false, showgrid: false, fixedrange: true });
      else if (!this.strip && byId("equal").checked) Object.assign(layout.yaxis, { scaleanchor: "x", scaleratio: 1 });
      // Words of the data, which hold letters and hyphens alone: Plotly reads markup here.
      if (this.place === 0 && this.axes.join() === "0,1" && !this.strip)
        Object.assign(layout, {
          annotations: data.islands.map((/** @type {any} */ { x, y, words }) => ({
            ...{ x, y, text: words.join(" · "), showarrow: false, captureevents: false, borderpad: 2 },
            ...{ font: { size: 12, color: css("--ink") }, bgcolor: css("--panel"), opacity: 0.85 },
          })),
        });
      return printing ? { ...layout, ...PRINT_SIZE, autosize: false } : { ...layout, autosize: true };
    }

    draw() {
      const config = {
        responsive: true,
        displaylogo: false,
        modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
        toImageButtonOptions: { filename: this.plot.id, scale: 2 },
      };
      const done = Plotly.react(this.plot, this.traces(), this.layout(), config);
      if (!this.listening) {
        this.listening = true;
        this.plot.on("plotly_hover", (/** @type {any} */ event) => this.hover(event));
        this.plot.on("plotly_unhover", () => {
          tip.hidden = true;
          mark(pinned);
        });
        this.plot.on("plotly_relayouting", () => this.drawMark());
        this.plot.on("plotly_afterplot", () => this.drawMark());
      }
      return done;
    }

    /** @param {any} event */
    hover(event) {
      const point = event.points[0];
      const rows = groups[point.curveNumber];
      if (!rows) return;
      const i = rows[point.pointNumber];
      mark([i]);
      tell(i, this, event.event);
    }

    drawMark() {
      this.overlay.replaceChildren();
      const full = this.plot._fullLayout;
      if (!this.mark.length || !full || !full.xaxis) return;
      /** @type {number[][]} */
      const at = this.mark.map((i) => [
        full.xaxis._offset + full.xaxis.d2p(this.x[i]),
        full.yaxis._offset + full.yaxis.d2p(this.y[i]),
      ]);
      /** @param {number[]} place */
      const inside = ([px, py]) =>
        px >= full.xaxis._offset &&
        px <= full.xaxis._offset + full.xaxis._length &&
        py >= full.yaxis._offset &&
        py <= full.yaxis._offset + full.yaxis._length;
      /** @param {string} name @param {Record<string, number>} attributes */
      const add = (name, attributes) => {
        const element = document.createElementNS("http://www.w3.org/2000/svg", name);
        for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
        this.overlay.append(element);
      };
      if (at.length === 2 && at.every(inside)) add("line", { x1: at[0][0], y1: at[0][1], x2: at[1][0], y2: at[1][1] });
      for (const [cx, cy] of at.filter(inside)) add("circle", { cx, cy, r: 7 });
    }
  }

  // ---- tooltip and marks; texts from the data are only ever set as text

  const tip = byId("tip");
  /** @type {number[]} */
  let pinned = [];
  /** @param {number[]} rows */
  const mark = (rows) => {
    for (const panel of panels) {
      panel.mark = rows;
      panel.drawMark();
    }
  };

  /** @param {number} i @param {Panel} panel @param {MouseEvent} event */
  const tell = (i, panel, event) => {
    /** @param {string} name @param {string} text */
    const line = (name, text) => {
      const element = document.createElement(name);
      element.textContent = text;
      return element;
    };
    tip.replaceChildren(line("strong", nameOf(i)));
    if (colours) tip.append(line("span", labelOf(i)));
    const names = panel.strip ? [0] : panel.axes;
    for (const k of names)
      tip.append(line("span", `${panel.axisNames[k].replace(/ \(.*/, "")}: ${short(panel.columns[k][i])}`));
    const inPairs = pairsOf(i);
    if (inPairs) tip.append(line("span", inPairs));
    if (data.beside !== null) tellBeside(i, line);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = event.clientX + 14 + box.width > innerWidth ? event.clientX - 14 - box.width : event.clientX + 14;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 4))}px`;
  };

  // What people know of the row: its picture, and its cells where they are on the page.
  /** @param {number} i @param {(name: string, text: string) => HTMLElement} line */
  const tellBeside = (i, line) => {
    const { names, cells, pictures } = data.beside;
    if (pictures[i]) {
      const image = document.createElement("img");
      image.src = pictures[i];
      image.alt = "";
      tip.prepend(image);
    }
    names.forEach((/** @type {string} */ name, /** @type {number} */ k) => {
      if (cells[k][i]) tip.append(line("span", `${name}: ${cells[k][i]}`));
    });
  };

  /** @param {number} i */
  const pairsOf = (i) => {
    let all = 0,
      violated = 0;
    for (const set of pairs) {
      for (let k = 0; k < set.a.length; k++) {
        if (set.a[k] !== i && set.b[k] !== i) continue;
        all++;
        if (!set.judged[0][k]) violated++;
      }
    }
    return all ? `in ${all} ${all === 1 ? "pair" : "pairs"}${violated ? `, ${violated} violated` : ""}` : null;
  };

  // ---- controls

  let printing = false;
  const drawAll = () => Promise.all(panels.map((panel) => panel.draw()));

  for (const box of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input[data-show]"))) {
    box.checked = shown[box.dataset.show ?? ""];
    box.addEventListener("change", () => {
      shown[box.dataset.show ?? ""] = box.checked;
      drawAll();
    });
  }

  byId("equal").checked = data.equal;
  byId("equal").addEventListener("change", () => {
    for (const panel of panels) panel.revision++;
    drawAll();
  });

  const legend = byId("legend");
  const drawLegend = () => {
    if (!legend || !codes) return;
    legend.replaceChildren(
      ...colours.legend.map((/** @type {string} */ text, /** @type {number} */ g) => {
        const item = document.createElement("li"),
          button = document.createElement("button");
        const dot = document.createElement("span"),
          name = document.createElement("span"),
          size = document.createElement("small");
        dot.className = "dot";
        dot.style.background = groupColour(g);
        name.textContent = text;
        size.textContent = colours.counts[g].toLocaleString("en");
        button.type = "button";
        button.setAttribute("aria-pressed", String(!hiddenGroups.has(g)));
        button.append(dot, name, size);
        button.addEventListener("click", () => {
          if (!hiddenGroups.delete(g)) hiddenGroups.add(g);
          button.setAttribute("aria-pressed", String(!hiddenGroups.has(g)));
          drawAll();
        });
        item.append(button);
        return item;
      }),
    );
  };

  const find = byId("find");
  find.addEventListener("input", () => {
    const wanted = find.value.trim();
    const found = byId("found");
    let row = -1;
    if (wanted !== "") {
      for (let i = 0; i < n && row < 0; i++) if (nameOf(i) === wanted) row = i;
      for (let i = 0; i < n && row < 0; i++) if (nameOf(i).startsWith(wanted)) row = i;
    }
    pinned = row < 0 ? [] : [row];
    mark(pinned);
    const text = row < 0 ? "no such row is drawn" : nameOf(row);
    found.textContent = wanted === "" ? "" : text;
  });

  for (const button of /** @type {NodeListOf<HTMLButtonElement>} */ (document.querySelectorAll("button[data-pair]"))) {
    button.addEventListener("click", () => {
      const row = /** @type {HTMLElement} */ (button.closest("tr")),
        was = row.classList.contains("shown");
      for (const other of document.querySelectorAll("tr.shown")) other.classList.remove("shown");
      for (const other of document.querySelectorAll("button[data-pair]")) other.setAttribute("aria-pressed", "false");
      row.classList.toggle("shown", !was);
      button.setAttribute("aria-pressed", String(!was));
      pinned = was ? [] : (button.dataset.pair ?? "").split(" ").map(Number);
      mark(pinned);
      if (!was) byId("content").scrollIntoView({ block: "start" });
    });
  }

  // ---- light, dark and paper

  const toggle = byId("theme");
  /** @param {string} theme */
  const setTheme = (theme) => {
    root.dataset.theme = theme;
    toggle.textContent = theme === "dark" ? "Light" : "Dark";
    toggle.setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colours`);
    drawLegend();
    return drawAll();
  };
  toggle.addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    setTheme(chosen);
  });
  const system = matchMedia("(prefers-color-scheme: dark)");
  /** @type {string | null} */
  let chosen = null;
  const wantedTheme = () => chosen || (system.matches ? "dark" : "light");
  system.addEventListener("change", () => {
    if (!printing) setTheme(wantedTheme());
  });
  /** @param {boolean} on */
  const setPrinting = (on) => {
    if (printing === on) return;
    printing = on;
    setTheme(on ? "light" : wantedTheme());
  };
  const paper = matchMedia("print");
  paper.addEventListener("change", () => setPrinting(paper.matches));
  addEventListener("beforeprint", () => setPrinting(true));
  addEventListener("afterprint", () => setPrinting(paper.matches));

  /** @type {Panel[]} */
  const panels = data.views.map((/** @type {View} */ view, /** @type {number} */ place) => new Panel(view, place));
  setTheme(wantedTheme()).then(() => {
    root.dataset.ready = "true";
  });
})();
