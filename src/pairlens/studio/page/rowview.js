// @ts-check
/** A row as what it is: a picture, a text, a line, a table. */

import { address, getBinary } from "./api.js";
import { append, h, svg } from "./dom.js";

/**
 * @typedef {object} Row
 * @property {number} row
 * @property {string} id
 * @property {[string, string][]} [cells]
 * @property {[string, string, number][]} [texts]
 * @property {[number, number, string]} [pixels]
 * @property {boolean} [picture]
 * @property {number[]} [line]
 * @property {[string, string][]} [numbers] cells that are folded, because they are many
 */
/** @typedef {{low: number, high: number, words: string}} LineScale */
/** @typedef {Record<string, number | boolean>} Typical difference of two numbers of a column that is large, or whether most words are the same */

const FOLD = 600;
const WIDE = 300;
const HIGH = 90;

/**
 * Columns in which rows differ.
 * @param {Row[]} rows
 * @returns {Set<string>}
 */
export function differing(rows) {
  const found = new Set();
  const first = rows[0]?.cells ?? [];
  first.forEach(([name, value], column) => {
    if (rows.some((row) => row.cells?.[column]?.[1] !== value)) found.add(name);
  });
  return found;
}

/**
 * Columns in which rows differ more than is usual: numbers more than nine of ten pairs of rows, words where most rows
 * have the same.
 * @param {Row[]} rows
 * @param {Typical} [typical]
 */
export function unusual(rows, typical = {}) {
  return new Set([...differing(rows)].filter((name) => distinction(rows, name, typical[name]) > 1));
}

/**
 * How much rows differ in a column: numbers by the difference that is large there, words by whether most are the same.
 * @param {Row[]} rows which differ there
 * @param {string} name
 * @param {number | boolean} [usual]
 */
function distinction(rows, name, usual) {
  if (typeof usual !== "number") return usual === false ? 1 : 2;
  const cells = rows.map((row) => row.cells?.find(([each]) => each === name)?.[1]);
  const values = cells.filter((cell) => cell).map(Number);
  return (Math.max(...values) - Math.min(...values)) / usual || 0;
}

/**
 * The names of all columns, those that tell rows apart first.
 * @param {Row[]} rows
 * @param {Typical} [typical]
 */
export function telling(rows, typical = {}) {
  const different = differing(rows);
  const by = new Map(
    rows[0]?.cells?.map(([name]) => [name, different.has(name) ? distinction(rows, name, typical[name]) : 0]),
  );
  return [...by.keys()].sort((a, b) => (by.get(b) ?? 0) - (by.get(a) ?? 0));
}

/** Cells one after the other. @param {Row["cells"]} cells */
export function smallCells(cells) {
  if (!cells?.length) return null;
  return h(
    "dl",
    { class: "mini" },
    cells.map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", { class: value === "" ? "empty" : null }, value || "empty")),
    ),
  );
}

/**
 * @param {Row} row
 * @param {object} options
 * @param {LineScale} [options.scale]
 * @param {boolean} [options.compact] without the table, where several rows are side by side
 * @returns {HTMLElement[]}
 */
export function pictureParts(row, { scale, compact = false } = {}) {
  const parts = [];
  if (row.pixels) parts.push(pixelPicture(row.pixels, row.id));
  if (row.picture !== undefined) parts.push(filePicture(row));
  for (const [name, text, cut] of row.texts ?? []) parts.push(textBlock(name, text, cut, compact));
  if (row.line && scale) parts.push(sparkline(row.line, scale, row.id));
  return parts;
}

/** @param {[number, number, string]} pixels @param {string} id */
function pixelPicture([height, width, data], id) {
  const canvas = /** @type {HTMLCanvasElement} */ (
    h("canvas", { class: `pixels${width <= 16 ? " tiny" : ""}`, role: "img", "aria-label": `picture of ${id}` })
  );
  canvas.width = width;
  canvas.height = height;
  const ink = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const image = new ImageData(width, height);
  ink.forEach((value, k) => image.data.set([255 - value, 255 - value, 255 - value, 255], 4 * k));
  canvas.getContext("2d")?.putImageData(image, 0, 0);
  return canvas;
}

/** @param {Row} row */
function filePicture(row) {
  const frame = h("div", { class: "picture" });
  const missing = (/** @type {string} */ words) => frame.replaceChildren(h("p", { class: "missing" }, words));
  if (!row.picture) {
    missing("This row has no picture.");
    return frame;
  }
  const name = `picture/${row.row}`;
  const image = /** @type {HTMLImageElement} */ (h("img", { alt: `picture of ${row.id}`, draggable: "false" }));
  const explain = (/** @type {Error} */ error) => missing(`No picture: ${error.message}.`);
  image.addEventListener("error", () => {
    missing("The picture cannot be shown.");
    getBinary(name).catch(explain);
  });
  address(name).then((place) => (image.src = place), explain);
  frame.append(image);
  return frame;
}

