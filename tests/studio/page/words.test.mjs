import assert from "node:assert/strict";
import { test } from "node:test";
import { fromKeyWord, keyWords } from "../../../src/pairlens/studio/page/keywords.js";
import { opacity, paintPoints, rampColour, spread } from "../../../src/pairlens/studio/page/paint.js";
import { certaintyWords, consistencyWords, curveVerdict } from "../../../src/pairlens/studio/page/progress.js";
import { bar, orderWords } from "../../../src/pairlens/studio/page/ranking.js";
import { telling, unusual } from "../../../src/pairlens/studio/page/rowview.js";
import { inWords, whichRows } from "../../../src/pairlens/studio/page/strip.js";

test("key words are those that the other texts lack, the frequent ones first", () => {
  const [first, second] = keyWords([
    "A package about fonts and glyphs, fonts above all",
    "A package about games and levels",
  ]);
  assert.deepEqual(first.slice(0, 2), ["fonts", "glyphs"]);
  assert.ok(!first.includes("package") && !second.includes("about"));
  assert.deepEqual(keyWords(["alike", "alike"]), [[], []]);
});

test("a text begins shortly before its first key word", () => {
  const text = `${"the same words ".repeat(10)}then glyphs follow`;
  assert.match(fromKeyWord(text, ["glyphs"]), /^… (words )?then glyphs follow$/);
  assert.equal(fromKeyWord("glyphs first", ["glyphs"]), "glyphs first");
  assert.equal(fromKeyWord("nothing", []), "nothing");
});

test("only differences that are unusual are marked", () => {
  const row = (...values) => ({ row: 0, id: "x", cells: values.map((value, k) => [`c${k}`, value]) });
  const typical = { c0: 5, c1: 5, c2: true, c3: false };
  assert.deepEqual([...unusual([row("1", "1", "a", "a"), row("2", "9", "b", "b")], typical)], ["c1", "c2"]);
  assert.deepEqual([...unusual([row("1", "", "a", "a"), row("1", "9", "a", "b")], typical)], []);
});

test("columns that tell rows apart come first", () => {
  const row = (...values) => ({ row: 0, id: "x", cells: values.map((value, k) => [`c${k}`, value]) });
  const typical = { c0: 0, c1: 5, c2: 2, c3: false, c4: true };
  const rows = [row("1", "1", "1", "a", "a"), row("1", "9", "", "b", "b"), row("1", "2", "9", "a", "b")];
  assert.deepEqual(telling(rows, typical), ["c2", "c4", "c1", "c3", "c0"]);
  assert.deepEqual(telling([row("1", "2")]), ["c0", "c1"]);
  assert.deepEqual(telling([{ row: 0, id: "x" }]), []);
});

test("a few comparisons that came back tell nothing, and a number stays with its sign", () => {
  assert.equal(
    consistencyWords({ n: 1, share: 1 }),
    "Too early to tell how often you answer as before: 1 comparison came back with sides swapped.",
  );
  assert.match(consistencyWords({ n: 9, share: 1 }), /^Too early/);
  assert.match(consistencyWords({ n: 10, share: 0.9 }), /^Of 10 comparisons .* you answered 90\u00a0% as before/);
  assert.equal(orderWords(0.5, 3), "Of all pairs of rows, the order of 50\u00a0% is sure.");
});

test("how many rows are sure, in words", () => {
  assert.equal(certaintyWords(null), "");
  assert.equal(
    certaintyWords({ sure: 1214, rows: 1797, questions: 40, more: 300 }),
    "1,214 of 1,797 rows are sure of their group; at this pace, 40 questions would settle about 300 more.",
  );
  assert.equal(
    certaintyWords({ sure: 1, rows: 20, questions: 40, more: null }),
    "1 of 20 rows is sure of their group.",
  );
});

test("a curve tells nothing before its interval is narrow and beyond chance", () => {
  const point = (auc, low, high) => ({ answers: 70, auc, low, high, pca: 0.6, pca_low: 0.5, pca_high: 0.7, n: 11 });
  assert.match(curveVerdict([], "how well").words, /^Too early to tell how well/);
  assert.ok(curveVerdict([point(0.3, 0.05, 0.6)], "how well").early);
  assert.match(
    curveVerdict([point(0.9, 0.55, 1)], "how well").words,
    /^Too early .* between 0.55 and 1.00 \(95\u00a0%\), from 11 questions/,
  );
  assert.deepEqual(curveVerdict([point(0.9, 0.8, 0.97)], "how well"), {
    early: false,
    words: "How well: 0.90 (0.5 is chance), between 0.80 and 0.97 (95\u00a0%), from 11 questions drawn at random.",
  });
});

test("ranks are a bar between the first and the last", () => {
  assert.deepEqual(bar({ low: 1, high: 10 }, 10), [0, 100]);
  assert.deepEqual(bar({ low: 4, high: 4 }, 10), [30, 10]);
});

test("rows are painted by group and how sure it is, by a column, and faint if they are not wanted", () => {
  const groups = [{ number: 0, shown: 1, name: "", rows: [0], confidence: [1] }];
  const certain = { numbers: Uint16Array.from([1, 1, 1, 0]), sure: Uint8Array.from([255, 250, 80, 0]) };
  const plain = paintPoints({ n: 4, groups, certain, column: null, wanted: null, dark: false });
  const colour = (painted, row) => [...painted.colours.slice(4 * row, 4 * row + 4)];
  assert.deepEqual(colour(plain, 0).slice(0, 3), [0, 116, 105]);
  assert.deepEqual(colour(plain, 1).slice(0, 3), [0, 116, 105]);
  assert.ok(colour(plain, 1)[3] > colour(plain, 2)[3]);
  assert.notDeepEqual(colour(plain, 3).slice(0, 3), [0, 116, 105]);
  assert.equal(plain.order.at(-1), 0);
  const faint = paintPoints({ n: 4, groups, certain, column: null, wanted: (row) => row === 2, dark: false });
  assert.ok(colour(faint, 1)[3] < 30 && colour(faint, 2)[3] === colour(plain, 2)[3]);
  const column = paintPoints({
    n: 4,
    groups,
    certain,
    column: { numbers: [1, 2, 3, null] },
    wanted: null,
    dark: false,
  });
  assert.deepEqual(colour(column, 0).slice(0, 3), rampColour(0));
  assert.deepEqual(spread([3, null, 1, 2]), [1, 3]);
  assert.ok(opacity(255) > opacity(150) && opacity(150) > opacity(60));
});

test("what was done with rows, in words", () => {
  const past = { kind: "chosen", rows: [1, 2, 3], ids: ["a", "b", "c"], answer: "together", answers: [] };
  assert.equal(inWords(past), "belong together");
  assert.equal(whichRows(past), "3 rows");
  assert.equal(whichRows({ ...past, ids: ["a", "b"] }), "a · b");
});
