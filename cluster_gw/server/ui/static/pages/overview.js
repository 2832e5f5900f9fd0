// The group at a glance, from what it tells everybody and from what is known of its keys.

import { ask, readOpen } from "../api.js";
import { h } from "../dom.js";
import { count, duration, exact, NONE, percent, words } from "../format.js";
import { parseMetrics, total, totalsBy } from "../metrics.js";
import { badge, empty, facts, given, notice, table, tile } from "../parts/basics.js";
import { fleet, oldSnapshot, STATUS_KINDS } from "../parts/fleet.js";
import { panelPage } from "../parts/panels.js";
import { breakersOf, nearLimits, refusedKeys, restsOf } from "../parts/trouble.js";

const COMBOS_SHOWN = 100;

/** Reads everything each time; rates are between one look and the next. */
export function overviewPage() {
  const look = { before: null, now: null };
  return panelPage({
    title: "Overview",
    sources: {
      ready: (signal) => readOpen("readyz", { isJson: true, isStatus: true, signal }),
      metrics: async (signal) => {
        const all = parseMetrics(await readOpen("metrics", { signal }));
        Object.assign(look, { before: look.now, now: { atMs: Date.now(), all } });
        return { ...look.now, before: look.before };
      },
      workers: (signal) => ask("api/workers", { signal }),
      held: (signal) => ask("api/fallback/penalty-inspector", { signal }),
      limits: (signal) => ask("api/limits", { signal }),
      health: (signal) => ask("api/health", { signal }),
      keys: (signal) => ask("api/keys", { signal }),
      combos: (signal) => ask("api/combos", { signal }),
    },
    panels: [
      { id: "group", title: "This group", needs: ["ready"], draw: ({ ready }) => group(ready) },
      { id: "holds", title: "What is held back", needs: ["held", "limits", "health"], draw: holds },
      { id: "workers", title: "Workers of all groups", needs: ["workers"],
        draw: ({ workers }) => fleet(workers) },
      { id: "redis", title: "Redis, as this group sees it", needs: ["ready", "metrics"], draw: redis },
      { id: "requests", title: "Requests", needs: ["metrics"], draw: ({ metrics }) => requests(metrics) },
      { id: "errors", title: "Errors", needs: ["metrics"], draw: ({ metrics }) => errors(metrics.all) },
      { id: "providers", title: "Providers", needs: ["metrics"], draw: ({ metrics }) => providers(metrics.all) },
      { id: "combos", title: "Combos", needs: ["combos"], draw: ({ combos }) => combosOf(combos) },
      { id: "keys", title: "Keys", needs: ["keys", "health"], draw: keys },
    ],
  });
}

function group(ready) {
  const { version, age_ms: ageMs } = ready.snapshot ?? {};
  return facts([
    ["Status", badge(STATUS_KINDS[ready.status] ?? "bad", ready.status ?? "unknown")],
    ["Redis", badge(ready.redis === "ok" ? "good" : "bad", ready.redis ?? "unknown")],
    ["Configuration", `version ${exact(ready.config_version)}, file ${exact(ready.file_version)}`],
    ["Snapshot", version ? `version ${version}` : "none yet"],
    ["Its age", version ? [duration(ageMs), oldSnapshot(ageMs)] : NONE],
  ]);
}

function holds({ held, limits, health }) {
  const near = nearLimits(limits);
  const full = near.filter(({ used, limit }) => used >= limit).length;
  const cutOff = held.providers.filter(({ breaker }) => breaker !== "closed").length;
  const open = breakersOf(held).length;
  const entries = [
    ["rests", "Rests of keys", restsOf(held).length, "bad", ""],
    ["breakers", "Breakers not closed", open + cutOff, "bad", ""],
    ["used-up", "Limits used up", full, "bad", near.length > full ? `${near.length - full} more nearly` : ""],
    ["refused", "Keys refused", refusedKeys(health).length, "bad", ""],
    ["penalties", "Models with points", held.rows.filter(({ penalty }) => penalty.value > 0).length, "warn", ""],
    ["penalties", "Models benched", held.rows.filter((row) => row.benched_until_ms).length, "bad", ""],
  ];
  return [
    h("div", { class: "tiles" }, entries.map(([, name, n, kind, note]) =>
      tile(name, [exact(n), " ", n ? badge(kind, kind === "bad" ? "look" : "lowered") : badge("good", "none")], note))),
    h("p", {}, h("a", { href: "#/trouble" }, "What it is, why, and until when")),
  ];
}

function redis({ ready, metrics }) {
  const { all } = metrics;
  const workers = total(all, "gw_workers_count");
  const up = (name) => `${exact(total(all, name))} of ${exact(workers)} workers`;
  return facts([
    ["State", badge(ready.redis === "ok" ? "good" : "bad", ready.redis ?? "unknown")],
    ["Connected", up("gw_redis_up_count")],
    ["Hear of changes", up("gw_events_up_count")],
    ["Decide without it now", exact(total(all, "gw_alone_workers_count") ?? 0)],
    ["Redis of the cache", all.has("gw_cache_redis_up_count") ? up("gw_cache_redis_up_count") : "the same"],
    ["Calls with unknown outcome", count(total(all, "gw_redis_lost_total") ?? 0)],
    ["Connections made anew", count(total(all, "gw_redis_reconnects_total") ?? 0)],
    ["Settlements waiting", count(total(all, "gw_settlements_pending_count"))],
    ["Let in without it, not told yet", count(total(all, "gw_journal_entries_count") ?? 0)],
    ["Worker processes alive", exact(total(all, "gw_group_workers_count"))],
    ["Restarts of workers", exact(total(all, "gw_child_restarts_total") ?? 0)],
  ]);
}

