// Streamed answers: text, usage, choices, tool calls, and the SDK's own stream support.

import assert from "node:assert/strict";
import { test } from "node:test";

import { APIError } from "openai";

import { ask, chunksOf, client, errorOf, expected, joined, steer, trap, weather } from "./suite.mjs";

const CALLS = [
  { name: "weather", arguments: { city: "Kyoto and Osaka", days: 2 }, id: "call_one" },
  { name: "weather", arguments: { city: "São Paulo", days: 10 }, id: "call_two" },
  { name: "clock", arguments: { zone: "Asia/Tokyo", style: "very long" } },
];

const open = (body) => client.chat.completions.create({ ...body, stream: true });

test("a stream joins to the text of the buffered answer", async () => {
  const chunks = await chunksOf(await open(ask("tell me")));

  assert.equal(joined(chunks), expected("tell me"));
  assert.equal(chunks[0].choices[0].delta.role, "assistant");
  assert.equal(chunks.at(-1).choices[0].finish_reason, "stop");
  assert.ok(chunks.every((chunk) => !chunk.usage));
});

test("a long stream arrives whole", async () => {
  const chunks = await chunksOf(await open(ask(steer({ tokens: 2000 }))));

  assert.equal(joined(chunks), expected("2000 tokens"));
});

test("usage comes last when asked for", async () => {
  const chunks = await chunksOf(
    await open(ask("count", { stream_options: { include_usage: true } })),
  );

  assert.deepEqual(chunks.at(-1).choices, []);
  assert.equal(chunks.at(-1).usage.completion_tokens, 16);
  assert.equal(joined(chunks), expected("count"));
});

test("choices of a stream keep apart", async () => {
  const chunks = await chunksOf(await open(ask("thrice", { n: 3 })));

  for (const choice of [0, 1, 2]) {
    assert.equal(joined(chunks, choice), expected(`thrice#${choice}`));
  }
});

test("parallel tool calls join by index", async () => {
  const chunks = await chunksOf(
    await open(ask(steer({ tool_calls: CALLS }), { tools: [weather] })),
  );

  const texts = ["", "", ""];
  for (const delta of chunks.flatMap((c) => c.choices).flatMap((c) => c.delta.tool_calls ?? [])) {
    texts[delta.index] += delta.function?.arguments ?? "";
  }
  assert.deepEqual(
    texts.map((text) => JSON.parse(text)),
    CALLS.map((call) => call.arguments),
  );
});

test("the stream helper puts parallel tool calls together", async () => {
  const done = new Set(); // calls that interleave are reported once per change of the call
  const stream = client.chat.completions
    .stream(ask(steer({ tool_calls: CALLS }), { tools: [weather] }))
    .on("tool_calls.function.arguments.done", (event) => done.add(event.index));

  const final = await stream.finalChatCompletion();

  const calls = final.choices[0].message.tool_calls;
  assert.deepEqual(
    calls.map((call) => call.function.name),
    ["weather", "weather", "clock"],
  );
  assert.deepEqual(
    calls.map((call) => JSON.parse(call.function.arguments)),
    CALLS.map((call) => call.arguments),
  );
  assert.deepEqual(calls.slice(0, 2).map((call) => call.id), ["call_one", "call_two"]);
  assert.deepEqual([...done].sort(), [0, 1, 2]);
});

test("the stream helper gives deltas, content and usage", async () => {
  const deltas = [];
  const stream = client.chat.completions
    .stream(ask("help", { stream_options: { include_usage: true } }))
    .on("content", (delta) => deltas.push(delta));

  assert.equal(await stream.finalContent(), expected("help"));
  assert.equal(deltas.join(""), expected("help"));
  assert.equal((await stream.totalUsage()).completion_tokens, 16);
});

test("log probabilities are streamed", async () => {
  const chunks = await chunksOf(
    await open(ask("how sure?", { logprobs: true, top_logprobs: 1 })),
  );

  const entries = chunks.flatMap((c) => c.choices).flatMap((c) => c.logprobs?.content ?? []);
  assert.equal(entries.map((entry) => entry.token).join(""), expected("how sure?"));
});

test("a stream that breaks throws in the iteration", async () => {
  const faults = [
    { tokens: 40, fault: { kind: "in_band_error", at_frame: 9 } },
    { tokens: 200, tokens_per_s: 2000, fault: { kind: "cut", at_byte: 9000 } },
  ];
  for (const directive of faults) {
    const stream = await open(ask(steer(directive), { model: trap("cut") }));

    const error = await errorOf(APIError, () => chunksOf(stream));

    assert.equal(error.code, "stream_interrupted");
    assert.equal(error.type, "stream_error");
  }
});
