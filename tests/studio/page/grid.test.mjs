import assert from "node:assert/strict";
import { test } from "node:test";
import { Grid, contains } from "../../../src/pairlens/studio/page/grid.js";

function random(seed) {
  let state = seed;
  return () => (state = (state * 1664525 + 1013904223) >>> 0) / 2 ** 32;
}

function points(n, seed) {
  const next = random(seed);
  return Float32Array.from({ length: 2 * n }, () => 4 * next() - 2);
}

test("the nearest point is the one that a look at all points finds", () => {
  for (const n of [1, 2, 17, 500]) {
    const places = points(n, n);
    const grid = new Grid(places);
    const next = random(n + 1);
    for (let k = 0; k < 200; k++) {
      const [x, y, radius] = [5 * next() - 2.5, 5 * next() - 2.5, next()];
      let best = -1;
      let least = radius ** 2;
      for (let p = 0; p < n; p++) {
        const distance = (places[2 * p] - x) ** 2 + (places[2 * p + 1] - y) ** 2;
        if (distance <= least) [best, least] = [p, distance];
      }
      assert.equal(grid.nearest(x, y, radius), best);
    }
  }
});

test("a lasso finds the points that a look at all points finds", () => {
  const places = points(400, 3);
  const grid = new Grid(places);
  const star = Array.from({ length: 10 }, (_, k) => {
    const r = k % 2 ? 0.5 : 1.8;
    return [r * Math.cos((k * Math.PI) / 5), r * Math.sin((k * Math.PI) / 5)];
  });
  const all = Array.from({ length: 400 }, (_, p) => p).filter((p) => contains(star, places[2 * p], places[2 * p + 1]));
  assert.ok(all.length > 20);
  assert.deepEqual(grid.inside(star), all);
  assert.deepEqual(grid.inside(star.slice(0, 2)), []);
});

test("no point, one point, and all points at one place", () => {
  assert.equal(new Grid(new Float32Array(0)).nearest(0, 0, 1), -1);
  assert.equal(new Grid(Float32Array.of(1, 1)).nearest(1, 1, 0.1), 0);
  const same = new Grid(new Float32Array(200).fill(0.5));
  assert.ok(same.nearest(0.5, 0.5, 0.01) >= 0);
  assert.equal(
    same.inside([
      [0, 0],
      [1, 0],
      [1, 1],
      [0, 1],
    ]).length,
    100,
  );
});
