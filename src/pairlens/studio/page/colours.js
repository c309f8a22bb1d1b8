// @ts-check
/** Colours of groups: told apart by most eyes, in light and in dark; after ten they come again, and names tell them apart. */

/** @type {[number, number, number][]} */
export const PALETTE = [
  [47, 125, 116],
  [217, 115, 63],
  [92, 107, 192],
  [192, 80, 120],
  [140, 160, 50],
  [70, 150, 200],
  [165, 115, 80],
  [150, 90, 170],
  [210, 160, 40],
  [90, 130, 90],
];

/** @param {number} k place of a group in the list @returns {[number, number, number]} */
export function colourOf(k) {
  return PALETTE[k % PALETTE.length];
}

/** @param {number} k */
export function cssColour(k) {
  return `rgb(${colourOf(k).join(" ")})`;
}
