import assert from "node:assert/strict";
import { test } from "node:test";
import { Keys, PAUSE, keyLabel, keyName } from "../../../src/pairlens/studio/page/keys.js";

const press = (key, more = {}) => ({ key, ctrlKey: false, metaKey: false, altKey: false, repeat: false, ...more });

test("the keys of the help do what it says", () => {
  const keys = new Keys();
  const meaning = (key, more) => keys.meaning(press(key, more), 1000);
  assert.deepEqual(meaning("s"), { action: "same" });
  assert.deepEqual(meaning("S"), { action: "same" });
  assert.deepEqual(meaning("d"), { action: "different" });
  assert.deepEqual(meaning(" "), { action: "unsure" });
  assert.deepEqual(meaning("Backspace"), { action: "undo" });
  assert.deepEqual(meaning("z", { ctrlKey: true }), { action: "undo" });
  assert.deepEqual(meaning("z", { metaKey: true }), { action: "undo" });
  assert.deepEqual(meaning("0"), { action: "none" });
  for (const slot of "12345678") assert.deepEqual(meaning(slot), { action: "group", group: slot });
  assert.deepEqual(meaning("ArrowLeft"), { action: "left" });
  assert.deepEqual(meaning("ArrowRight"), { action: "right" });
  assert.deepEqual(meaning("?"), { action: "help" });
  for (const nothing of ["9", "x", "Enter", "Tab", "z"]) assert.equal(meaning(nothing), null);
});

test("a held key and a key pressed too soon do nothing", () => {
  const keys = new Keys();
  assert.equal(keys.meaning(press("s", { repeat: true }), 1000), null);
  assert.equal(keys.meaning(press("s"), PAUSE - 1), null);
  assert.equal(keys.meaning(press("3"), PAUSE - 1), null);
  assert.deepEqual(keys.meaning(press("s"), PAUSE), { action: "same" });
  assert.deepEqual(keys.meaning(press("Backspace"), 0), { action: "undo" });
  assert.equal(keys.meaning(press("s", { ctrlKey: true }), 1000), null);
  assert.equal(keys.meaning(press("s", { altKey: true }), 1000), null);
});

test("keys can be changed, and a key does one thing", () => {
  const keys = new Keys();
  const changed = keys.assign("same", "d");
  assert.deepEqual(keys.meaning(press("d"), 1000), { action: "same" });
  assert.equal(keys.meaning(press("s"), 1000), null);
  assert.deepEqual(changed, { same: ["d"], different: [] });
  const again = new Keys(changed);
  assert.deepEqual(again.meaning(press("d"), 1000), { action: "same" });
  assert.equal(again.label("different"), "");
});

test("names and labels", () => {
  assert.equal(keyName(press("Z", { ctrlKey: true })), "Ctrl+z");
  assert.equal(keyLabel("Ctrl+z"), "Ctrl+Z");
  assert.equal(keyLabel(" "), "Space");
});
