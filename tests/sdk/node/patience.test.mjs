// Headers, repeats by the SDK, timeouts, leaving early, and many calls at once.

import assert from "node:assert/strict";
import { test } from "node:test";

import { APIConnectionTimeoutError, APIUserAbortError } from "openai";

import {
  appKey,
  ask,
  becomes,
  chunksOf,
  client,
  errorOf,
  expected,
  gatewayUrl,
  joined,
  newClient,
  steer,
  trap,
} from "./suite.mjs";

const CROWD = 50;
const waiting = { headers: { "X-Gw-Max-Wait": "1s" } };

/** A client that counts its HTTP calls. */
function counting(options) {
  const calls = [];
  const counted = newClient({
    ...options,
    fetch: (url, init) => {
      calls.push(String(url));
      return fetch(url, init);
    },
  });
  return { by: counted, calls };
}

test("headers of the gateway can be read beside the answer", async () => {
  const { data, response, request_id: id } = await client.chat.completions
    .create(ask("hi"))
    .withResponse();

  assert.equal(response.headers.get("x-routed-via"), "alpha/one");
  assert.equal(response.headers.get("x-gw-request-id"), id);
  assert.equal(data._request_id, id);
});

test("a stream has the same headers", async () => {
  const { data, response } = await client.chat.completions
    .create(ask("flow", { stream: true }))
    .withResponse();

  assert.equal(response.headers.get("x-routed-via"), "alpha/one");
  assert.equal(joined(await chunksOf(data)), expected("flow"));
});

test("the key is taken from the headers of other vendors", async () => {
  for (const header of ["api-key", "x-api-key", "x-goog-api-key"]) {
    const by = newClient({
      baseURL: `${gatewayUrl}/v1/`,
      defaultHeaders: { Authorization: null, [header]: appKey },
      defaultQuery: { "api-version": "2026-01-01" },
    });

    const answer = await by.chat.completions.create(ask("hi"));

    assert.equal(answer.choices[0].message.content, expected("hi"));
  }
});

test("the SDK repeats a 503 after the stated wait", async () => {
  const { by, calls } = counting({ maxRetries: 2 });
  const fault = { kind: "status", code: 503, body: "DEGRADED function", retry_after: 1 };
  const text = steer({ id: "degraded-node", fault, times: 1, text: "well again" });

  const answer = await by.chat.completions.create(ask(text, { model: trap("degraded") }));

  assert.equal(answer.choices[0].message.content, "well again");
  assert.equal(calls.length, 2);
});

test("the SDK repeats a 429 until there is room", async () => {
  const { by, calls } = counting({ maxRetries: 3 });
  const model = trap("single");
  const holder = client.chat.completions.create(
    ask(steer({ id: "holds-the-slot-node", latency_ms: 900 }), { model }),
  );
  const held = holder.then((answer) => answer.choices[0].message.content);
  await becomes("holds-the-slot-node", (seen) => seen.calls === 1);

  const answer = await by.chat.completions.create(ask("next", { model }));

  assert.equal(answer.choices[0].message.content, expected("next"));
  assert.ok(calls.length > 1);
  assert.ok(await held);
});

test("a timeout of the SDK ends the upstream call", async () => {
  const model = trap("hasty");
  const text = steer({ id: "timeout-node", latency_ms: 8000 });

  await errorOf(APIConnectionTimeoutError, () =>
    client.chat.completions.create(ask(text, { model }), { timeout: 600 }),
  );

  await becomes("timeout-node", (seen) => seen.outcomes[0] === "aborted");
  const answer = await client.chat.completions.create(ask("next", { model }), waiting);
  assert.equal(answer.choices[0].message.content, expected("next"));
});

test("a loop that is left ends the upstream call and frees its slot", async () => {
  const model = trap("leaving");
  const text = steer({ id: "left-node", tokens: 500, tokens_per_s: 50 });
  const stream = await client.chat.completions.create(ask(text, { model, stream: true }));

  for await (const chunk of stream) {
    assert.equal(chunk.object, "chat.completion.chunk");
    break;
  }

  await becomes("left-node", (seen) => seen.outcomes[0] === "aborted");
  const answer = await client.chat.completions.create(ask("next", { model }), waiting);
  assert.equal(answer.choices[0].message.content, expected("next"));
});

test("an abort signal ends the upstream call", async () => {
  const controller = new AbortController();
  const call = errorOf(APIUserAbortError, () =>
    client.chat.completions.create(ask(steer({ id: "aborted-node", latency_ms: 8000 })), {
      signal: controller.signal,
    }),
  );
  await becomes("aborted-node", (seen) => seen.calls === 1);

  controller.abort();

  await call;
  await becomes("aborted-node", (seen) => seen.outcomes[0] === "aborted");
});

test("fifty calls at once get each their own answer", async () => {
  const texts = Array.from({ length: CROWD }, (_, number) => `answer ${number}`);

  const answers = await Promise.all(
    texts.map((text) => client.chat.completions.create(ask(steer({ text })))),
  );

  assert.deepEqual(
    answers.map((answer) => answer.choices[0].message.content),
    texts,
  );
  assert.equal(new Set(answers.map((answer) => answer._request_id)).size, CROWD);
});
