// @ts-check
/** The map of all rows: pan, zoom, point at, draw round, and the way from one fit to the next. */

import { append, counted, darkness, h, percent } from "./dom.js";
import { Fingers } from "./gestures.js";
import { Grid } from "./grid.js";
import { Legend, groupName } from "./legend.js";
import { markPicture } from "./marks.js";
import { paintPoints } from "./paint.js";
import { GlScatter, makeScatter } from "./scatter.js";

/** @typedef {import("./legend.js").Group} Group */

const MORPH = 400;
const FLASH = 1600;
const REACH = 10;
const STEP = 1.25;
/** How far one can zoom in, from the whole map. */
const CLOSEST = 1000;

/** @param {ArrayBuffer} buffer @returns {{version: number, answers: number, n: number, places: Float32Array}} */
export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return { ...head, places: new Float32Array(buffer, 4 + length, 2 * head.n) };
}

/** The group of every row and how sure it is. @param {ArrayBuffer} buffer */
export function unpackCertain(buffer) {
  const n = buffer.byteLength / 3;
  return { numbers: new Uint16Array(buffer, 0, n), sure: new Uint8Array(buffer, 2 * n, n) };
}

export class MapView {
  /**
   * @param {HTMLElement} root
   * @param {object} options
   * @param {(row: number) => Promise<HTMLElement | null>} options.describe
   * @param {(rows: number[]) => void} options.selected
   * @param {(group: Group) => void} options.rename
   * @param {() => void} options.tell say what is on the map
   * @param {(row: number) => void} options.pick a row was pressed
   */
  constructor(root, { describe, selected, rename, tell, pick }) {
    this.root = root;
    this.describe = describe;
    this.selected = selected;
    this.pick = pick;
    /** @type {import("./paint.js").Certain | null} */
    this.certain = null;
    /** @type {import("./paint.js").Column | null} */
    this.column = null;
    /** @type {((row: number) => boolean) | null} rows that are not faint */
    this.wanted = null;
    this.canvas = /** @type {HTMLCanvasElement} */ (
      h("canvas", {
        class: "points",
        tabindex: "0",
        role: "img",
        "aria-label":
          "Map of all rows; arrow keys move it, plus and minus zoom. The button In words says what is on it.",
      })
    );
    this.marks = /** @type {HTMLCanvasElement} */ (h("canvas", { class: "marks", "aria-hidden": "true" }));
    this.islands = h("div", { class: "islands", "aria-hidden": "true" });
    this.tip = h("div", { class: "tip", hidden: true, role: "status" });
    this.words = h("p", { class: "map-words" }, "The map is being made …");
    this.note = h("p", { class: "map-note" });
    this.sure = h("p", { class: "map-sure", "data-testid": "certainty" });
    this.legend = new Legend(rename);
    this.lasso = h(
      "button",
      { type: "button", class: "quiet", "aria-pressed": "false", title: "Draw round rows" },
      "Select",
    );
    const whole = h("button", { type: "button", class: "quiet", title: "Show all rows" }, "Whole map");
    const nearer = h(
      "button",
      { type: "button", class: "quiet", title: "Zoom in", "aria-label": "Zoom in", onclick: () => this.zoom(STEP) },
      "+",
    );
    const farther = h(
      "button",
      {
        type: "button",
        class: "quiet",
        title: "Zoom out",
        "aria-label": "Zoom out",
        onclick: () => this.zoom(1 / STEP),
      },
      "−",
    );
    const words = h(
      "button",
      { type: "button", class: "quiet", title: "What is on the map, in words", onclick: tell },
      "In words",
    );
    root.replaceChildren();
    append(root, [
      h(
        "div",
        { class: "map-head" },
        h("h2", {}, "Map"),
        this.words,
        h("div", { class: "map-tools" }, farther, nearer, this.lasso, whole, words),
      ),
      h("div", { class: "map-frame" }, this.canvas, this.marks, this.islands, this.tip),
      this.note,
      this.sure,
      this.legend.root,
    ]);
    this.scatter = makeScatter(this.canvas);
    if (this.scatter instanceof GlScatter) this.scatter.restored = () => this.redraw();
    /** @type {Float32Array} */
    this.from = new Float32Array(0);
    /** @type {Float32Array} */
    this.to = this.from;
    /** @type {number} */
    this.hovered = -1;
    this.waiting = false;
    this.grid = new Grid(this.to);
    this.camera = { x: 0, y: 0, zoom: 1 };
    /** @type {Group[]} */
    this.groups = [];
    /** @type {Map<number, Group>} */
    this.groupOf = new Map();
    /** @type {{rows: number[], until: number, strong: boolean}[]} */
    this.flashes = [];
    /** @type {number[]} */
    this.pointed = [];
    /** @type {[number, number][]} */
    this.path = [];
    this.began = -Infinity;
    this.side = 1;
    this.moved = false;
    this.zoomed = false;
    this.dragging = false;
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.dark = darkness();
    this.dark.addEventListener("change", () => this.paint());
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    whole.addEventListener("click", () => this.fit());
    this.lasso.addEventListener("click", () => this.select(!this.selecting));
    this.listen();
  }

