// The Responses API by OpenAI's SDK, over an upstream that chats (`auto`) and one of its own.

import assert from "node:assert/strict";
import { test } from "node:test";

import { APIError, APIUserAbortError, BadRequestError, NotFoundError, RateLimitError } from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

import { becomes, chunksOf, client, errorOf, expected, steer } from "./suite.mjs";

const OWN = "responses";
const CALLS = [
  { name: "weather", arguments: { city: "Oslo", days: 1 }, id: "call_one" },
  { name: "weather", arguments: { city: "Rome", days: 2 }, id: "call_two" },
];
const weather = {
  type: "function",
  name: "weather",
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer" } },
    required: ["city", "days"],
    additionalProperties: false,
  },
  strict: true,
};

const ask = (input, more = {}) => ({ model: "auto", input, ...more });
const create = (input, more) => client.responses.create(ask(input, more));
const callsOf = (response) => response.output.filter((item) => item.type === "function_call");

test("an answer has text, status and usage", async () => {
  const answer = await create("tell me", { instructions: "be kind", metadata: { a: "b" } });

  assert.equal(answer.output_text, expected("tell me"));
  assert.deepEqual([answer.object, answer.status, answer.store], ["response", "completed", false]);
  assert.equal(answer.usage.output_tokens, 16);
  assert.match((await create("say", { model: OWN })).output_text, /^It was a dark/);
});

test("a stream numbers its events and ends with the whole response", async () => {
  for (const model of ["auto", OWN]) {
    const events = await chunksOf(await create("tell me", { model, stream: true }));

    const deltas = events.filter((event) => event.type === "response.output_text.delta");
    const { type, response } = events.at(-1);
    assert.equal(events[0].type, "response.created");
    assert.deepEqual(events.map((event) => event.sequence_number), [...events.keys()]);
    assert.equal(type, "response.completed");
    const [item] = response.output;
    assert.equal(deltas.map((event) => event.delta).join(""), item.content[0].text);
  }
});

test("the stream helper puts parallel calls together, and they are answered", async () => {
  for (const [model, text] of [["auto", steer({ tool_calls: CALLS })], [OWN, "call"]]) {
    const asked = ask(text, { model, tools: [weather] });

    const response = await client.responses.stream(asked).finalResponse();
    const calls = callsOf(response);
    const after = await create(
      [
        { role: "user", content: "rain?" },
        ...calls.map(({ type, call_id, name, arguments: given }) => ({
          type,
          call_id,
          name,
          arguments: given,
        })),
        ...calls.map(({ call_id }) => ({ type: "function_call_output", call_id, output: "dry" })),
      ],
      { model, tools: [weather] },
    );

    assert.deepEqual(calls.map((call) => call.call_id), ["call_one", "call_two"]);
    assert.deepEqual(
      calls.map((call) => JSON.parse(call.arguments)),
      CALLS.map((call) => call.arguments),
    );
    assert.equal(after.status, "completed");
    assert.ok(after.output_text);
  }
});

test("parse gives the value of a JSON schema", async () => {
  const Place = z.object({ city: z.string(), days: z.number() });
  const text = { format: zodTextFormat(Place, "place") };

  for (const [model, input] of [["auto", "where?"], [OWN, "place"]]) {
    const { output_parsed: place } = await client.responses.parse(ask(input, { model, text }));

    assert.deepEqual(Object.keys(place).sort(), ["city", "days"]);
  }
});

test("an answer that its provider keeps can be gone on from", async () => {
  const kept = await create("keep this", { model: OWN, store: true });

  const after = await create("say more", { model: OWN, previous_response_id: kept.id });

  assert.match(kept.id, /^resp_kept_/);
  assert.equal(after.status, "completed");
});

test("errors are the SDK's own classes", async () => {
  const stranger = { previous_response_id: "resp_of_somebody" };
  const gone = await errorOf(NotFoundError, () => create("hi", stranger));
  const unknown = await errorOf(NotFoundError, () => create("hi", { model: "nobody" }));
  const wrong = await errorOf(BadRequestError, () => create("hi", { background: true }));
  const refused = await errorOf(BadRequestError, () => create("400", { model: OWN }));

  assert.equal(gone.code, "response_not_found");
  assert.equal(unknown.code, "model_not_found");
  assert.equal(wrong.param, "background");
  assert.equal(refused.status, 400);
});

test("a used up limit says when to come again", async () => {
  const model = "node-responses-limited";
  await create(steer({ text: "ok" }), { model });

  const error = await errorOf(RateLimitError, () => create("hi", { model }));

  assert.ok(Number(error.headers.get("retry-after")) >= 1);
});

test("a stream that breaks throws in the iteration", async () => {
  const fault = { kind: "cut", at_byte: 9000 };
  const stream = await create(steer({ tokens: 200, tokens_per_s: 2000, fault }), {
    model: "node-responses-cut",
    stream: true,
  });

  const error = await errorOf(APIError, () => chunksOf(stream));

  assert.equal(error.code, "stream_interrupted");
});

test("an aborted stream ends the call upstream", async () => {
  const id = "node-responses-leaves";
  const stream = client.responses.stream(ask(steer({ id, tokens: 200, tokens_per_s: 20 })));
  stream.on("response.output_text.delta", () => stream.abort());

  await errorOf(APIUserAbortError, () => stream.done());

  await becomes(id, (seen) => seen.outcomes[0] === "aborted");
});
