// @ts-check
/** The map in words: what lies near which group, for those who do not see it. */

import { counted, h } from "./dom.js";
import { groupName } from "./legend.js";

/** @typedef {import("./legend.js").Group} Group */
/** @typedef {{group: Group, near: number, nearest: Group | null}} Region */

/**
 * For each group, how many rows without a group lie nearest to its centre, and the group whose centre is nearest.
 * @param {Float32Array} places x and y of each row
 * @param {Group[]} groups
 * @returns {Region[]}
 */
export function regions(places, groups) {
  const n = places.length / 2;
  const placed = new Uint8Array(n);
  const shown = groups.filter((group) => group.rows.some((row) => row < n));
  const centres = shown.map((group) => {
    const rows = group.rows.filter((row) => row < n);
    for (const row of rows) placed[row] = 1;
    const mean = (/** @type {number} */ axis) =>
      rows.reduce((sum, row) => sum + places[2 * row + axis], 0) / rows.length;
    return [mean(0), mean(1)];
  });
  const nearestTo = (/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ except = -1) => {
    let [best, least] = [-1, Infinity];
    centres.forEach(([cx, cy], k) => {
      const distance = (cx - x) ** 2 + (cy - y) ** 2;
      if (k !== except && distance < least) [best, least] = [k, distance];
    });
    return best;
  };
  const near = shown.map(() => 0);
  if (shown.length)
    for (let row = 0; row < n; row++) if (!placed[row]) near[nearestTo(places[2 * row], places[2 * row + 1])] += 1;
  return shown.map((group, k) => ({
    group,
    near: near[k],
    nearest: shown[nearestTo(centres[k][0], centres[k][1], k)] ?? null,
  }));
}

/** @param {Float32Array} places @param {Group[]} groups @returns {HTMLElement[]} */
export function mapWords(places, groups) {
  const found = regions(places, groups);
  const placed = found.reduce((sum, { group }) => sum + group.rows.length, 0);
  const lead = h(
    "p",
    {},
    `${counted(places.length / 2, "row")}, ${placed.toLocaleString("en")} of them in ${counted(found.length, "group")}. Rows that lie near each other are alike, as far as the answers tell.`,
  );
  if (!found.length)
    return [lead, h("p", { class: "lead" }, "Answers make groups. Then it says here how many rows lie near each.")];
  const head = ["Group", "Its rows", "Other rows nearest to it", "Nearest group"].map((words) =>
    h("th", { scope: "col" }, words),
  );
  const body = found.map(({ group, near, nearest }) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, groupName(group)),
      h("td", {}, group.rows.length),
      h("td", {}, near),
      h("td", {}, nearest ? groupName(nearest) : "none"),
    ),
  );
  return [
    lead,
    h(
      "div",
      { class: "table-frame", tabindex: "0", role: "region", "aria-label": "The groups on the map" },
      h("table", { class: "cells" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)),
    ),
  ];
}