function combosOf({ items }) {
  return items.length === 0 ? empty("No combo is declared.") : [table({
    label: "Combos",
    rows: items.slice(0, COMBOS_SHOWN),
    key: ({ id }) => id,
    columns: [
      { name: "Combo", cell: (combo) => [
        h("a", { class: "name", href: `#/routing/${encodeURIComponent(combo.id)}` }, combo.id),
        combo.default ? badge("dull", "default") : null] },
      { name: "Family", cell: ({ family }) => family },
      { name: "Strategy", cell: ({ strategy }) => strategy },
      { name: "Members", kind: "number", cell: ({ members }) => exact(members.length) },
      { name: "Of these off", kind: "number", cell: ({ members }) =>
        exact(members.filter(({ enabled }) => !enabled).length) },
      { name: "Stays on a route", cell: ({ sticky }) => (sticky.enabled ? `by ${sticky.scope}` : "no") },
    ],
  }), items.length > COMBOS_SHOWN ? h("p", { class: "note" },
    `${items.length - COMBOS_SHOWN} more: Routing lists all.`) : null];
}

function requests({ all, atMs, before }) {
  const every = total(all, "gw_requests_total") ?? 0;
  const isWell = ({ status }) => status < 400;
  const served = total(all, "gw_requests_total", isWell) ?? 0;
  const seconds = before ? (atMs - before.atMs) / 1000 : 0;
  const rate = (name) => {
    const grown = (total(all, name) ?? 0) - (before ? total(before.all, name) ?? 0 : 0);
    return seconds > 0 ? `${(Math.max(grown, 0) / seconds).toFixed(1)} a second` : `${NONE} a second`;
  };
  const rows = byComboAndStatus(all);
  return [
    h("div", { class: "tiles" },
      tile("Finished", count(every), rate("gw_requests_total")),
      tile("Served", every ? percent(served / every) : NONE),
      tile("In flight", count(total(all, "gw_in_flight_count"))),
      tile("After a fallback", count(total(all, "gw_fallbacks_total") ?? 0)),
      tile("Client left", count(total(all, "gw_client_gone_total") ?? 0)),
      tile("Tokens", count(total(all, "gw_tokens_total") ?? 0), rate("gw_tokens_total"))),
    rows.length === 0 ? empty("No request has finished since the start.") : table({
      label: "Requests by combo and status",
      rows,
      key: ({ labels }) => JSON.stringify([labels.combo, labels.status]),
      columns: [
        { name: "Combo", cell: ({ labels }) => given(labels.combo) },
        { name: "Status", cell: ({ labels }) =>
          badge(isWell(labels) ? "good" : "bad", labels.status) },
        { name: "Requests", kind: "number", cell: ({ value }) => count(value) },
      ],
    })];
}

function byComboAndStatus(all) {
  const order = ({ combo, status }) => `${combo} ${status}`;
  return [...(all.get("gw_requests_total") ?? [])].sort((one, other) =>
    order(one.labels).localeCompare(order(other.labels)));
}

function errors(all) {
  const rows = [
    ...totalsBy(all, "gw_exhausted_total", "code").map(([code, n]) => ["pool", code, n]),
    ...totalsBy(all, "gw_client_faults_total", "code").map(([code, n]) => ["client", code, n]),
  ].filter(([, , n]) => n > 0);
  return rows.length === 0 ? empty("No errors since the start.") : table({
    label: "Errors by code",
    rows,
    key: ([whose, code]) => JSON.stringify([whose, code]),
    columns: [
      { name: "Whose", cell: ([whose]) => whose },
      { name: "Code", cell: ([, code]) => h("code", {}, code) },
      { name: "Requests", kind: "number", cell: ([, , n]) => count(n) },
    ],
  });
}

function providers(all) {
  const samples = all.get("gw_attempts_total") ?? [];
  const names = [...new Set(samples.map(({ labels }) => labels.provider))].sort();
  const sum = (provider, holds) => total(all, "gw_attempts_total", (labels) =>
    labels.provider === provider && holds(labels.outcome));
  const failures = (provider) => samples
    .filter(({ labels }) => labels.provider === provider && labels.outcome !== "success")
    .map(({ labels, value }) => `${labels.outcome} ${value}`).join(", ");
  return names.length === 0
    ? empty("No provider was called since the start.")
    : table({
      label: "Upstream calls by provider",
      rows: names,
      key: (name) => name,
      columns: [
        { name: "Provider", cell: given },
        { name: "Served", kind: "number", cell: (name) =>
          count(sum(name, (outcome) => outcome === "success")) },
        { name: "Failed", kind: "number", cell: (name) =>
          count(sum(name, (outcome) => outcome !== "success")) },
        { name: "Failures by kind", cell: (name) => failures(name) || NONE },
        { name: "Tokens", kind: "number", cell: (name) =>
          count(total(all, "gw_tokens_total", ({ provider }) => provider === name)) },
      ],
    });
}

function keys({ keys: declared, health }) {
  const disabled = declared.items.filter(({ enabled }) => !enabled).length;
  const states = new Map();
  for (const { status } of health.items) states.set(status, (states.get(status) ?? 0) + 1);
  const { pool } = health;
  return [
    pool.degraded ? notice("warn", h("p", {},
      `The pool is degraded: ${pool.usable_providers} of ${pool.providers} providers can be used.`))
      : null,
    h("div", { class: "tiles" },
      tile("All", count(declared.items.length)),
      tile("Disabled", count(disabled)),
      [...states].sort().map(([status, n]) => tile(`Status ${words(status)}`, count(n))),
      tile("Providers in use", `${pool.usable_providers} of ${pool.providers}`)),
    h("p", {}, h("a", { href: "#/keys" }, "All keys and their limits")),
  ];
}
