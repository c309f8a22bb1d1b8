// @ts-check
/** Colours, sizes and shapes of the points: by group and how sure that is, or by a column of the table. */

import { PALETTE, markOf } from "./marks.js";

/** @typedef {import("./legend.js").Group} Group */
/** @typedef {{numbers: Uint16Array, sure: Uint8Array}} Certain group of every row, 0 for none, and how sure it is, up to 255 */
/** @typedef {{numbers?: (number | null)[], names?: string[], codes?: number[]}} Column */

/** Colours of numbers from low to high. @type {import("./marks.js").Colour[]} */
const RAMP = [
  [53, 42, 135],
  [15, 92, 221],
  [6, 167, 198],
  [124, 191, 123],
  [240, 185, 73],
];
const FAINT = 0.1;

/** The colour of a share from 0 to 1. @param {number} share @returns {import("./marks.js").Colour} */
export function rampColour(share) {
  const place = Math.min(0.9999, Math.max(0, share)) * (RAMP.length - 1);
  const [low, high] = [RAMP[Math.floor(place)], RAMP[Math.floor(place) + 1]];
  return /** @type {any} */ (low.map((part, k) => Math.round(part + (place % 1) * (high[k] - part))));
}

/** The numbers between which the colours go: the outermost twentieths share the last colour. @param {(number | null)[]} numbers @returns {[number, number]} */
export function spread(numbers) {
  const known = /** @type {number[]} */ (numbers.filter((value) => value !== null)).sort((a, b) => a - b);
  const at = (/** @type {number} */ share) => known[Math.round(share * (known.length - 1))] ?? 0;
  return [at(0.05), at(0.95)];
}

/**
 * How opaque a point is of whose group one is so sure, from 0 to 255: a mere guess is faint.
 * @param {number} sure
 */
export function opacity(sure) {
  return Math.round(35 + 200 * Math.max(0, Math.min(1, (sure / 255 - 0.3) / 0.65)));
}

/**
 * @param {object} what
 * @param {number} what.n number of points
 * @param {Group[]} what.groups
 * @param {Certain | null} what.certain
 * @param {Column | null} what.column
 * @param {((row: number) => boolean) | null} what.wanted rows that are not faint
 * @param {boolean} what.dark
 */
export function paintPoints({ n, groups, certain, column, wanted, dark }) {
  const colours = new Uint8Array(4 * n);
  const sizes = new Float32Array(n);
  const shapes = new Uint8Array(n);
  const small = n > 50000 ? 1 : n > 5000 ? 2 : n > 1000 ? 3.5 : 5;
  const palette = dark ? PALETTE.dark : PALETTE.light;
  const grey = dark ? [150, 160, 175, n > 50000 ? 90 : 130] : [110, 120, 135, n > 50000 ? 80 : 120];
  sizes.fill(small);
  for (let row = 0; row < n; row++) colours.set(grey, 4 * row);
  if (column?.numbers) {
    const [low, high] = spread(column.numbers);
    column.numbers.forEach(
      (value, row) =>
        row < n && value !== null && colours.set([...rampColour((value - low) / (high - low || 1)), 220], 4 * row),
    );
  } else if (column?.codes)
    column.codes.forEach(
      (code, row) => row < n && code >= 0 && colours.set([...palette[code % palette.length], 220], 4 * row),
    );
  else if (certain?.numbers.length === n) {
    const byNumber = new Map(groups.map((group) => [group.shown, palette[(group.shown - 1) % palette.length]]));
    for (let row = 0; row < n; row++) {
      const colour = byNumber.get(certain.numbers[row]);
      if (colour) colours.set([...colour, opacity(certain.sure[row])], 4 * row);
    }
  }
  for (const group of column ? [] : groups) {
    const { shape, light, dark: bright } = markOf(group.shown);
    group.rows.forEach((row, m) => {
      if (row >= n) return;
      colours.set([...(dark ? bright : light), 255 * (0.55 + 0.45 * group.confidence[m])], 4 * row);
      sizes[row] = Math.max(10, small + 6);
      shapes[row] = shape + 1;
    });
  }
  if (wanted) for (let row = 0; row < n; row++) if (!wanted(row)) colours[4 * row + 3] *= FAINT;
  // Marks lie above the points that have none.
  const order = new Uint32Array(n);
  for (let k = 0, first = 0, last = n; k < n; k++) order[shapes[k] ? --last : first++] = k;
  return { colours, sizes, shapes, order };
}
