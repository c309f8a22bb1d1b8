import assert from "node:assert/strict";
import { test } from "node:test";
import { isNew } from "../../../src/pairlens/studio/page/stream.js";

test("a status that was overtaken is left out, one of another run never", () => {
  const shown = { run: "a", order: 5 };
  assert.ok(isNew({ run: "a", order: 6 }, shown));
  assert.ok(isNew(shown, shown));
  assert.ok(!isNew({ run: "a", order: 4 }, shown));
  assert.ok(isNew({ run: "b", order: 1 }, shown));
});
