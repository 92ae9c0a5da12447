// The client against a scripted server: what it returns, and what it sends, whatever the server does.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { Client, RequestRejected, ServerUnavailable } from "../dist/client.js";

/** Serve `answer(request)` = [status, body] or undefined (hang up); return the client, what was sent, and a closer. */
async function scripted(answer, settings = {}) {
  const sent = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    const body = text ? JSON.parse(text) : undefined;
    sent.push({ path: request.url, key: request.headers.authorization, body });
    const told = answer({ path: request.url, body, turn: sent.length });
    if (told === undefined) return request.socket.destroy();
    response.writeHead(told[0], { "content-type": "application/json" }).end(JSON.stringify(told[1]));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  const client = new Client({ url, key: "k", experiment: "a b/c", safe: "nothing", retryDelayMs: 1, ...settings });
  const close = async () => {
    await client.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { client, sent, close };
}

const decided = (body) => ({
  decision_id: body.decision_id, action: "digest", probabilities: { digest: 1 }, mode: "live", version: 1, snapshot: 7, limits: {},
});

test("a decision and its outcome", async () => {
  const { client, sent, close } = await scripted(({ path, body }) =>
    path.endsWith("decisions") ? [200, decided(body)] : [200, { ...body, accepted: ["click"], duplicate: [], late: [] }],
  );
  const decision = await client.decide({ age: 34 }, { only: ["digest"], decisionId: "mail-17" });
  assert.deepEqual([decision.action, decision.decision_id, decision.logged], ["digest", "mail-17", true]);
  assert.deepEqual((await client.learn(decision, { click: 1 }, { outcomeId: "o" })).accepted, ["click"]);
  assert.deepEqual(sent[0], {
    path: "/v1/a%20b%2Fc/decisions", key: "Bearer k", body: { context: { age: 34 }, decision_id: "mail-17", only: ["digest"] },
  });
  assert.deepEqual(sent[1].body, { click: 1, decision_id: "mail-17", outcome_id: "o" });
  await close();
});

test("a retry has the id of the first attempt", async () => {
  const { client, sent, close } = await scripted(({ turn, body }) =>
    turn === 1 ? undefined : turn === 2 ? [503, { code: "store_unavailable", message: "later" }] : [200, decided(body)],
  );
  assert.equal((await client.decide()).action, "digest");
  assert.equal(new Set(sent.map((one) => one.body.decision_id)).size, 1);
  await close();
});

test("the safe action where there is no answer, and a report that it was not shown", async () => {
  const { client, sent, close } = await scripted(({ path, body }) =>
    path.endsWith("decisions") ? undefined : [200, body.map((one) => ({ ...one, accepted: ["shown"], duplicate: [], late: [] }))],
  );
  const decision = await client.decide({ age: 34 });
  assert.deepEqual([decision.action, decision.logged, decision.reason], ["nothing", false, "server_unavailable"]);
  assert.deepEqual((await client.learn(decision, { click: 1 })).accepted, []);
  await client.close();
  const reports = sent.filter((one) => one.path.endsWith("outcomes")).flatMap((one) => one.body);
  assert.deepEqual(reports, [{ decision_id: decision.decision_id.replace("unlogged-", ""), shown: false }]);
  await close();
});

test("a server that is not there: nothing is reported", async () => {
  const client = new Client({ url: "http://127.0.0.1:9", key: "k", experiment: "e", safe: "nothing", timeoutMs: 300 });
  const many = await client.decideMany([{ context: {} }, { context: {} }]);
  assert.deepEqual(many.map((one) => one.action), ["nothing", "nothing"]);
  assert.equal(await client.describe(), undefined);
  await assert.rejects(client.learn("mail-17", { click: 1 }), ServerUnavailable);
  await client.close();
});

test("what the server rejects is an error with its code", async () => {
  const rejection = { code: "context_out_of_range", message: "'age' is 300" };
  const { client, sent, close } = await scripted(() => [422, rejection]);
  await assert.rejects(client.decide({ age: 300 }), (error) => {
    assert.ok(error instanceof RequestRejected);
    assert.deepEqual([error.code, error.message, error.status], [rejection.code, rejection.message, 422]);
    return true;
  });
  assert.equal(sent.length, 1);
  await close();
});

test("a batch has an answer or an error for each item", async () => {
  const { client, close } = await scripted(({ body }) => [
    503,
    body.map((one, i) =>
      i === 0 ? decided(one) : i === 1 ? { code: "missing_context_field", message: "m" } : { ...decided(one), logged: false, reason: "store_unavailable" },
    ),
  ], { maxAttempts: 1 });
  const [first, second, third] = await client.decideMany([{ context: {} }, { context: {} }, { context: {} }]);
  assert.deepEqual([first.action, second.code, third.action], ["digest", "missing_context_field", "nothing"]);
  assert.equal(third.reason, "store_unavailable");
  await close();
});

test("settings that cannot work are refused", () => {
  const settings = { url: "http://x", key: "k", experiment: "e", safe: "nothing" };
  assert.throws(() => new Client({ ...settings, safe: "" }), TypeError);
  assert.throws(() => new Client({ ...settings, timeoutMs: 0 }), RangeError);
});
