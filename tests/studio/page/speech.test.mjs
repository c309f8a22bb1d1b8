import assert from "node:assert/strict";
import { test } from "node:test";
import { regions } from "../../../src/pairlens/studio/page/mapwords.js";
import { questionWords, rowWords } from "../../../src/pairlens/studio/page/speech.js";

test("a row in words", () => {
  assert.equal(rowWords({ row: 0, id: "x" }), "x.");
  assert.equal(
    rowWords({
      row: 0,
      id: "x",
      cells: [
        ["year", "1990"],
        ["maker", ""],
      ],
    }),
    "x: year 1990, maker empty.",
  );
  assert.equal(rowWords({ row: 0, id: "x", pixels: [8, 8, ""] }), "x: a picture.");
  assert.equal(rowWords({ row: 0, id: "x", picture: false, line: [1, 2] }), "x: no picture, a line of 2 numbers.");
  assert.equal(rowWords({ row: 0, id: "x", texts: [["story", "It ends.", 0]] }), "x: story It ends.");
});

test("many cells and long texts are cut", () => {
  const cells = Array.from({ length: 11 }, (_, k) => [`c${k}`, String(k)]);
  assert.match(rowWords({ row: 0, id: "x", cells }), /c7 7, 3 more cells\.$/);
  assert.ok(rowWords({ row: 0, id: "x", texts: [["story", "a".repeat(5000), 0]] }).length < 220);
});

test("a question in words", () => {
  const rows = ["x", "a", "b"].map((id, row) => ({ row, id, cells: [["n", String(row)]] }));
  assert.equal(questionWords({ kind: "same", rows: rows.slice(0, 2), names: [] }), "x: n 0. a: n 1.");
  assert.equal(questionWords({ kind: "prefer", rows: rows.slice(0, 2), names: [] }), "Left, x: n 0. Right, a: n 1.");
  assert.equal(questionWords({ kind: "place", rows, names: ["Ships", ""] }), "x: n 0. Groups. 1: Ships. 2: b: n 2.");
});

test("the map in words: which rows lie near which group", () => {
  const group = (number, rows) => ({ number, shown: number, name: "", rows, confidence: rows.map(() => 1) });
  // Two rows of the first group on the left, one of the second on the right, one of the third far away.
  const places = Float32Array.from([0, 0, 0, 2, 10, 0, 90, 0, 1, 1, 2, 0, 9, 0, 70, 0]);
  const found = regions(places, [group(1, [0, 1]), group(2, [2]), group(3, [3, 99])]);
  assert.deepEqual(
    found.map(({ near }) => near),
    [2, 1, 1],
  );
  assert.deepEqual(
    found.map(({ nearest }) => nearest.number),
    [2, 1, 2],
  );
  assert.deepEqual(regions(places, []), []);
  assert.equal(regions(places, [group(1, [0])])[0].nearest, null);
  assert.equal(regions(places, [group(1, [0])])[0].near, 7);
});
