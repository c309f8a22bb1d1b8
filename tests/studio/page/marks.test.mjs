import assert from "node:assert/strict";
import { test } from "node:test";
import { PALETTE, SHAPES, markOf } from "../../../src/pairlens/studio/page/marks.js";

const PAPERS = { light: [255, 254, 251], dark: [28, 32, 39] };
/** What eyes without one kind of cone see of linear RGB (Machado, Oliveira and Fernandes 2009). */
const EYES = {
  all: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  protan: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  deutan: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
  tritan: [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
};
const times = (m, v) => [0, 1, 2].map((k) => m[3 * k] * v[0] + m[3 * k + 1] * v[1] + m[3 * k + 2] * v[2]);
const linear = (colour) =>
  colour.map((part) => (part <= 10 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
const luminance = (colour) => times([0.2126, 0.7152, 0.0722, 0, 0, 0, 0, 0, 0], linear(colour))[0];
const contrast = (a, b) =>
  (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);

/** Distance in Oklab, times 100, as these eyes see it. */
function distance(a, b, eyes) {
  const lab = (colour) => {
    const seen = times(eyes, linear(colour)).map((part) => Math.min(1, Math.max(0, part)));
    const cones = times(
      [
        0.4122214708, 0.5363325363, 0.0514459929, 0.2119034982, 0.6806995451, 0.1073969566, 0.0883024619, 0.2817188376,
        0.6299787005,
      ],
      seen,
    );
    return times(
      [
        0.2104542553, 0.793617785, -0.0040720468, 1.9779984951, -2.428592205, 0.4505937099, 0.0259040371, 0.7827717662,
        -0.808675766,
      ],
      cones.map(Math.cbrt),
    );
  };
  const [x, y] = [lab(a), lab(b)];
  return 100 * Math.hypot(...x.map((part, k) => part - y[k]));
}

test("26 groups are told apart by shape, or by colour with any eyes, on light and on dark paper", () => {
  for (const paper of ["light", "dark"])
    for (const eyes of Object.values(EYES))
      for (let i = 1; i <= 26; i++)
        for (let j = i + 1; j <= 26; j++) {
          const [a, b] = [markOf(i), markOf(j)];
          if (a.shape === b.shape)
            assert.ok(distance(a[paper], b[paper], eyes) > 9, `groups ${i} and ${j} on ${paper} paper`);
        }
});

test("70 groups have 70 marks", () => {
  const marks = Array.from({ length: 70 }, (_, k) => markOf(k + 1)).map(({ shape, light }) => `${shape} ${light}`);
  assert.equal(new Set(marks).size, 70);
  assert.deepEqual(markOf(71), markOf(1));
});

test("every colour stands out from its paper, and colours differ", () => {
  for (const paper of ["light", "dark"]) {
    for (const colour of PALETTE[paper]) assert.ok(contrast(colour, PAPERS[paper]) >= 3, `${colour} on ${paper} paper`);
    for (const [k, a] of PALETTE[paper].entries())
      for (const b of PALETTE[paper].slice(k + 1)) assert.ok(distance(a, b, EYES.all) > 9);
  }
});

test("every shape fits its square and is about as large as the others", () => {
  for (const outline of SHAPES)
    for (const [number] of outline.matchAll(/-?[\d.]+/g)) assert.ok(Math.abs(Number(number)) <= 1.1, outline);
});