/** @param {string} name @param {string} text @param {number} cut @param {boolean} compact */
function textBlock(name, text, cut, compact) {
  const long = text.length > (compact ? FOLD / 3 : FOLD);
  const body = h(
    "div",
    {
      class: `text${long ? " folded" : ""}`,
      tabindex: long ? "0" : null,
      role: long ? "group" : null,
      "aria-label": long ? name : null,
    },
    text,
  );
  if (cut) append(body, [h("span", { class: "cut" }, ` … ${cut.toLocaleString("en")} more characters are not shown.`)]);
  const block = h("div", { class: "text-block" }, h("h4", {}, name), body);
  if (long) {
    const button = h("button", { type: "button", class: "quiet fold", "aria-expanded": "false" }, "Unfold");
    button.addEventListener("click", () => {
      const open = body.classList.toggle("open");
      button.setAttribute("aria-expanded", String(open));
      button.textContent = open ? "Fold" : "Unfold";
    });
    block.append(button);
  }
  return block;
}

/**
 * Heights of a line's points on common axes.
 * @param {number[]} line
 * @param {LineScale} scale
 */
export function linePoints(line, { low, high }) {
  const step = line.length > 1 ? WIDE / (line.length - 1) : 0;
  return line.map((value, k) => {
    const share = Math.min(1.06, Math.max(-0.06, (value - low) / (high - low)));
    return `${(k * step).toFixed(1)},${((1 - share) * HIGH).toFixed(1)}`;
  });
}

/** @param {number[]} line @param {LineScale} scale @param {string} id */
function sparkline(line, scale, id) {
  const picture = svg(
    "svg",
    {
      viewBox: `-4 -8 ${WIDE + 8} ${HIGH + 16}`,
      class: "line",
      role: "img",
      "aria-label": `${scale.words} of ${id}`,
      preserveAspectRatio: "none",
    },
    svg("line", {
      x1: 0,
      x2: WIDE,
      y1: HIGH * (1 - (0 - scale.low) / (scale.high - scale.low)),
      y2: HIGH * (1 - (0 - scale.low) / (scale.high - scale.low)),
      class: "axis",
    }),
    svg("polyline", { points: linePoints(line, scale).join(" ") }),
  );
  return h("figure", { class: "line-block" }, picture, h("figcaption", {}, scale.words));
}

/**
 * Two rows as an aligned table, the cells that differ unusually marked for the eye and for the ear.
 * @param {Row[]} rows
 * @param {Typical} [typical]
 * @param {boolean} [marked]
 * @returns {HTMLElement | null}
 */
export function comparison(rows, typical, marked = true) {
  if (!rows[0]?.cells?.length) return null;
  const different = marked ? unusual(rows, typical) : new Set();
  const body = rows[0].cells.map(([name], column) =>
    h(
      "tr",
      { class: different.has(name) ? "differs" : null },
      h(
        "th",
        { scope: "row" },
        name,
        different.has(name) ? h("span", { class: "visually-hidden" }, " (differs much)") : null,
      ),
      rows.map((row) => {
        const value = row.cells?.[column]?.[1] ?? "";
        return h("td", {}, value === "" ? h("span", { class: "empty" }, "empty") : value);
      }),
    ),
  );
  const head = h(
    "tr",
    {},
    h("td", {}),
    rows.map((row) => h("th", { scope: "col" }, row.id)),
  );
  return h(
    "div",
    { class: "table-frame", tabindex: "0", role: "region", "aria-label": "The rows side by side" },
    h("table", { class: "cells" }, h("thead", {}, head), h("tbody", {}, body)),
  );
}

let unfolded = false;

/**
 * Many numbers by name, for those who want to read them; once unfolded they stay so.
 * @param {Row[]} rows
 * @returns {HTMLElement | null}
 */
export function numbersTable(rows) {
  if (!rows[0]?.numbers?.length) return null;
  // Measured numbers nearly always differ: a mark on every cell would say nothing.
  const table = comparison(
    rows.map((row) => ({ ...row, cells: row.numbers })),
    {},
    false,
  );
  const block = /** @type {HTMLDetailsElement} */ (
    h("details", { class: "numbers", open: unfolded }, h("summary", {}, "The numbers"), table)
  );
  block.addEventListener("toggle", () => (unfolded = block.open));
  return block;
}

/** Texts of two rows scroll together, as far as each goes. @param {HTMLElement} root */
export function scrollTogether(root) {
  const texts = [...root.querySelectorAll(".text.folded")];
  let leader = /** @type {Element | null} */ (null);
  for (const text of texts) {
    text.addEventListener("scroll", () => {
      if (leader && leader !== text) return;
      leader = text;
      const share = text.scrollTop / Math.max(1, text.scrollHeight - text.clientHeight);
      for (const other of texts)
        if (other !== text) other.scrollTop = share * (other.scrollHeight - other.clientHeight);
      requestAnimationFrame(() => requestAnimationFrame(() => (leader = null)));
    });
  }
}
