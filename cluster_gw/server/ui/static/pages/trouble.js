// What holds requests back now: what rests and until when, which breakers are open, which limits are
// used up, what is held against models, which keys are refused, and what failed of late.

import { ask } from "../api.js";
import { h } from "../dom.js";
import { clock, count, duration, exact, NONE, short, since, until, words } from "../format.js";
import { badge, empty, given, meter, notice, table } from "../parts/basics.js";
import { change, outcome } from "../parts/change.js";
import { panelPage } from "../parts/panels.js";
import { breakersOf, nearLimits, refusedKeys, restsOf } from "../parts/trouble.js";

const ROWS = 200;
const BREAKERS = { open: "bad", half_open: "warn", closed: "dull" };
const AT = { name: "Key", cell: ({ key, provider }) => [h("strong", { class: "name" }, key),
  h("div", { class: "note" }, provider)] };
const ABOUT = { name: "On", cell: ({ about }) =>
  about === null ? "all its models" : h("span", { class: "route" }, about) };

/** Reads what is held, what is used and what checks said. */
export function troublePage() {
  const place = outcome();
  const frame = h("div", {}, place);
  const reread = () => frame.dispatchEvent(new Event("page:read"));
  const forget = async (asked) => {
    if (await change({ place, verb: "Forget", ...asked })) reread();
  };
  return panelPage({
    title: "Trouble",
    frame,
    sources: {
      held: (signal) => ask("api/fallback/penalty-inspector", { signal }),
      limits: (signal) => ask("api/limits", { signal }),
      health: (signal) => ask("api/health", { signal }),
    },
    panels: [
      { id: "rests", title: "Keys that rest", needs: ["held"], draw: ({ held }) => rests(held, forget) },
      { id: "breakers", title: "Breakers", needs: ["held"], draw: ({ held }) => breakers(held) },
      { id: "used-up", title: "Limits used up, or nearly", needs: ["limits"],
        draw: ({ limits }) => usedUp(limits) },
      { id: "refused", title: "Keys and models that providers refuse", needs: ["health"],
        draw: ({ health }) => refused(health) },
      { id: "penalties", title: "Penalties and benches", needs: ["held"], draw: ({ held }) => penalties(held) },
      { id: "failures", title: "Failures of late", needs: ["held"], draw: ({ held }) => failures(held) },
    ],
  });
}

function listed(label, columns, rows, key, none) {
  const left = rows.length - ROWS;
  return rows.length === 0 ? empty(none) : [
    table({ label, columns, rows: rows.slice(0, ROWS), key }),
    left > 0 ? h("p", { class: "note" }, `${left} more are not shown; the API has all.`) : null,
  ];
}

function when(ms) {
  return ms ? `${until(ms)} (${clock(ms)})` : NONE;
}

function rests(held, forget) {
  const rows = restsOf(held);
  const one = (row) => ({
    title: `Let ${row.key} serve again?`,
    changes: [`Rests, their ladders and breakers of the key ${row.key} on all its models are forgotten.`],
    make: () => ask(`api/keys/${encodeURIComponent(row.key)}/cooldowns`, { method: "DELETE" }),
    done: () => `What was held against ${row.key} is forgotten.`,
  });
  const all = {
    title: "Forget everything that is held?",
    changes: ["All rests, their ladders, breakers, penalties and benches are forgotten.",
      "Calls that fail as before bring them back."],
    make: () => ask("api/fallback/penalty-inspector", { method: "DELETE" }),
    done: ({ cleared }) => `Forgotten: ${cleared} records.`,
  };
  return [
    listed("Keys that rest", [
      AT,
      ABOUT,
      { name: "Why", cell: (row) => [badge("warn", words(row.reason ?? "unknown")),
        h("div", { class: "note" }, SOURCES[row.source] ?? words(row.source))] },
      { name: "Since", cell: (row) => clock(row.since_ms) },
      { name: "Ends", cell: (row) => when(row.expires_at_ms) },
      { name: "Act", cell: (row) => h("button", { type: "button",
        "aria-label": `Forget what is held against ${row.key}`,
        onclick: () => void forget(one(row)) }, "Forget") },
    ], rows, ({ name }) => name, "No key rests."),
    held.rows.some(({ reasons }) => reasons.some((reason) => reason !== "recent_errors"))
      ? h("p", { class: "actions" }, h("button", { type: "button", onclick: () => void forget(all) },
        "Forget everything that is held …")) : null,
  ];
}

const SOURCES = {
  heuristic: "our guess; a check may end it early",
  authoritative: "the provider said so",
  credit: "until somebody pays",
  tier: "until the provider allows it",
};

