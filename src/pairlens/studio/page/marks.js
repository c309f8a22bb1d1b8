// @ts-check
/**
 * Marks of groups: a colour and a shape, which stay with the number of the group. Neighbouring numbers differ in both,
 * and groups that share a shape have colours that colour-blind people tell apart, too.
 */

import { svg } from "./dom.js";

/** @typedef {[number, number, number]} Colour */

/** The colours on light and on dark paper, each hue in the same place. @type {{light: Colour[], dark: Colour[]}} */
export const PALETTE = {
  light: [
    [0, 116, 105],
    [150, 65, 1],
    [36, 78, 181],
    [114, 36, 36],
    [179, 140, 21],
    [232, 100, 148],
    [86, 160, 87],
    [89, 39, 115],
    [62, 157, 202],
    [113, 116, 24],
  ],
  dark: [
    [100, 250, 232],
    [219, 100, 14],
    [93, 136, 231],
    [195, 124, 119],
    [219, 186, 102],
    [237, 134, 167],
    [146, 208, 144],
    [188, 144, 215],
    [141, 213, 251],
    [225, 232, 105],
  ],
};

/** Outlines in a square from -1 to 1, downwards as on a screen. No divisor is common to their number and that of the colours. */
export const SHAPES = [
  "M.9 0A.9 .9 0 1 1 -.9 0A.9 .9 0 1 1 .9 0Z",
  "M-.8 -.8H.8V.8H-.8Z",
  "M0 -.95L1 .8H-1Z",
  "M0 -1.05L.9 0L0 1.05L-.9 0Z",
  "M-.33 -1H.33V-.33H1V.33H.33V1H-.33V.33H-1V-.33H-.33Z",
  "M0 .95L1 -.8H-1Z",
  "M-.47 -.94L0 -.47L.47 -.94L.94 -.47L.47 0L.94 .47L.47 .94L0 .47L-.47 .94L-.94 .47L-.47 0L-.94 -.47Z",
];

/** How wide the margin is that sets a mark off from the points around it. */
export const MARGIN = 0.36;

/** What a group is drawn as; after 70 groups the marks come again. @param {number} number of the group, from 1 */
export function markOf(number) {
  const place = (number - 1) % PALETTE.light.length;
  return { shape: (number - 1) % SHAPES.length, light: PALETTE.light[place], dark: PALETTE.dark[place] };
}

/** A mark for the legend and the cards. @param {number} number */
export function markPicture(number) {
  const { shape, light, dark } = markOf(number);
  const picture = svg(
    "svg",
    { viewBox: "-1.1 -1.1 2.2 2.2", class: "mark", "aria-hidden": "true", "data-shape": shape },
    svg("path", { d: SHAPES[shape] }),
  );
  picture.style.color = `light-dark(rgb(${light.join(" ")}), rgb(${dark.join(" ")}))`;
  return picture;
}
