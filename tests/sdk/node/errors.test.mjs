// Errors: each status becomes the SDK's own class, with our code and ids in it.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  APIError,
  AuthenticationError,
  AzureOpenAI,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  UnprocessableEntityError,
} from "openai";

import {
  appKey,
  ask,
  client,
  errorOf,
  gatewayUrl,
  maxBodyBytes,
  narrowKey,
  newClient,
  pixel,
  steer,
  trap,
} from "./suite.mjs";

async function refused(kind, status, code, body, { by = client, ...options } = {}) {
  const error = await errorOf(kind, () => by.chat.completions.create(body, options));
  assert.equal(error.status, status);
  assert.equal(error.code, code);
  assert.ok(error.requestID);
  assert.equal(error.headers.get("x-gw-request-id"), error.error.request_id);
  return error;
}

test("a misshapen message is a bad request that names it", async () => {
  const error = await refused(BadRequestError, 400, "invalid_request", {
    model: "auto",
    messages: [{ role: "user", content: 5 }],
  });

  assert.equal(error.param, "messages[0].content");
});

test("a wrong key is an authentication error", async () => {
  const by = newClient({ apiKey: "sk-gw-wrong" });

  await refused(AuthenticationError, 401, "invalid_api_key", ask("hi"), { by });
});

test("a combo of others is permission denied", async () => {
  const by = newClient({ apiKey: narrowKey });
  const body = ask("hi", { model: "blind" });

  await refused(PermissionDeniedError, 403, "model_not_allowed", body, { by });
});

test("an unknown model is not found", async () => {
  const body = ask("hi", { model: "gpt-unknown" });

  await refused(NotFoundError, 404, "model_not_found", body);
});

test("a vendor's path that is not served is not found", async () => {
  const by = new AzureOpenAI({
    baseURL: `${gatewayUrl}/v1`,
    apiKey: appKey,
    apiVersion: "2026-01-01",
    maxRetries: 0,
  });

  await refused(NotFoundError, 404, "surface_not_supported", ask("hi"), { by });
});

test("a body above the bound is a 413", async () => {
  await refused(APIError, 413, "request_too_large", ask("x".repeat(maxBodyBytes + 1)));
});

test("an image for models that do not see is unprocessable", async () => {
  const body = ask([{ type: "image_url", image_url: { url: pixel } }], { model: "blind" });

  await refused(UnprocessableEntityError, 422, "unsupported_capability", body);
});

test("a used-up limit is a rate limit error that tells the wait", async () => {
  const body = ask("hi", { model: trap("limited") });
  await client.chat.completions.create(body);

  const error = await refused(RateLimitError, 429, "rate_limit_exceeded", body);

  const seconds = Number(error.headers.get("retry-after"));
  assert.ok(seconds >= 50 && seconds <= 62, `retry-after ${seconds}`);
  assert.equal(Number(error.headers.get("retry-after-ms")), error.error.retry_after_ms);
});

test("the failure of all upstreams is an internal server error", async () => {
  const body = ask(steer({ fault: { kind: "status", code: 500 } }), { model: trap("broken") });

  const error = await refused(InternalServerError, 502, "upstream_failed", body);
  await refused(InternalServerError, 502, "upstream_failed", { ...body, stream: true });

  assert.equal(error.error.attempts.length, 2);
});

test("the deadline of the client is a 504", async () => {
  const body = ask(steer({ latency_ms: 5000 }), { model: trap("silent") });
  const headers = { "X-Gw-Timeout": "200ms" };

  await refused(InternalServerError, 504, "deadline_exceeded", body, { headers });
});