function breakers(held) {
  const columns = [
    AT,
    ABOUT,
    { name: "State", cell: ({ state }) => badge(BREAKERS[state] ?? "warn", words(state)) },
    { name: "Failures", kind: "number", cell: (row) => exact(row.failures) },
    { name: "Trial", cell: (row) => when(row.until_ms) },
  ];
  const ofProviders = [
    { name: "Provider", cell: ({ provider }) => given(provider) },
    { name: "Breaker", cell: ({ breaker }) => badge(BREAKERS[breaker] ?? "warn", words(breaker)) },
    { name: "Trial in", cell: ({ opens_in_ms: ms }) => (ms ? duration(ms) : NONE) },
    { name: "Failed targets", kind: "number", cell: (row) => exact(row.failed_targets) },
  ];
  return [
    held.providers.length ? [h("h3", {}, "Of providers with failures lately"),
      listed("Providers with failures lately", ofProviders, held.providers, ({ provider }) => provider, "")] : null,
    held.providers.length ? h("h3", {}, "Of keys") : null,
    listed("Open breakers", columns, breakersOf(held), ({ name }) => name, "All breakers of keys are closed."),
  ];
}

function usedUp(limits) {
  return listed("Limits used up, or nearly", [
    AT,
    { name: "Of", cell: ({ about }) => about.map((one) => h("div", { class: "route" }, one)) },
    { name: "Limit", kind: "windows", cell: (row) => meter(row.what, row.used, row.limit) },
    { name: "Free again", cell: ({ ends_ms: ends, frees }) => (ends ? when(ends) : frees) },
  ], nearLimits(limits), ({ name }) => name, "Every limit has more than a fifth left.");
}

function refused(health) {
  const { pool } = health;
  const keys = refusedKeys(health);
  return [
    pool.degraded ? notice("warn", h("p", {},
      `The pool is degraded: ${pool.usable_providers} of ${pool.providers} providers can be used.`)) : null,
    listed("Keys that providers refuse", [
      AT,
      { name: "State", cell: ({ status }) => badge("bad", words(status)) },
      { name: "Reason", cell: ({ reason }) => (reason ? words(reason) : NONE) },
      { name: "Rejections", kind: "number", cell: (row) => exact(row.rejections) },
      { name: "Since", cell: (row) => clock(row.since_ms) },
      { name: "Checked", cell: (row) => since(row.checked_at_ms) },
    ], keys, ({ provider, key }) => JSON.stringify([provider, key]), "No key is refused."),
    health.models.length === 0 ? null : listed("Models that providers refuse", [
      { name: "Model", cell: ({ provider, model }) => h("span", { class: "route" }, `${provider}/${model}`) },
      { name: "State", cell: ({ status }) => badge("bad", words(status)) },
      { name: "Reason", cell: ({ reason }) => reason || NONE },
      { name: "Since", cell: ({ at_ms: at }) => clock(at) },
    ], health.models, ({ provider, model }) => JSON.stringify([provider, model]), ""),
  ];
}

function penalties(held) {
  const rows = held.rows.filter((row) => row.penalty.value > 0 || row.benched_until_ms);
  return listed("Penalties and benches", [
    { name: "Route", cell: ({ route }) => h("span", { class: "route" }, route) },
    { name: "Points", kind: "number", cell: ({ penalty }) =>
      h("span", { title: exact(penalty.value) }, short(penalty.value, 2)) },
    { name: "Score times", kind: "number", cell: ({ penalty }) =>
      h("span", { title: exact(penalty.rate_limit_factor) }, short(penalty.rate_limit_factor, 3)) },
    { name: "Raised", kind: "number", cell: ({ penalty }) => exact(penalty.hits) },
    { name: "Failures", kind: "number", cell: ({ penalty }) => exact(penalty.failures) },
    { name: "Benched", cell: ({ benched_until_ms: at }) =>
      at ? [badge("bad", "benched"), ` ends ${when(at)}`] : NONE },
  ], rows, ({ route }) => route, "No model has points, none is benched.");
}

function failures(held) {
  if (held.rows.some((row) => row.recent_errors === null)) {
    return notice("warn", h("p", {}, "Records of requests cannot be read now."));
  }
  const rows = held.rows.flatMap(({ route, recent_errors: errors }) =>
    errors.map((one) => ({ route, ...one }))).sort((one, other) => other.at_ms - one.at_ms);
  const every = held.rows.reduce((sum, row) => sum + row.recent_error_count, 0);
  return [
    h("p", { class: "note" }, `${count(every)} calls failed within ${held.lookback_minutes} minutes, as far as `,
      "records were kept; the five newest of each route:"),
    listed("Failures of late", [
      { name: "At", cell: (one) => h("a", { class: "time", href: `#/requests/${encodeURIComponent(one.request_id)}`,
        "aria-label": `Request ${one.request_id} of ${clock(one.at_ms)}` }, clock(one.at_ms)) },
      { name: "Route", cell: ({ route }) => h("span", { class: "route" }, route) },
      { name: "Key", cell: ({ key }) => given(key) },
      { name: "Failure", cell: (one) => [badge("bad", words(one.class)),
        one.http_status ? ` HTTP ${one.http_status}` : ""] },
      { name: "Reason", cell: ({ reason }) => reason || NONE },
      { name: "Took", kind: "number", cell: (one) => duration(one.latency_ms) },
    ], rows, (one) => JSON.stringify([one.route, one.request_id, one.at_ms, one.key]),
    "No call failed."),
  ];
}
