// The group at a glance, from what it tells everybody and from what is known of its keys.

import { ask, Fault, orFault, readOpen } from "../api.js";
import { h } from "../dom.js";
import { count, duration, exact, NONE, percent, words } from "../format.js";
import { parseMetrics, total, totalsBy } from "../metrics.js";
import { badge, empty, facts, failed, given, notice, section, table, tile } from "../parts/basics.js";

const STATUS_KINDS = { ready: "good", degraded: "warn", starting: "warn", draining: "warn" };

/** Reads everything each time; rates are between one look and the next. */
export function overviewPage() {
  let before = null;
  return {
    title: "Overview",
    isLive: true,
    async read(signal) {
      const [ready, metrics, keys, health, held] = await Promise.all([
        readOpen("readyz", { isJson: true, isStatus: true, signal }),
        orFault(readOpen("metrics", { signal })),
        orFault(ask("api/keys", { signal })),
        orFault(ask("api/health", { signal })),
        orFault(ask("api/fallback/penalty-inspector", { signal })),
      ]);
      const now = metrics instanceof Fault ? null : { atMs: Date.now(), all: parseMetrics(metrics) };
      const data = { ready, metrics: now ?? metrics, keys, health, held, before };
      before = now;
      return data;
    },
    draw: (data) => [
      group(data),
      ...(data.metrics instanceof Fault
        ? [noMetrics(data.metrics)]
        : [requests(data), errors(data.metrics.all), providers(data.metrics.all)]),
      keys(data),
    ],
  };
}

function group({ ready, metrics }) {
  const all = metrics instanceof Fault ? new Map() : metrics.all;
  const { version, age_ms: ageMs } = ready.snapshot ?? {};
  return section("group", "This group", facts([
    ["Status", badge(STATUS_KINDS[ready.status] ?? "bad", ready.status ?? "unknown")],
    ["Redis", badge(ready.redis === "ok" ? "good" : "bad", ready.redis ?? "unknown")],
    ["Workers alive", exact(total(all, "gw_group_workers_count"))],
    ["Workers that answered", exact(total(all, "gw_workers_count"))],
    ["Workers of all groups", exact(total(all, "gw_alive_workers_count"))],
    ["Restarts", all.size ? exact(total(all, "gw_child_restarts_total") ?? 0) : NONE],
    ["Configuration", `version ${exact(ready.config_version)}, file ${exact(ready.file_version)}`],
    ["Snapshot", version ? `version ${version}, ${duration(ageMs)} old` : "none yet"],
  ]));
}

function noMetrics(fault) {
  return section("requests", "Requests", fault.status === 404
    ? notice("info", h("p", {}, "Metrics are switched off (telemetry.metrics)."))
    : failed("The metrics could not be read.", fault));
}

function requests({ metrics, before }) {
  const { all, atMs } = metrics;
  const every = total(all, "gw_requests_total") ?? 0;
  const isWell = ({ status }) => status < 400;
  const served = total(all, "gw_requests_total", isWell) ?? 0;
  const seconds = before ? (atMs - before.atMs) / 1000 : 0;
  const rate = (name) => {
    const grown = (total(all, name) ?? 0) - (before ? total(before.all, name) ?? 0 : 0);
    return seconds > 0 ? `${(Math.max(grown, 0) / seconds).toFixed(1)} a second` : "";
  };
  const rows = byComboAndStatus(all);
  return section("requests", "Requests",
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
    }));
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
  return section("errors", "Errors", rows.length === 0 ? empty("No errors since the start.") : table({
    label: "Errors by code",
    rows,
    key: ([whose, code]) => JSON.stringify([whose, code]),
    columns: [
      { name: "Whose", cell: ([whose]) => whose },
      { name: "Code", cell: ([, code]) => h("code", {}, code) },
      { name: "Requests", kind: "number", cell: ([, , n]) => count(n) },
    ],
  }));
}

function providers(all) {
  const samples = all.get("gw_attempts_total") ?? [];
  const names = [...new Set(samples.map(({ labels }) => labels.provider))].sort();
  const sum = (provider, holds) => total(all, "gw_attempts_total", (labels) =>
    labels.provider === provider && holds(labels.outcome));
  const failures = (provider) => samples
    .filter(({ labels }) => labels.provider === provider && labels.outcome !== "success")
    .map(({ labels, value }) => `${labels.outcome} ${value}`).join(", ");
  return section("providers", "Providers", names.length === 0
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
    }));
}

function keys({ keys: declared, health, held }) {
  const parts = [declared, health, held];
  const fault = parts.find((one) => one instanceof Fault);
  if (fault) return section("keys", "Keys", failed("What is known of keys could not be read.", fault));
  const disabled = declared.items.filter(({ enabled }) => !enabled).length;
  const states = new Map();
  for (const { status } of health.items) states.set(status, (states.get(status) ?? 0) + 1);
  const { pool } = health;
  const restingKeys = new Set(held.rows.flatMap(({ provider, cooldowns }) =>
    cooldowns.map(({ key }) => JSON.stringify([provider, key]))));
  const openBreakers = held.rows.flatMap(({ breakers }) => breakers)
    .filter(({ state }) => state === "open").length;
  return section("keys", "Keys",
    pool.degraded ? notice("warn", h("p", {},
      `The pool is degraded: ${pool.usable_providers} of ${pool.providers} providers can be used.`))
      : null,
    h("div", { class: "tiles" },
      tile("All", count(declared.items.length)),
      tile("Disabled", count(disabled)),
      [...states].sort().map(([status, n]) => tile(`Status ${words(status)}`, count(n))),
      tile("Resting", count(restingKeys.size)),
      tile("Open breakers", count(openBreakers)),
      tile("Providers in use", `${pool.usable_providers} of ${pool.providers}`)),
    h("p", {}, h("a", { href: "#/keys" }, "All keys and their limits")));
}
