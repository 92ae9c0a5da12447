// The provider's outcomes against a scripted server: what reaches it, whatever an event holds and whether the key is refused.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { StagewiseProvider } from "../dist/openfeature.js";

/** Serve outcomes, refused with 401 while `refuses(turn)`; return the provider and the outcomes that arrived. */
async function provided(t, refuses = () => false) {
  const arrived = [];
  let turn = 0;
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    const isRefused = refuses(++turn);
    if (!isRefused) arrived.push(...JSON.parse(text));
    const answers = isRefused
      ? { code: "unauthorized", message: "the key is unknown or revoked" }
      : JSON.parse(text).map((one) => ({ ...one, accepted: ["click"], duplicate: [], late: [] }));
    response.writeHead(isRefused ? 401 : 200, { "content-type": "application/json" }).end(JSON.stringify(answers));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  const provider = new StagewiseProvider({ url, key: "k", safe: { demo: "nothing" } });
  t.after(async () => {
    await provider.onClose();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { provider, arrived, turns: () => turn };
}

/** Collect what is logged as an error or a warning while a test runs. */
function listen(t) {
  const said = [];
  for (const level of ["warn", "error"]) t.mock.method(console, level, (text) => said.push(text));
  return said;
}

const until = async (condition) => {
  for (let i = 0; i < 1000 && !condition(); i++) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.ok(condition());
};

test("an event that JSON cannot hold is dropped alone", async (t) => {
  const said = listen(t);
  const { provider, arrived } = await provided(t);
  const circular = {};
  circular.self = circular;
  provider.track("demo", { decision_id: "d-1" }, { click: 1 });
  provider.track("demo", { decision_id: "d-2" }, { click: circular });
  provider.track("demo", { decision_id: "d-3" }, { click: 10n });
  provider.track("demo.click", { decision_id: "d-4" });
  await provider.onClose();
  assert.deepEqual(arrived, [{ decision_id: "d-1", click: 1 }, { decision_id: "d-4", click: 1 }]);
  assert.equal(said.length, 2);
});

test("events wait while the key is refused", async (t) => {
  const said = listen(t);
  const { provider, arrived } = await provided(t, (turn) => turn <= 2);
  for (let i = 0; i < 5; i++) provider.track("demo.click", { decision_id: `d-${i}` });
  await until(() => arrived.length === 5);
  assert.equal(new Set(arrived.map((one) => one.decision_id)).size, 5);
  assert.equal(said.length, 1);
  await provider.onClose();
});

test("a key that stays refused does not hold up the end, which tells how many events are lost", async (t) => {
  const said = listen(t);
  const { provider, arrived, turns } = await provided(t, () => true);
  for (let i = 0; i < 5; i++) provider.track("demo.click", { decision_id: `d-${i}` });
  await until(() => turns() > 0);
  await provider.onClose();
  assert.deepEqual(arrived, []);
  assert.match(said.at(-1), /\b5\b/);
});
