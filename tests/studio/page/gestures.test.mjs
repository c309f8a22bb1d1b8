import assert from "node:assert/strict";
import { test } from "node:test";
import { Fingers } from "../../../src/pairlens/studio/page/gestures.js";

test("one finger moves, and a short touch is a tap", () => {
  const fingers = new Fingers();
  fingers.press(1, 10, 10);
  assert.deepEqual(fingers.move(1, 12, 9), { dx: 2, dy: -1, factor: 1, x: 12, y: 9 });
  assert.ok(fingers.tapped);
  fingers.move(1, 30, 9);
  assert.ok(!fingers.tapped);
  assert.ok(fingers.lift(1));
  fingers.press(1, 0, 0);
  assert.ok(fingers.tapped);
});

test("two fingers move and zoom about the middle between them, and are no tap", () => {
  const fingers = new Fingers();
  fingers.press(1, 0, 0);
  fingers.press(2, 10, 0);
  assert.deepEqual(fingers.move(2, 30, 0), { dx: 10, dy: 0, factor: 3, x: 15, y: 0 });
  assert.ok(!fingers.lift(1));
  assert.deepEqual(fingers.move(2, 31, 4), { dx: 1, dy: 4, factor: 1, x: 31, y: 4 });
  assert.ok(fingers.lift(2));
  assert.ok(!fingers.tapped);
});

test("a third finger, and one that was not pressed here, do nothing", () => {
  const fingers = new Fingers();
  assert.equal(fingers.move(7, 1, 1), null);
  assert.ok(!fingers.lift(7));
  for (const id of [1, 2, 3]) fingers.press(id, id, 0);
  assert.equal(fingers.move(3, 50, 50), null);
  assert.ok(!fingers.lift(3));
  assert.equal(fingers.count, 2);
});

test("fingers at one place do not zoom without bounds", () => {
  const fingers = new Fingers();
  fingers.press(1, 5, 5);
  fingers.press(2, 5, 5);
  assert.equal(fingers.move(2, 9, 5).factor, 1);
});
