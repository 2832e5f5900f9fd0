// Anthropic's own SDK, over an upstream of OpenAI's dialect (`auto`) and one of its own.

import assert from "node:assert/strict";
import { test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { z } from "zod";

import { appKey, becomes, chunksOf, errorOf, gatewayUrl, pixel, steer, story } from "./suite.mjs";

const OWN = "anthropic";
const CALLS = [
  { name: "weather", arguments: { city: "Oslo", days: 1 }, id: "call_one" },
  { name: "weather", arguments: { city: "São Paulo", days: 2 }, id: "call_two" },
];
const tools = [{ name: "weather", input_schema: { type: "object", properties: {} } }];
const options = { baseURL: gatewayUrl, apiKey: appKey, maxRetries: 0, timeout: 10_000 };
const client = new Anthropic(options);

const ask = (content, more = {}) => ({
  model: "auto",
  max_tokens: 4096,
  messages: [{ role: "user", content }],
  ...more,
});
const create = (content, more) => client.messages.create(ask(content, more));

test("an answer has text, reason, usage and the id of its request", async () => {
  for (const model of ["auto", `${OWN}-say`]) {
    const answer = await create(steer({ text: "Hello there" }), { model, system: "be kind" });

    assert.deepEqual([answer.type, answer.role, answer.stop_reason], ["message", "assistant", "end_turn"]);
    assert.equal(answer.content[0].text, "Hello there");
    assert.ok(answer.usage.input_tokens > 0 && answer.usage.output_tokens > 0);
    assert.ok(answer._request_id);
  }
});

test("the stream helper puts thoughts and words together", async () => {
  const told = [];
  const stream = client.messages
    .stream(ask(steer({ text: "so it is", reasoning: "hm" })))
    .on("text", (piece) => told.push(piece));

  const { content, stop_reason: reason } = await stream.finalMessage();

  assert.deepEqual(content.map((block) => block.type), ["thinking", "text"]);
  assert.equal(content[0].thinking, "hm");
  assert.equal(told.join(""), "so it is");
  assert.equal(reason, "end_turn");
});

test("parallel calls of tools keep apart in a stream, and are answered", async () => {
  const asked = ask(steer({ tool_calls: CALLS }), { tools });

  const { content, stop_reason: reason } = await client.messages.stream(asked).finalMessage();
  const uses = content.filter((block) => block.type === "tool_use");
  const results = uses.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "dry" }));
  const after = await client.messages.create({
    ...asked,
    messages: [
      ...asked.messages,
      { role: "assistant", content },
      { role: "user", content: [...results, { type: "text", text: steer({ text: "dry" }) }] },
    ],
  });

  assert.equal(reason, "tool_use");
  assert.deepEqual(uses.map((use) => use.input), CALLS.map((call) => call.arguments));
  assert.equal(after.content[0].text, "dry");
});

test("the tool runner of the SDK calls a function, over each dialect", async () => {
  for (const model of [`${OWN}-call`, "openai-call"]) {
    const cities = [];
    const weather = betaZodTool({
      name: "weather",
      description: "of a city",
      inputSchema: z.object({ city: z.string(), days: z.number() }),
      run: ({ city }) => {
        cities.push(city);
        return "sunny";
      },
    });

    const final = await client.beta.messages.toolRunner(ask("rain?", { model, tools: [weather] }));

    assert.deepEqual(cities, ["Oslo"]);
    assert.equal(final.content[0].text, "It is sunny.");
  }
});

test("an image reaches a model that sees", async () => {
  const source = { type: "base64", media_type: "image/png", data: pixel.split(",")[1] };

  await create([
    { type: "image", source },
    { type: "text", text: steer({ id: "image-node-messages", text: "a dot" }) },
  ]);

  assert.equal((await story("image-node-messages")).images, 1);
});

test("tokens are counted and models listed", async () => {
  const messages = [{ role: "user", content: "x".repeat(400) }];
  const names = [];
  for await (const model of client.models.list({ limit: 5 })) names.push(model.id);

  assert.equal((await client.messages.countTokens({ model: "auto", messages })).input_tokens, 100);
  assert.ok(names.includes("auto") && names.includes(`${OWN}-say`));
  assert.equal(new Set(names).size, names.length);
  assert.equal((await client.models.retrieve("auto")).type, "model");
});

test("errors are the SDK's own classes with the words of the API", async () => {
  const stranger = new Anthropic({ ...options, apiKey: "sk-wrong" });
  const refused = { model: `${OWN}-refuse` };
  const cases = [
    [Anthropic.BadRequestError, () => create("hi", { max_tokens: "many" }), "invalid_request_error"],
    [Anthropic.BadRequestError, () => create("hi", refused), "invalid_request_error"],
    [Anthropic.NotFoundError, () => create("hi", { model: "nobody" }), "not_found_error"],
    [Anthropic.AuthenticationError, () => stranger.messages.create(ask("hi")), "authentication_error"],
  ];
  for (const [kind, call, word] of cases) {
    const error = await errorOf(kind, call);

    assert.equal(error.error.type, "error");
    assert.equal(error.error.error.type, word);
    assert.equal(error.error.request_id, error.requestID);
  }
});

test("a used up limit says when to come again", async () => {
  const model = "node-messages-limited";
  await create(steer({ text: "ok" }), { model });

  const error = await errorOf(Anthropic.RateLimitError, () => create("hi", { model }));

  assert.ok(Number(error.headers.get("retry-after")) >= 1);
});

test("a stream that breaks throws in the iteration", async () => {
  const fault = { kind: "cut", at_byte: 9000 };
  const stream = await create(steer({ tokens: 200, tokens_per_s: 2000, fault }), {
    model: "node-messages-cut",
    stream: true,
  });

  const error = await errorOf(Anthropic.APIError, () => chunksOf(stream));

  assert.equal(error.error.error.code, "stream_interrupted");
});

test("an aborted stream ends the call upstream", async () => {
  const id = "node-messages-leaves";
  const stream = client.messages.stream(ask(steer({ id, tokens: 200, tokens_per_s: 20 })));
  stream.on("text", () => stream.abort());

  await errorOf(Anthropic.APIUserAbortError, () => stream.done());

  await becomes(id, (seen) => seen.outcomes[0] === "aborted");
});
