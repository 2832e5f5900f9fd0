// What every test file of this suite works with: clients, prompts that steer the simulator, waits.

import assert from "node:assert/strict";

import OpenAI from "openai";

const SUITE = "node";
const POLL_MS = 10;

function required(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set; the suite is started by tests/sdk/test_node_sdk.py`);
  return value;
}

export const gatewayUrl = required("SDK_GATEWAY_URL");
export const appKey = required("SDK_APP_KEY");
export const narrowKey = required("SDK_NARROW_KEY");
export const maxBodyBytes = Number(required("SDK_MAX_BODY_BYTES"));
const simulatorUrl = required("SDK_SIMULATOR_URL");
const texts = JSON.parse(required("SDK_TEXTS"));

export const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

export const weather = {
  type: "function",
  function: {
    name: "weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer" } },
      required: ["city", "days"],
    },
  },
};

/** A client that does not repeat calls by itself. */
export function newClient(options = {}) {
  return new OpenAI({
    baseURL: `${gatewayUrl}/v1`,
    apiKey: appKey,
    maxRetries: 0,
    timeout: 10_000,
    ...options,
  });
}

export const client = newClient();

/** The combo of this suite that goes wrong in a certain way. */
export function trap(name) {
  return `${SUITE}-${name}`;
}

/** The text the simulator answers to a named question; the Python side works it out. */
export function expected(question) {
  assert.ok(question in texts, `no expected text for ${question}`);
  return texts[question];
}

/** A user text that tells the simulator how to answer. */
export function steer(directive) {
  return `[[sim ${JSON.stringify(directive)}]]`;
}

/** A request of one user message. */
export function ask(content, options = {}) {
  return { model: "auto", messages: [{ role: "user", content }], ...options };
}

export async function chunksOf(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

/** The text of one choice of a stream. */
export function joined(chunks, index = 0) {
  return chunks
    .flatMap((chunk) => chunk.choices)
    .filter((choice) => choice.index === index)
    .map((choice) => choice.delta.content ?? "")
    .join("");
}

/** What happened upstream to the calls that carried a directive with this id. */
export async function story(id) {
  const answer = await fetch(`${simulatorUrl}/stats/requests/${id}`);
  return answer.status === 200 ? await answer.json() : { calls: 0, outcomes: [], images: 0 };
}

/** Fails when the story of an id does not come to be as wanted within a second. */
export async function becomes(id, wanted) {
  const until = Date.now() + 1000;
  for (;;) {
    const seen = await story(id);
    if (wanted(seen)) return;
    assert.ok(Date.now() < until, `upstream saw ${JSON.stringify(seen)}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** The error a call ends with; fails when it is of another class. */
export async function errorOf(kind, call) {
  try {
    await call();
  } catch (error) {
    assert.ok(error instanceof kind, `${error?.constructor?.name}: ${error?.message}`);
    return error;
  }
  return assert.fail(`no ${kind.name}`);
}
