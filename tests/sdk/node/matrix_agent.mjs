// An agent framework in the matrix: an agent of `ai` with one tool, streamed, over two APIs.

import assert from "node:assert/strict";

import { createOpenAI } from "@ai-sdk/openai";
import {
  APICallError,
  Output,
  ToolLoopAgent,
  embed,
  generateText,
  stepCountIs,
  streamText,
  tool,
} from "ai";
import { z } from "zod";

const prompt = "how are you?";
const maxRetries = 0;
const inputSchema = z.object({ city: z.string(), days: z.number() });

function agentClient(provider, modelOf) {
  const ask = (model, more = {}) =>
    generateText({ model: modelOf(model), prompt, maxRetries, ...more });
  return {
    chat: async (model) => (await ask(model)).text,
    streaming: (model) => streamText({ model: modelOf(model), prompt, maxRetries }).text,
    async tools(model) {
      const cities = [];
      const weather = tool({
        inputSchema,
        execute: ({ city }) => {
          cities.push(city);
          return "sunny";
        },
      });
      const agent = new ToolLoopAgent({
        model: modelOf(model),
        tools: { weather },
        stopWhen: stepCountIs(3),
        maxRetries,
      });
      const run = await agent.stream({ prompt });
      let text = "";
      for await (const piece of run.textStream) text += piece;
      assert.deepEqual(cities, ["Oslo"]);
      return text;
    },
    async structure(model) {
      return (await ask(model, { output: Output.object({ schema: inputSchema }) })).output;
    },
    async status(model) {
      try {
        await ask(model);
      } catch (error) {
        if (APICallError.isInstance(error)) return error.statusCode;
        throw error;
      }
      return 200;
    },
    async leave(model, text) {
      const stop = new AbortController();
      const abortSignal = stop.signal;
      const run = streamText({ model: modelOf(model), prompt: text, maxRetries, abortSignal });
      for await (const piece of run.textStream) {
        assert.ok(piece);
        break;
      }
      stop.abort();
    },
    embeddings: async (model) =>
      (await embed({ model: provider.embeddingModel(model), value: "hi", maxRetries })).embedding,
  };
}

export function agentClients(url, key) {
  const provider = createOpenAI({ baseURL: `${url}/v1`, apiKey: key });
  return {
    "js-agent-chat": agentClient(provider, (model) => provider.chat(model)),
    "js-agent-responses": agentClient(provider, (model) => provider.responses(model)),
  };
}
