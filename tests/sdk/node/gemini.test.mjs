// Google's own SDK, over an upstream of OpenAI's dialect (`auto`) and one of its own.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ApiError, FinishReason, FunctionCallingConfigMode, GoogleGenAI } from "@google/genai";

import { appKey, becomes, errorOf, expected, gatewayUrl, pixel, steer, story } from "./suite.mjs";

const OWN = "gemini";
const CALLS = [
  { name: "weather", arguments: { city: "Oslo", days: 1 }, id: "call_one" },
  { name: "weather", arguments: { city: "São Paulo", days: 2 }, id: "call_two" },
];
const schema = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city", "days"],
};
const tools = [{ functionDeclarations: [{ name: "weather", parametersJsonSchema: schema }] }];
const httpOptions = { baseUrl: gatewayUrl, timeout: 10_000 };
const client = new GoogleGenAI({ apiKey: appKey, httpOptions });

const ask = (contents, config = {}, model = "auto") =>
  client.models.generateContent({ model, contents, config });
const open = (contents, config = {}, model = "auto") =>
  client.models.generateContentStream({ model, contents, config });

/** The document of an error; the SDK has it as its message. */
const told = (error) => JSON.parse(error.message).error;

test("an answer has text, reason and usage", async () => {
  for (const model of ["auto", `${OWN}-say`]) {
    const answer = await ask(steer({ text: "Hello there" }), { systemInstruction: "be kind" }, model);

    assert.equal(answer.text, "Hello there");
    assert.equal(answer.candidates[0].finishReason, FinishReason.STOP);
    assert.ok(answer.usageMetadata.totalTokenCount > 0);
  }
  const short = await ask("what is there?", { maxOutputTokens: 5 });
  assert.equal(short.candidates[0].finishReason, FinishReason.MAX_TOKENS);
});

test("a stream joins to the whole text and ends with reason and usage", async () => {
  for (const model of ["auto", `${OWN}-say`]) {
    let text = "";
    let last;
    for await (const chunk of await open(steer({ text: "Hello there" }), {}, model)) {
      text += chunk.text ?? "";
      last = chunk;
    }

    assert.equal(text, "Hello there");
    assert.equal(last.candidates[0].finishReason, FinishReason.STOP);
    assert.ok(last.usageMetadata.totalTokenCount > 0);
  }
});

test("parallel calls keep apart in a stream, and are answered", async () => {
  const calls = [];
  for await (const chunk of await open(steer({ tool_calls: CALLS }), { tools })) {
    calls.push(...(chunk.functionCalls ?? []));
  }
  const parts = calls.map(({ id, name }) => ({
    functionResponse: { id, name, response: { result: "dry" } },
  }));
  const after = await ask(
    [
      { role: "user", parts: [{ text: "rain?" }] },
      { role: "model", parts: calls.map((functionCall) => ({ functionCall })) },
      { role: "user", parts: [...parts, { text: steer({ text: "dry" }) }] },
    ],
    { tools },
  );

  assert.deepEqual(calls.map((call) => call.args), CALLS.map((call) => call.arguments));
  assert.equal(after.text, "dry");
});

test("the SDK calls a function by itself, over each dialect", async () => {
  for (const model of [`${OWN}-call`, "openai-call"]) {
    const cities = [];
    const callable = {
      tool: async () => tools[0],
      callTool: async (asked) => {
        cities.push(...asked.map((call) => call.args.city));
        return asked.map(({ id, name }) => ({
          functionResponse: { id, name, response: { result: "sunny" } },
        }));
      },
    };
    const mode = FunctionCallingConfigMode.AUTO;
    const toolConfig = { functionCallingConfig: { mode } };

    const answer = await ask("rain?", { tools: [callable], toolConfig }, model);

    assert.deepEqual(cities, ["Oslo"]);
    assert.equal(answer.text, "It is sunny.");
  }
});

test("a chat keeps its history", async () => {
  const chat = client.chats.create({ model: "auto" });

  const first = await chat.sendMessage({ message: "hi" });
  const second = await chat.sendMessage({ message: "next" });

  assert.equal(first.text, expected("hi"));
  assert.equal(second.text, expected("next"));
  const counts = [first, second].map((answer) => answer.usageMetadata.promptTokenCount);
  assert.ok(counts[1] > counts[0]);
});

test("JSON output follows its schema", async () => {
  const answer = await ask("where?", {
    responseMimeType: "application/json",
    responseJsonSchema: schema,
  });

  assert.deepEqual(Object.keys(JSON.parse(answer.text)).sort(), ["city", "days"]);
});

test("an image reaches a model that sees", async () => {
  const inlineData = { mimeType: "image/png", data: pixel.split(",")[1] };

  await ask([{ inlineData }, { text: steer({ id: "image-node-gemini", text: "a dot" }) }]);

  assert.equal((await story("image-node-gemini")).images, 1);
});

test("tokens are counted and models listed", async () => {
  const counted = await client.models.countTokens({ model: "auto", contents: "x".repeat(400) });
  const names = [];
  for await (const model of await client.models.list()) names.push(model.name);

  assert.equal(counted.totalTokens, 100);
  assert.ok(names.includes("models/auto") && names.includes(`models/${OWN}-say`));
  assert.equal((await client.models.get({ model: "auto" })).name, "models/auto");
});

test("errors are the SDK's own class with the status of the API", async () => {
  const stranger = new GoogleGenAI({ apiKey: "AIza-wrong", httpOptions });
  const cases = [
    [400, "INVALID_ARGUMENT", () => ask("hi", {}, `${OWN}-refuse`)],
    [404, "NOT_FOUND", () => ask("hi", {}, "nobody")],
    [401, "UNAUTHENTICATED", () => stranger.models.generateContent({ model: "auto", contents: "hi" })],
  ];
  for (const [status, word, call] of cases) {
    const error = await errorOf(ApiError, call);

    assert.equal(error.status, status);
    assert.equal(told(error).status, word);
  }
});

test("a used up limit says when to come again", async () => {
  const model = "node-gemini-limited";
  await ask(steer({ text: "ok" }), {}, model);

  const error = await errorOf(ApiError, () => ask("hi", {}, model));

  assert.equal(error.status, 429);
  const kinds = told(error).details.map((one) => one["@type"].split(".").at(-1));
  assert.ok(kinds.includes("RetryInfo"));
});

test("a stream that breaks throws in the iteration", async () => {
  const fault = { kind: "cut", at_byte: 9000 };
  const stream = await open(
    steer({ tokens: 200, tokens_per_s: 2000, fault }),
    {},
    "node-gemini-cut",
  );

  const error = await errorOf(ApiError, async () => {
    for await (const chunk of stream) assert.ok(chunk);
  });

  assert.match(error.message, /INTERNAL/);
});

test("an aborted stream ends the call upstream", async () => {
  const id = "node-gemini-leaves";
  const stop = new AbortController();
  const directive = steer({ id, tokens: 200, tokens_per_s: 20 });
  const stream = await open(directive, { abortSignal: stop.signal });

  assert.ok((await stream.next()).value.text);
  stop.abort();

  await becomes(id, (seen) => seen.outcomes[0] === "aborted");
});
