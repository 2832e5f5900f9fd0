// The official JavaScript clients of the matrix: each does the same things in its own words.

import assert from "node:assert/strict";

import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { ApiError, GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const ASK = "how are you?";
const RESULT = "sunny";
const OPTIONS = { maxRetries: 0, timeout: 10_000 };
const Place = z.object({ city: z.string(), days: z.number() });
const schema = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city", "days"],
  additionalProperties: false,
};

/** The status a call ends with; 200 when it does not fail. */
async function statusOf(kind, call) {
  try {
    await call();
  } catch (error) {
    if (error instanceof kind) return error.status;
    throw error;
  }
  return 200;
}

function chat(url, key) {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, ...OPTIONS });
  const user = (content) => [{ role: "user", content }];
  const create = (model, more = {}) =>
    client.chat.completions.create({ model, messages: user(ASK), ...more });
  return {
    chat: async (model) => (await create(model)).choices[0].message.content,
    async streaming(model) {
      let text = "";
      for await (const chunk of await create(model, { stream: true })) {
        text += chunk.choices[0]?.delta.content ?? "";
      }
      return text;
    },
    async tools(model) {
      const tools = [{ type: "function", function: { name: "weather", parameters: schema } }];
      const { message } = (await create(model, { tools })).choices[0];
      const [call] = message.tool_calls;
      assert.equal(JSON.parse(call.function.arguments).city, "Oslo");
      const result = { role: "tool", tool_call_id: call.id, content: RESULT };
      const told = await create(model, { tools, messages: [...user(ASK), message, result] });
      return told.choices[0].message.content;
    },
    async structure(model) {
      const answer = await client.chat.completions.parse({
        model,
        messages: user(ASK),
        response_format: zodResponseFormat(Place, "place"),
      });
      return answer.choices[0].message.parsed;
    },
    status: (model) => statusOf(OpenAI.APIError, () => create(model)),
    async leave(model, text) {
      const stream = await create(model, { stream: true, messages: user(text) });
      for await (const chunk of stream) if (chunk.choices[0]?.delta.content) return;
      assert.fail("the stream ended by itself");
    },
    embeddings: async (model) =>
      (await client.embeddings.create({ model, input: "hi" })).data[0].embedding,
  };
}

function responses(url, key) {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, ...OPTIONS });
  const create = (model, more = {}) => client.responses.create({ model, input: ASK, ...more });
  return {
    chat: async (model) => (await create(model)).output_text,
    async streaming(model) {
      let text = "";
      for await (const event of await create(model, { stream: true })) {
        if (event.type === "response.output_text.delta") text += event.delta;
      }
      return text;
    },
    async tools(model) {
      const tools = [{ type: "function", name: "weather", parameters: schema, strict: true }];
      const asked = await create(model, { tools });
      const [call] = asked.output.filter((item) => item.type === "function_call");
      assert.equal(JSON.parse(call.arguments).city, "Oslo");
      const result = { type: "function_call_output", call_id: call.call_id, output: RESULT };
      const input = [{ role: "user", content: ASK }, ...asked.output, result];
      return (await create(model, { tools, input })).output_text;
    },
    async structure(model) {
      const text = { format: zodTextFormat(Place, "place") };
      return (await client.responses.parse({ model, input: ASK, text })).output_parsed;
    },
    status: (model) => statusOf(OpenAI.APIError, () => create(model)),
    async leave(model, text) {
      const stream = await create(model, { stream: true, input: text });
      for await (const event of stream) if (event.type === "response.output_text.delta") return;
      assert.fail("the stream ended by itself");
    },
  };
}

function messages(url, key) {
  const client = new Anthropic({ baseURL: url, apiKey: key, ...OPTIONS });
  const user = (content) => [{ role: "user", content }];
  const asked = (model, more) => ({ model, max_tokens: 64, messages: user(ASK), ...more });
  const create = (model, more = {}) => client.messages.create(asked(model, more));
  return {
    chat: async (model) => (await create(model)).content[0].text,
    streaming: (model) => client.messages.stream(asked(model)).finalText(),
    async tools(model) {
      const tools = [{ name: "weather", input_schema: schema }];
      const { content } = await create(model, { tools });
      const [use] = content.filter((block) => block.type === "tool_use");
      assert.equal(use.input.city, "Oslo");
      const result = { type: "tool_result", tool_use_id: use.id, content: RESULT };
      const history = [...user(ASK), { role: "assistant", content }, ...user([result])];
      return (await create(model, { tools, messages: history })).content[0].text;
    },
    async structure(model) {
      const output_config = { format: zodOutputFormat(Place) };
      return (await client.messages.parse(asked(model, { output_config }))).parsed_output;
    },
    status: (model) => statusOf(Anthropic.APIError, () => create(model)),
    async leave(model, text) {
      const stream = await create(model, { stream: true, messages: user(text) });
      for await (const event of stream) if (event.type === "content_block_delta") return;
      assert.fail("the stream ended by itself");
    },
  };
}

function gemini(url, key) {
  const httpOptions = { baseUrl: url, timeout: OPTIONS.timeout };
  const { models } = new GoogleGenAI({ apiKey: key, httpOptions });
  const create = (model, config = {}, contents = ASK) =>
    models.generateContent({ model, contents, config });
  const user = (part) => ({ role: "user", parts: [part] });
  return {
    chat: async (model) => (await create(model)).text,
    async streaming(model) {
      let text = "";
      const stream = await models.generateContentStream({ model, contents: ASK });
      for await (const chunk of stream) text += chunk.text ?? "";
      return text;
    },
    async tools(model) {
      const tools = [{ functionDeclarations: [{ name: "weather", parametersJsonSchema: schema }] }];
      const asked = await create(model, { tools });
      const [call] = asked.functionCalls;
      assert.equal(call.args.city, "Oslo");
      const { name, id } = call;
      const functionResponse = { name, id, response: { result: RESULT } };
      const contents = [
        user({ text: ASK }),
        asked.candidates[0].content,
        user({ functionResponse }),
      ];
      return (await create(model, { tools }, contents)).text;
    },
    async structure(model) {
      const answer = await create(model, {
        responseMimeType: "application/json",
        responseJsonSchema: schema,
      });
      return Place.parse(JSON.parse(answer.text));
    },
    status: (model) => statusOf(ApiError, () => create(model)),
    async leave(model, text) {
      const stop = new AbortController();
      const config = { abortSignal: stop.signal };
      const stream = await models.generateContentStream({ model, contents: text, config });
      const first = await stream.next();
      assert.ok(first.value.text);
      stop.abort();
    },
    embeddings: async (model) =>
      (await models.embedContent({ model, contents: "hi" })).embeddings[0].values,
  };
}

export function sdkClients(url, key) {
  return {
    "js-chat": chat(url, key),
    "js-responses": responses(url, key),
    "js-messages": messages(url, key),
    "js-gemini": gemini(url, key),
  };
}
