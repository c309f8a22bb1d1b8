import assert from "node:assert/strict";
import { test } from "node:test";
import { unpack } from "../../../src/pairlens/studio/page/map.js";
import { scales } from "../../../src/pairlens/studio/page/progress.js";
import { differing, linePoints } from "../../../src/pairlens/studio/page/rowview.js";
import { inWords, whichRows } from "../../../src/pairlens/studio/page/strip.js";

test("columns in which rows differ", () => {
  const row = (...values) => ({ row: 0, id: "x", cells: values.map((value, k) => [`c${k}`, value]) });
  assert.deepEqual([...differing([row("a", "b", ""), row("a", "c", "d")])], ["c1", "c2"]);
  assert.deepEqual([...differing([row("a")])], []);
  assert.deepEqual([...differing([{ row: 0, id: "x" }])], []);
});

test("a line stays within its axes", () => {
  const points = linePoints([0, 10, -100, 5], { low: 0, high: 10, words: "" });
  const heights = points.map((point) => Number(point.split(",")[1]));
  assert.deepEqual(
    points.map((point) => point.split(",")[0]),
    ["0.0", "100.0", "200.0", "300.0"],
  );
  assert.equal(heights[0], 90);
  assert.equal(heights[1], 0);
  assert.ok(heights[2] <= 96);
  assert.equal(heights[3], 45);
});

test("answers in words", () => {
  const past = { kind: "same", rows: [1, 2], ids: ["a", "b"], answer: "same", answers: [] };
  assert.equal(inWords(past), "same");
  assert.equal(inWords({ ...past, answer: "unsure" }), "can’t tell");
  assert.equal(inWords({ ...past, kind: "prefer", answer: "right" }), "b is better");
  assert.equal(inWords({ ...past, kind: "place", ids: ["x", "a", "b"], answer: "2" }), "with b");
  assert.equal(whichRows(past), "a · b");
  assert.equal(whichRows({ ...past, ids: ["א", "b"] }), "\u2068א\u2069 · b");
  assert.equal(whichRows({ ...past, kind: "place", ids: ["x", "a", "b"] }), "x");
});

test("a map is unpacked as it was packed", () => {
  const head = new TextEncoder().encode('{"version":3,"answers":7,"n":2}'.padEnd(32));
  const buffer = new ArrayBuffer(4 + head.length + 16);
  new DataView(buffer).setUint32(0, head.length, true);
  new Uint8Array(buffer, 4).set(head);
  new Float32Array(buffer, 4 + head.length).set([1, 2, 3, 4]);
  const { version, answers, n, places } = unpack(buffer);
  assert.deepEqual([version, answers, n, [...places]], [3, 7, 2, [1, 2, 3, 4]]);
});

test("the learning curve fills its picture", () => {
  const point = (answers, low) => ({ answers, auc: 0.8, low, high: 0.9, pca: 0.6, pca_low: 0.5, pca_high: 0.7, n: 40 });
  const { x, y, least } = scales([point(10, 0.3), point(60, 0.7)]);
  assert.equal(least, 0.3);
  assert.ok(x(10) < x(60));
  assert.ok(y(1) < y(0.3));
});
