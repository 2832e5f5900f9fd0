// The response cache: what it holds and saved, its switch and bounds, and its removal.

import { ask } from "../api.js";
import { h } from "../dom.js";
import { count, NONE, percent } from "../format.js";
import { badge, facts, field, notice, tile } from "../parts/basics.js";
import { change, outcome } from "../parts/change.js";
import { fieldsForm } from "../parts/fields.js";
import { panelPage } from "../parts/panels.js";

const FIELDS = [
  { name: "enabled", label: "Answers are stored", kind: "flag" },
  { name: "ttl_s", label: "For how long, s", kind: "number" },
  { name: "max_temperature", label: "Up to which temperature", kind: "number" },
  { name: "max_entries", label: "Answers at most", kind: "number" },
  { name: "max_entry_mb", label: "One has MB at most", kind: "number" },
  { name: "max_mb", label: "All have MB at most", kind: "number" },
  { name: "scope", label: "Shared by", kind: "choice", options: ["client", "shared"] },
];

const COUNTS = [["stored", "Written so far"], ["evicted", "Made room for others"], ["expired", "Came to their end"],
  ["removed", "Removed by operators"], ["doomed", "Being deleted now"], ["saved_prompt_tokens", "Prompt tokens saved"],
  ["saved_completion_tokens", "Completion tokens saved"]];

/** Reads settings and sums; the form keeps what somebody has typed. */
export function cachePage() {
  const place = outcome();
  const frame = h("div", {});
  const reread = () => frame.dispatchEvent(new Event("page:read"));
  const form = fieldsForm({ id: "cache", title: "Settings", fields: FIELDS, place, reread,
    send: (body, ifMatch) => ask("api/cache", { method: "PUT", body, ifMatch }) });
  const client = h("input", { id: "flush-client", autocomplete: "off" });
  const model = h("input", { id: "flush-model", autocomplete: "off" });
  const flush = async () => {
    const bounds = Object.entries({ client: client.value.trim(), model: model.value.trim() })
      .filter(([, value]) => value);
    const whose = bounds.map(([name, value]) => `${name} ${value}`).join(" and ");
    const isDone = await change({ place, title: "Remove stored answers?", verb: "Remove",
      changes: [whose ? `All stored answers of ${whose}.` : "All stored answers of everybody."],
      make: () => ask(`api/cache?${new URLSearchParams(bounds)}`, { method: "DELETE" }),
      done: ({ removed }) => `Removed: ${removed} answers.` });
    if (isDone) reread();
  };
  frame.append(place, form.element, h("section", { class: "editor", "aria-labelledby": "flush-title" },
    h("h2", { id: "flush-title" }, "Remove stored answers"),
    h("div", { class: "row" }, field("Of the client", client, "Empty: of all."),
      field("Of the model", model, "As provider/model; empty: of all.")),
    h("button", { type: "button", onclick: () => void flush() }, "Remove …")));
  return panelPage({
    title: "Cache",
    frame,
    sources: { cache: (signal) => ask("api/cache", { signal }) },
    panels: [{ id: "stored", title: "What it holds and saved", needs: ["cache"], draw: ({ cache }) => {
      form.take(cache, cache.config_version);
      return stored(cache);
    } }],
  });
}

function stored(cache) {
  const { entries, hits, misses } = cache;
  return [
    cache.reachable ? null : notice("warn", h("p", {},
      "Its Redis is away: what it holds cannot be told, and requests go on without it.")),
    h("div", { class: "tiles" },
      tile("Now", cache.enabled ? badge("good", "on") : badge("dull", "off")),
      tile("Stored answers", count(entries)),
      tile("Bytes", count(cache.stored_bytes)),
      tile("Hits", count(hits), cache.hit_rate === null ? "" : `${percent(cache.hit_rate)} of lookups`),
      tile("Misses", count(misses)),
      tile("Saved tokens", count(cache.saved_tokens))),
    facts(COUNTS.map(([name, text]) => [text, count(cache[name])])
      .concat([["Idempotency keys", cache.idempotency ? (cache.idempotency.enabled ? "on" : "off") : NONE]])),
  ];
}
