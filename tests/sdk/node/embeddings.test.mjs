// Embeddings: base64, which the SDK asks for by itself, plain numbers, lengths, errors.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BadRequestError, NotFoundError, UnprocessableEntityError } from "openai";

import { client, errorOf } from "./suite.mjs";

const model = "small";

test("vectors are the same in both encodings", async () => {
  const input = ["one", "two"];

  const byDefault = await client.embeddings.create({ model, input });
  const plain = await client.embeddings.create({ model, input, encoding_format: "float" });

  assert.deepEqual(
    byDefault.data.map((one) => one.index),
    [0, 1],
  );
  for (const [place, one] of byDefault.data.entries()) {
    assert.equal(one.embedding.length, 16);
    for (const [at, number] of one.embedding.entries()) {
      assert.ok(Math.abs(number - plain.data[place].embedding[at]) < 1e-6);
    }
  }
  assert.deepEqual(plain.usage, { prompt_tokens: 2, total_tokens: 2 });
});

test("a length can be asked for", async () => {
  const answer = await client.embeddings.create({ model, input: "hi", dimensions: 4 });

  assert.equal(answer.data[0].embedding.length, 4);
});

test("errors are the SDK's own classes", async () => {
  const create = (body) => () => client.embeddings.create({ model, input: "hi", ...body });

  const chat = await errorOf(BadRequestError, create({ model: "auto" }));
  const unknown = await errorOf(NotFoundError, create({ model: "nobody" }));
  const empty = await errorOf(BadRequestError, create({ input: [] }));
  const long = await errorOf(UnprocessableEntityError, create({ model: "vectors/small", dimensions: 64 }));

  assert.equal(chat.code, "not_an_embedding_model");
  assert.equal(unknown.code, "model_not_found");
  assert.equal(empty.param, "input");
  assert.equal(long.code, "unsupported_capability");
});