  /** Show a new fit. @param {{answers: number, n: number, places: Float32Array}} fit */
  show({ answers, n, places }) {
    const first = this.to.length !== places.length;
    this.from = first ? places : this.current();
    this.to = places;
    this.grid = new Grid(places);
    this.began = first || this.calm.matches || this.dragging ? -Infinity : performance.now();
    this.root.dataset.morph = String(this.began === -Infinity ? 0 : MORPH);
    this.root.dataset.points = String(n);
    this.root.dataset.answers = String(answers);
    if (first) this.resize();
    if (first || !this.moved) this.fit();
    this.paint();
  }

  /** Write words where the islands are that they belong to. @param {{x: number, y: number, words: string[]}[]} islands */
  name(islands) {
    this.islands.replaceChildren(
      ...islands.map(({ x, y, words }) => h("span", { "data-x": x, "data-y": y }, words.join(" · "))),
    );
    this.redraw();
  }

  /** Places as they are on the way from one fit to the next. */
  current() {
    const share = this.share();
    if (share >= 1) return this.to;
    return this.to.map((value, k) => this.from[k] + share * (value - this.from[k]));
  }

  share() {
    const t = Math.min(1, (performance.now() - this.began) / MORPH);
    return t * t * (3 - 2 * t);
  }

  /** @param {Group[]} groups @param {import("./paint.js").Certain | null} [certain] */
  colour(groups, certain = this.certain) {
    this.groups = groups;
    this.certain = certain;
    this.paint();
    this.legend.show(groups);
  }

  /** Colours, sizes and shapes of all points. */
  paint() {
    const n = this.to.length / 2;
    this.groupOf = new Map(
      this.groups.flatMap((group) => group.rows.filter((row) => row < n).map((row) => [row, group])),
    );
    const { groups, certain, column, wanted } = this;
    const painted = paintPoints({ n, groups, certain, column, wanted, dark: this.dark.matches });
    const [r, g, b] = (getComputedStyle(this.root).backgroundColor.match(/[\d.]+/g) ?? []).map(
      (part) => Number(part) / 255,
    );
    this.scatter.load({ from: this.from, to: this.to, ...painted, paper: [r, g, b] });
    this.note.textContent = this.scatter.sampled
      ? `This browser has no WebGL: the map shows a sample of ${this.scatter.sampled.toLocaleString("en")} of ${counted(n, "row")}.`
      : "";
    this.redraw();
  }

  /** Ring rows for a moment, as after an answer. @param {number[]} rows @param {boolean} [strong] */
  flash(rows, strong = true) {
    this.flashes.push({ rows, until: performance.now() + FLASH, strong });
    this.redraw();
  }

  /** Ring rows while the person points at them elsewhere. @param {number[]} rows */
  point(rows) {
    this.pointed = rows;
    this.redraw();
  }

  resize() {
    const ratio = devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    for (const canvas of [this.canvas, this.marks]) {
      canvas.width = Math.max(1, Math.round(width * ratio));
      canvas.height = Math.max(1, Math.round(height * ratio));
    }
    // Whoever has moved the map sees the same part of it on a screen that was turned.
    const side = Math.max(1, Math.min(width, height));
    this.camera.zoom *= side / this.side;
    this.side = side;
    this.hideTip();
    if (!this.moved) this.fit();
    this.redraw();
  }

  /** Whether a drag draws round rows. */
  get selecting() {
    return this.lasso.getAttribute("aria-pressed") === "true";
  }

  /** Begin or end drawing round rows. @param {boolean} on */
  select(on) {
    this.lasso.setAttribute("aria-pressed", String(on));
    this.hold();
  }

