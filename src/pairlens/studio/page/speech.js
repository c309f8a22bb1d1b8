// @ts-check
/** What is said to those who listen rather than look. */

import { byId, counted, page } from "./dom.js";

/** @typedef {import("./rowview.js").Row} Row */
/** @typedef {import("./question.js").Question} Question */

/** Cells and letters of a row that are said; all of them can be read on the page. */
const CELLS = 8;
const LETTERS = 200;
/** What comes within this time is said as one: a reader may drop all but the last of several. */
const TOGETHER = 50;

/** @type {string[]} */
const pending = [];

/** Say something, after what else is to be said now. @param {string} text */
export function say(text) {
  if (!text || pending.includes(text)) return;
  pending.push(text);
  if (pending.length > 1) return;
  setTimeout(() => {
    // While a dialog is open, readers know nothing outside of it.
    (page().querySelector("dialog[open] .said") ?? byId("said")).textContent = pending.join(" ");
    pending.length = 0;
  }, TOGETHER);
}

/** @param {string} text */
function shortened(text) {
  return text.length > LETTERS ? `${text.slice(0, LETTERS)} …` : text;
}

/** A row in words. @param {Row} row */
export function rowWords(row) {
  const cells = row.cells ?? [];
  const parts = cells.slice(0, CELLS).map(([name, value]) => `${name} ${shortened(value) || "empty"}`);
  if (cells.length > CELLS) parts.push(`${counted(cells.length - CELLS, "more cell")}`);
  if (row.pixels || row.picture) parts.push("a picture");
  if (row.picture === false) parts.push("no picture");
  if (row.line) parts.push(`a line of ${counted(row.line.length, "number")}`);
  for (const [name, text] of row.texts ?? []) parts.push(`${name} ${shortened(text) || "empty"}`);
  return (parts.length ? `${row.id}: ${parts.join(", ")}` : row.id).replace(/[.\s]*$/, ".");
}

/** What a question is about, in words. @param {Question} question */
export function questionWords({ kind, rows, names }) {
  if (kind === "same") return rows.map(rowWords).join(" ");
  if (kind === "prefer") return rows.map((row, side) => `${side ? "Right" : "Left"}, ${rowWords(row)}`).join(" ");
  // Who has named a group knows what is in it.
  const groups = rows.slice(1).map((row, k) => `${k + 1}: ${names[k] ? `${names[k]}.` : rowWords(row)}`);
  return [rowWords(rows[0]), "Groups.", ...groups].join(" ");
}
