// Buffered answers: content, choices, tools, formats, images, models, and what passes through.

import assert from "node:assert/strict";
import { test } from "node:test";

import { NotFoundError } from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";

import {
  ask,
  client,
  errorOf,
  expected,
  narrowKey,
  newClient,
  pixel,
  steer,
  story,
  weather,
} from "./suite.mjs";

const create = (body, options) => client.chat.completions.create(body, options);

test("an answer has the whole text and exact usage", async () => {
  const answer = await create(ask("what is there?"));

  assert.equal(answer.object, "chat.completion");
  assert.equal(answer.choices[0].message.content, expected("what is there?"));
  assert.equal(answer.choices[0].finish_reason, "stop");
  assert.equal(answer.usage.prompt_tokens, 4);
  assert.equal(answer.usage.completion_tokens, 16);
});

test("every choice of n has its own text", async () => {
  const answer = await create(ask("thrice", { n: 3 }));

  assert.deepEqual(
    answer.choices.map((choice) => choice.message.content),
    [0, 1, 2].map((choice) => expected(`thrice#${choice}`)),
  );
});

test("log probabilities cover the text", async () => {
  const answer = await create(ask("how sure?", { logprobs: true, top_logprobs: 2 }));

  const entries = answer.choices[0].logprobs.content;
  assert.equal(entries.map((entry) => entry.token).join(""), expected("how sure?"));
  assert.ok(entries.every((entry) => entry.top_logprobs.length === 2));
});

test("an output bound ends with finish length", async () => {
  const answer = await create(ask("be short", { max_completion_tokens: 3 }));

  assert.equal(answer.choices[0].finish_reason, "length");
  assert.equal(answer.usage.completion_tokens, 3);
});

test("a seed decides the answer and the fingerprint comes back", async () => {
  const answer = await create(ask("dice", { seed: 7 }));

  assert.equal(answer.choices[0].message.content, expected("dice@7"));
  assert.match(answer.system_fingerprint, /^fp_/);
});

test("a forced tool is called and its result is answered", async () => {
  const forced = { type: "function", function: { name: "weather" } };
  const asked = await create(ask("rain?", { tools: [weather], tool_choice: forced }));
  const { message, finish_reason: finish } = asked.choices[0];
  const [call] = message.tool_calls;

  const answer = await create({
    model: "auto",
    tools: [weather],
    messages: [
      { role: "user", content: "rain?" },
      message,
      { role: "tool", tool_call_id: call.id, content: '{"rain": false}' },
    ],
  });

  assert.equal(finish, "tool_calls");
  assert.equal(call.function.name, "weather");
  assert.deepEqual(Object.keys(JSON.parse(call.function.arguments)).sort(), ["city", "days"]);
  assert.equal(answer.choices[0].message.content, expected("rain?"));
});

test("the tool runner of the SDK gets arguments it can call a function with", async () => {
  const seen = [];
  const runner = client.chat.completions.runTools(
    ask("rain?", {
      tool_choice: { type: "function", function: { name: "weather" } },
      tools: [
        {
          type: "function",
          function: {
            ...weather.function,
            parse: JSON.parse,
            function: (given) => {
              seen.push(given);
              return "sunny";
            },
          },
        },
      ],
    }),
  );

  assert.equal(await runner.finalFunctionToolCallResult(), "sunny");
  assert.equal(seen.length, 1);
  assert.equal(typeof seen[0].city, "string");
});

test("JSON mode gives a JSON object", async () => {
  const answer = await create(ask("as json", { response_format: { type: "json_object" } }));

  const document = JSON.parse(answer.choices[0].message.content);
  assert.deepEqual(document, { answer: expected("as json") });
});

test("parse gives the value of a JSON schema", async () => {
  const Place = z.object({ city: z.string(), days: z.number(), tags: z.array(z.string()) });

  const answer = await client.chat.completions.parse(
    ask("where?", { response_format: zodResponseFormat(Place, "place") }),
  );

  const { parsed, content } = answer.choices[0].message;
  assert.deepEqual(parsed, JSON.parse(content));
  assert.deepEqual(Object.keys(parsed).sort(), ["city", "days", "tags"]);
});

test("an image reaches a model that sees", async () => {
  const answer = await create(
    ask([
      { type: "text", text: steer({ id: "image-node", text: "a dot" }) },
      { type: "image_url", image_url: { url: pixel } },
    ]),
  );

  assert.equal(answer.choices[0].message.content, "a dot");
  assert.equal((await story("image-node")).images, 1);
});

test("messages and fields nobody knows pass in both directions", async () => {
  const messages = [
    { role: "system", content: "be kind" },
    { role: "developer", content: [{ type: "text", text: "be brief" }] },
    { role: "user", name: "ann", content: "größe 🌊" },
  ];

  const answer = await create({ model: "mirror", messages, vendor_knob: { depth: 3 }, seed: 4 });

  const seen = JSON.parse(answer.choices[0].message.content);
  assert.deepEqual(seen.body.messages, messages);
  assert.deepEqual(seen.body.vendor_knob, { depth: 3 });
  assert.equal(seen.body.seed, 4);
  assert.equal(seen.headers.authorization, "Bearer upstream-mirror");
  assert.deepEqual(answer.vendor_note, { text: "a member no SDK knows" });
  assert.equal(answer.system_fingerprint, "fp_mirror");
});

test("models are listed as far as the client may use them, and shown", async () => {
  const narrow = newClient({ apiKey: narrowKey });
  const names = [];
  for await (const model of narrow.models.list()) names.push(model.id);

  assert.deepEqual(names, ["auto", "alpha/one", "beta/two"]);
  assert.equal((await narrow.models.retrieve("alpha/one")).owned_by, "alpha");
  const error = await errorOf(NotFoundError, () => client.models.retrieve("nobody/nothing"));
  assert.equal(error.code, "model_not_found");
});
