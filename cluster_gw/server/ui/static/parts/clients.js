// Clients as several pages show them: their bounds, their keys, and what they used.

import { ask } from "../api.js";
import { h } from "../dom.js";
import { clock, figure, NONE } from "../format.js";
import { badge, given } from "./basics.js";
import { serverTime } from "../server_time.js";

/** Each bound: its name in the API, what it is called, and what it bounds. */
export const BOUNDS = [
  { name: "rpm", label: "Requests a minute", unit: "requests a minute" },
  { name: "tpm", label: "Tokens a minute", unit: "tokens a minute" },
  { name: "concurrency", label: "At the same time", unit: "at the same time" },
  { name: "monthly_tokens", label: "Tokens a month", unit: "tokens a month (UTC)" },
  { name: "monthly_usd", label: "USD a month", unit: "USD a month (UTC)" },
  { name: "key_share", label: "Share of each key", unit: "of what each key may do" },
];

const USAGE_EVERY_MS = 60_000; // sums of a month are many records; what they say changes slowly

/** What a client is bound to, a text for each; none for a client without bounds. */
export function boundsOf(limits) {
  return BOUNDS.filter(({ name }) => limits[name] !== null && limits[name] !== undefined)
    .map(({ name, unit }) => `${figure(limits[name])} ${unit}`);
}

/** Names that somebody wrote with commas between, as a list; null where there is none. */
export function namesIn(text) {
  const names = (text ?? "").split(",").map((name) => name.trim()).filter(Boolean);
  return names.length ? names : null;
}

/** Whether the keys of a client are taken. */
export function stateBadge({ enabled }) {
  return enabled ? badge("good", "taken") : badge("bad", "refused");
}

/** What it may name, as texts. */
export function namedBy({ combos }) {
  return combos.map((one) => (one === "*" ? "everything" : one));
}

/** Keys that are still taken beside the one of now, as texts. */
export function keysBefore({ previous_keys: keys }) {
  return keys.map((one) => `${one.fingerprint}, taken until ${clock(one.until_ms)}`);
}

/** Texts below each other, or what stands for none. */
export function texts(list, none = NONE) {
  return list.length === 0 ? none : h("ul", { class: "plain" }, list.map((one) => h("li", {}, given(one))));
}

/** Gives what reads the sums of this month: once a minute, or when somebody wants it, or when it failed. */
export function usageOfMonth(query) {
  const held = { atMs: -Infinity, told: null };
  return async (signal, isAsked) => {
    if (!isAsked && performance.now() - held.atMs < USAGE_EVERY_MS) return held.told;
    const from = `${new Date(serverTime.nowMs()).toISOString().slice(0, 8)}01`;
    const told = await ask(`api/usage?${new URLSearchParams({ from, ...query })}`, { signal });
    Object.assign(held, { atMs: performance.now(), told });
    return told;
  };
}
