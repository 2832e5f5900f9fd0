// Asks for the cells of the matrix that the environment names, and prints what was seen as JSON.

import { agentClients } from "./matrix_agent.mjs";
import { sdkClients } from "./matrix_sdks.mjs";

const url = process.env.SDK_GATEWAY_URL;
const key = process.env.SDK_APP_KEY;
const upstreamUrl = process.env.SDK_UPSTREAM_URL;
const cells = JSON.parse(process.env.SDK_CELLS);
const clients = { ...sdkClients(url, key), ...agentClients(url, key) };

/** "left" once the upstream saw that this stream was given up. */
async function leaving(name) {
  const until = Date.now() + 5000;
  while (Date.now() < until) {
    const left = await (await fetch(`${upstreamUrl}/left`)).json();
    if (left.includes(name)) return "left";
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return "still open upstream";
}

async function seenBy(client, dialect, feature, name) {
  switch (feature) {
    case "chat":
      return client.chat(`${dialect}-say`);
    case "streaming":
      return client.streaming(`${dialect}-say`);
    case "tools":
      return client.tools(`${dialect}-call`);
    case "structured output":
      return client.structure(`${dialect}-place`);
    case "embeddings":
      return client.embeddings(`${dialect}/embed`);
    case "errors":
      return [await client.status(`${dialect}-refuse`), await client.status("nobody")];
    default:
      await client.leave(`${dialect}-wait`, name);
      return leaving(name);
  }
}

const seen = {};
for (const [id, dialect, feature] of cells) {
  const cell = `${id}/${dialect}/${feature}`;
  try {
    seen[cell] = await seenBy(clients[id], dialect, feature, `cell:${id}:${dialect}`);
  } catch (error) {
    seen[cell] = `${error?.constructor?.name}: ${error?.message}`;
  }
}
process.stdout.write(JSON.stringify(seen));
