// What was used: requests, tokens, cost and errors of some days, grouped as somebody wants it.

import { ask } from "../api.js";
import { h } from "../dom.js";
import { count, exact, NONE } from "../format.js";
import { empty, field, given, notice, section, table, tile } from "../parts/basics.js";
import { serverTime } from "../server_time.js";

const LISTED = 200;
const DAY_MS = 86_400_000;
const SPANS = [["1", "today"], ["7", "7 days"], ["30", "30 days"], ["90", "90 days"]];
const GROUPS = [["day", "day"], ["client", "client"], ["model", "model"], ["key", "key"],
  ["client,model", "client and model"], ["model,key", "model and key"], ["day,client", "day and client"],
  ["day,model", "day and model"], ["client,model,key,day", "client, model, key and day"]];
const TITLES = { day: "Day", client: "Client", model: "Model", key: "Key" };

/** The table is read again when somebody asks for something else, or for it. */
export function usagePage() {
  let offset = 0;
  const again = () => frame.dispatchEvent(new Event("page:read"));
  const fresh = () => {
    offset = 0;
    again();
  };
  const span = choice("span", SPANS, "7", fresh);
  const by = choice("by", GROUPS, "day", fresh);
  const frame = h("div", { class: "row" },
    field("Days", span, "In UTC, up to today."), field("By", by));
  const turn = (to) => {
    offset = to;
    again();
  };
  return {
    title: "Usage",
    isLive: false,
    frame,
    read: (signal) => ask(`api/usage?${query(span.value, by.value, offset)}`, { signal }),
    draw: (told) => draw(told, turn),
  };
}

function choice(id, options, chosen, onchange) {
  return h("select", { id, onchange }, options.map(([value, text]) =>
    h("option", { value, selected: value === chosen }, text)));
}

function query(days, by, offset) {
  const words = new URLSearchParams({ group_by: by, limit: LISTED, offset });
  if (days !== "1") words.set("from", day(serverTime.nowMs() - (Number(days) - 1) * DAY_MS));
  else words.set("from", day(serverTime.nowMs()));
  return words;
}

function day(ms) {
  return new Date(ms).toISOString().slice(0, 10);
}

function draw(told, turn) {
  const { items, total } = told;
  return [
    told.unreadable.length > 0 && notice("warn", h("p", {},
      "Some records cannot be read; what they say is missing here: "), told.unreadable.join(", ")),
    told.has_other && notice("warn", h("p", {}, "_other: more clients and models used a key on one day than ",
      "are counted apart.")),
    h("div", { class: "tiles" },
      tile("Requests", count(total.requests), `${count(total.errors)} errors`),
      tile("Tokens", count(total.total_tokens), `${count(total.cached_tokens)} of them cached`),
      tile("Cost", cost(total), unpriced(total)),
      tile("Cache hits", count(total.cache_hits),
        `${count(total.saved_prompt_tokens)} + ${count(total.saved_completion_tokens)} tokens saved`)),
    section("used", `From ${told.from} to ${told.to}`, items.length === 0
      ? empty("Nothing was used on these days.")
      : table({ label: "Usage", columns: columns(told.group_by), rows: items,
        key: (row) => JSON.stringify(told.group_by.map((name) => row[name])) }),
    pager(told, turn)),
  ];
}

function columns(groups) {
  return [
    ...groups.map((name) => ({ name: TITLES[name], cell: (row) => given(row[name] ?? NONE) })),
    ...[["Requests", "requests"], ["Prompt", "prompt_tokens"], ["Completion", "completion_tokens"],
      ["Cached", "cached_tokens"], ["Reasoning", "reasoning_tokens"]]
      .map(([title, name]) => ({ name: title, kind: "number", cell: (row) => count(row[name]) })),
    { name: "Cost", kind: "number", cell: (row) => cost(row) },
    { name: "Errors", kind: "number", cell: errors },
    { name: "Cancelled", kind: "number", cell: (row) => count(row.cancelled) },
    { name: "Cache hits", kind: "number", cell: (row) => count(row.cache_hits) },
  ];
}

function cost({ cost_usd: usd }) {
  return usd === null ? "unknown" : `${exact(usd)} USD`;
}

function unpriced({ unpriced_requests: requests }) {
  return requests > 0 ? `without ${count(requests)} requests that have no price` : "";
}

function errors({ errors: failed, errors_by_family: families }) {
  const told = Object.entries(families).map(([family, n]) => `${family} ${n}`).join(", ");
  return told ? h("span", { title: told }, count(failed)) : count(failed);
}

function pager(told, turn) {
  if (told.total_items <= LISTED) return null;
  const last = Math.min(told.offset + LISTED, told.total_items);
  return h("p", { class: "row", "data-key": "pager" },
    h("button", { type: "button", disabled: told.offset === 0,
      onclick: () => turn(Math.max(0, told.offset - LISTED)) }, "Before"),
    h("span", { class: "note" }, `${told.offset + 1} to ${last} of ${told.total_items}`),
    h("button", { type: "button", disabled: told.next_offset === null,
      onclick: () => turn(told.next_offset) }, "Next"));
}
