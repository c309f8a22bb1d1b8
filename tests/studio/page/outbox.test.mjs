import assert from "node:assert/strict";
import { test } from "node:test";
import { Outbox } from "../../../src/pairlens/studio/page/outbox.js";

function keep() {
  const kept = new Map();
  return {
    kept,
    get length() {
      return kept.size;
    },
    key: (n) => [...kept.keys()][n] ?? null,
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => kept.set(key, value),
    removeItem: (key) => kept.delete(key),
  };
}

function box(send, more = {}) {
  const told = { delivered: [], refused: [], waiting: [], later: [] };
  const outbox = new Outbox({
    name: "test",
    send,
    keep: keep(),
    delivered: (reply, parcel, left) => told.delivered.push([parcel.body.id, left]),
    refused: (error, parcel) => told.refused.push(parcel.body.id),
    waiting: (error, parcel, left) => told.waiting.push([parcel.body.id, left]),
    later: (run, pause) => told.later.push({ run, pause }),
    ...more,
  });
  return { outbox, told };
}

const gone = Object.assign(new Error("gone"), { passing: true, status: 0 });
const wrong = Object.assign(new Error("wrong"), { passing: false, status: 400 });
const stranger = Object.assign(new Error("who"), { passing: false, strange: true });

test("parcels go out in order, and are kept until the server has them", async () => {
  const sent = [];
  const { outbox, told } = box(async (route, body) => {
    assert.ok([...outbox.keep.kept.values()].some((text) => text.includes(body.id)));
    sent.push([route, body.id]);
    return {};
  });
  await Promise.all([
    outbox.put("answer", { id: "a" }),
    outbox.put("undo", { id: "b" }),
    outbox.put("answer", { id: "c" }),
  ]);
  assert.deepEqual(sent, [
    ["answer", "a"],
    ["undo", "b"],
    ["answer", "c"],
  ]);
  assert.deepEqual(told.delivered, [
    ["a", 2],
    ["b", 1],
    ["c", 0],
  ]);
  assert.equal(outbox.length, 0);
  assert.equal(outbox.keep.kept.size, 0);
});

test("while the server is gone nothing is lost, and pauses grow", async () => {
  let up = false;
  const sent = [];
  const { outbox, told } = box(async (route, body) => {
    if (!up) throw gone;
    sent.push(body.id);
    return {};
  });
  await outbox.put("answer", { id: "a" });
  await outbox.put("answer", { id: "b" });
  assert.equal(outbox.length, 2);
  assert.equal(outbox.keep.kept.size, 2);
  const pauses = [];
  for (let k = 0; k < 7; k++) {
    const { run, pause } = told.later.shift();
    pauses.push(pause);
    await run();
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual(pauses, [500, 1000, 2000, 4000, 8000, 8000, 8000]);
  up = true;
  told.later.shift().run();
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(sent, ["a", "b"]);
});

test("what a visit left behind is sent by the next one", async () => {
  const first = box(async () => {
    throw gone;
  });
  await first.outbox.put("answer", { id: "a" });
  await first.outbox.put("answer", { id: "b" });
  first.outbox.keep.setItem("other/1", "{}");
  first.outbox.keep.setItem("test/0", "no JSON");
  const sent = [];
  const { outbox } = box(
    async (route, body) => {
      sent.push(body.id);
      return {};
    },
    { keep: first.outbox.keep },
  );
  await outbox.flush();
  assert.deepEqual(sent, ["a", "b"]);
  assert.deepEqual([...first.outbox.keep.kept.keys()], ["other/1"]);
});

test("what is kept stays in order when the clock is set back", async (context) => {
  context.mock.timers.enable({ apis: ["Date"], now: 2_000_000_000_000 });
  const first = box(async () => {
    throw gone;
  });
  await first.outbox.put("answer", { id: "a" });
  context.mock.timers.setTime(1_000_000_000_000);
  const second = box(
    async () => {
      throw gone;
    },
    { keep: first.outbox.keep },
  );
  await second.outbox.put("undo", { id: "b" });
  await first.outbox.put("answer", { id: "c" });
  const sent = [];
  await box(
    async (route, body) => {
      sent.push(body.id);
      return {};
    },
    { keep: first.outbox.keep },
  ).outbox.flush();
  assert.deepEqual(sent, ["a", "b", "c"]);
});

test("what the server refuses for good is dropped and told; a closed door is waited at", async () => {
  let error = wrong;
  const { outbox, told } = box(async () => {
    throw error;
  });
  await outbox.put("answer", { id: "a" });
  assert.deepEqual(told.refused, ["a"]);
  assert.equal(outbox.length, 0);
  error = stranger;
  await outbox.put("answer", { id: "b" });
  assert.deepEqual(told.waiting, [["b", 1]]);
  assert.equal(outbox.length, 1);
  assert.equal(told.later.length, 0);
});

test("an answer that is not on its way can be taken back", async () => {
  let release;
  const { outbox } = box(() => new Promise((resolve) => (release = resolve)));
  outbox.put("answer", { id: "a" });
  assert.equal(outbox.takeBack("answer"), null);
  outbox.put("answer", { id: "b" });
  assert.equal(outbox.takeBack("undo"), null);
  assert.equal(outbox.takeBack("answer").body.id, "b");
  release({});
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(outbox.length, 0);
});

test("a browser that keeps nothing still sends", async () => {
  const { outbox, told } = box(async () => ({}), { keep: null });
  await outbox.put("answer", { id: "a" });
  assert.deepEqual(told.delivered, [["a", 0]]);
});

test("who puts while others are sent waits until all are there", async () => {
  const sent = [];
  const { outbox } = box(async (route, body) => {
    await new Promise((done) => setTimeout(done, 5));
    sent.push(body.id);
    return {};
  });
  outbox.put("answer", { id: "a" });
  await outbox.put("change", { id: "b" });
  assert.deepEqual(sent, ["a", "b"]);
});