  /** A finger scrolls the page over the whole map, and moves one that was zoomed. */
  hold() {
    this.canvas.classList.toggle("held", this.zoomed || this.selecting);
  }

  /** Let the camera see all rows. */
  fit() {
    this.moved = false;
    this.zoomed = false;
    this.hold();
    const { left, right, low, high } = this.grid;
    this.camera.x = (left + right) / 2;
    this.camera.y = (low + high) / 2;
    this.camera.zoom = this.whole();
    this.redraw();
  }

  /** The zoom that shows all rows. */
  whole() {
    const { left, right, low, high } = this.grid;
    const width = Math.max(1, this.canvas.clientWidth);
    const height = Math.max(1, this.canvas.clientHeight);
    return 0.92 * Math.min(width / (right - left || 1), height / (high - low || 1));
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    const share = this.share();
    this.scatter.draw(this.camera, share);
    this.drawMarks();
    const now = performance.now();
    this.flashes = this.flashes.filter((flash) => flash.until > now);
    if (share < 1 || (this.flashes.length && !this.calm.matches)) this.redraw();
    else if (this.flashes.length) setTimeout(() => this.redraw(), 100);
  }

  drawMarks() {
    // Without the graphics card: where that is software, Chromium goes on showing a lasso that was cleared.
    const pen = /** @type {CanvasRenderingContext2D} */ (this.marks.getContext("2d", { willReadFrequently: true }));
    const ratio = devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.marks.width, this.marks.height);
    const ink = this.dark.matches ? "#f2f0ea" : "#1d2430";
    const now = performance.now();
    const places = this.current();
    for (const { rows, until } of this.flashes) {
      const age = 1 - (until - now) / FLASH;
      const swell = this.calm.matches ? 9 : 7 + 10 * Math.min(1, 2 * age);
      pen.globalAlpha = this.calm.matches ? 1 : Math.max(0, 1 - age);
      this.ring(pen, places, rows, swell, ink, 2.5);
    }
    pen.globalAlpha = 1;
    this.ring(pen, places, this.pointed, 9, ink, 2);
    for (const island of /** @type {HTMLElement[]} */ ([...this.islands.children])) {
      const [x, y] = this.screen(Number(island.dataset.x), Number(island.dataset.y));
      island.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px) translate(-50%, -50%)`;
    }
    if (this.path.length) {
      pen.strokeStyle = ink;
      pen.fillStyle = this.dark.matches ? "rgb(255 255 255 / .08)" : "rgb(0 0 0 / .06)";
      pen.lineWidth = 1.5;
      pen.beginPath();
      this.path.forEach(([x, y], k) => (k ? pen.lineTo(...this.screen(x, y)) : pen.moveTo(...this.screen(x, y))));
      pen.closePath();
      pen.fill();
      pen.stroke();
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {Float32Array} places @param {number[]} rows @param {number} radius @param {string} ink @param {number} width */
  ring(pen, places, rows, radius, ink, width) {
    pen.strokeStyle = ink;
    pen.lineWidth = width;
    for (const row of rows) {
      if (2 * row >= places.length) continue;
      const [x, y] = this.screen(places[2 * row], places[2 * row + 1]);
      pen.beginPath();
      pen.arc(x, y, radius, 0, 7);
      pen.stroke();
    }
  }

  /** @param {number} x @param {number} y @returns {[number, number]} */
  screen(x, y) {
    return [
      this.canvas.clientWidth / 2 + (x - this.camera.x) * this.camera.zoom,
      this.canvas.clientHeight / 2 - (y - this.camera.y) * this.camera.zoom,
    ];
  }

  /** @param {{clientX: number, clientY: number}} event @returns {[number, number]} */
  world(event) {
    const box = this.canvas.getBoundingClientRect();
    return [
      this.camera.x + (event.clientX - box.left - box.width / 2) / this.camera.zoom,
      this.camera.y - (event.clientY - box.top - box.height / 2) / this.camera.zoom,
    ];
  }

  /** @param {number} factor @param {[number, number]} [about] */
  zoom(factor, about = [this.camera.x, this.camera.y]) {
    this.moved = true;
    this.zoomed = true;
    this.hold();
    this.hideTip();
    const whole = this.whole();
    const now = Math.min(CLOSEST * whole, Math.max(whole / 2, this.camera.zoom * factor));
    factor = now / this.camera.zoom;
    this.camera.zoom = now;
    this.camera.x = about[0] + (this.camera.x - about[0]) / factor;
    this.camera.y = about[1] + (this.camera.y - about[1]) / factor;
    this.redraw();
  }

  listen() {
    const canvas = this.canvas;
    const fingers = new Fingers();
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.zoom(Math.exp(-event.deltaY / (event.deltaMode ? 25 : 400)), this.world(event));
      },
      { passive: false },
    );
    // Two fingers are for the map, also where one scrolls the page.
    canvas.addEventListener("touchstart", (event) => event.touches.length > 1 && event.preventDefault(), {
      passive: false,
    });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      fingers.press(event.pointerId, event.clientX, event.clientY);
      this.dragging = true;
      this.hideTip();
      canvas.setPointerCapture(event.pointerId);
      // A second finger zooms, and what the first one has drawn is forgotten.
      this.path = fingers.count === 1 && this.selecting ? [this.world(event)] : [];
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!fingers.count) return this.hover(event);
      const change = fingers.move(event.pointerId, event.clientX, event.clientY);
      if (!change) return;
      if (this.path.length) this.path.push(this.world(event));
      else if (!fingers.tapped) {
        this.moved = true;
        this.camera.x -= change.dx / this.camera.zoom;
        this.camera.y += change.dy / this.camera.zoom;
        if (change.factor !== 1) this.zoom(change.factor, this.world({ clientX: change.x, clientY: change.y }));
      }
      this.redraw();
    });
    const end = (/** @type {PointerEvent} */ event) => {
      if (!fingers.lift(event.pointerId)) return;
      this.dragging = false;
      const path = this.path;
      this.path = [];
      // The browser takes a finger that scrolls the page; that is neither a selection nor a tap.
      if (event.type === "pointercancel") this.hideTip();
      else if (path.length) {
        this.select(false);
        this.selected(this.grid.inside(path));
      } else if (fingers.tapped) this.press(event);
      this.redraw();
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    // A finger leaves as soon as it is lifted; what it pointed at stays until the next tap.
    canvas.addEventListener(
      "pointerleave",
      (event) => !fingers.count && event.pointerType !== "touch" && this.hideTip(),
    );
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const step = 40 / this.camera.zoom;
    const move = /** @type {Record<string, () => void>} */ ({
      ArrowLeft: () => (this.camera.x -= step),
      ArrowRight: () => (this.camera.x += step),
      ArrowUp: () => (this.camera.y += step),
      ArrowDown: () => (this.camera.y -= step),
      "+": () => this.zoom(STEP),
      "=": () => this.zoom(STEP),
      "-": () => this.zoom(1 / STEP),
    })[event.key];
    if (!move || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.moved = true;
    this.hideTip();
    move();
    this.redraw();
  }

  /** A click shows the row and asks where it belongs; of a finger, the second one. @param {PointerEvent} event */
  press(event) {
    const before = this.hovered;
    this.hover(event);
    if (this.hovered >= 0 && (event.pointerType !== "touch" || before === this.hovered)) this.pick(this.hovered);
  }

  /** @param {PointerEvent} event */
  async hover(event) {
    const [x, y] = this.world(event);
    const row = this.grid.nearest(x, y, REACH / this.camera.zoom);
    if (row === this.hovered) return;
    this.hovered = row;
    if (row < 0) return this.hideTip();
    this.point([row]);
    const content = await this.describe(row);
    if (this.hovered !== row || !content) return;
    const group = this.groupOf.get(row);
    this.tip.replaceChildren(content);
    const likely = group ? null : this.groups.find((each) => each.shown === this.certain?.numbers[row]);
    if (group) this.tip.append(h("p", { class: "group-of" }, markPicture(group.shown), groupName(group)));
    else if (likely)
      this.tip.append(
        h(
          "p",
          { class: "group-of" },
          markPicture(likely.shown),
          `${groupName(likely)}, ${percent((this.certain?.sure[row] ?? 0) / 255)} sure`,
        ),
      );
    this.tip.hidden = false;
    const [left, top] = this.screen(this.to[2 * row], this.to[2 * row + 1]);
    const width = this.canvas.clientWidth;
    this.tip.style.left = `${Math.max(0, Math.min(left + 14, width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${top > this.canvas.clientHeight / 2 ? top - this.tip.offsetHeight - 14 : top + 14}px`;
  }

  hideTip() {
    this.hovered = -1;
    this.tip.hidden = true;
    this.point([]);
  }
}
