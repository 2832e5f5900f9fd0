// What came of a request: its end, and the calls that led there.

import { h } from "../dom.js";
import { clock, count, duration, exact, NONE, since } from "../format.js";
import { badge, empty, facts, given, section, table } from "./basics.js";
import { explanation } from "./explanation.js";

/** Shows a record whole: what came of it, the trail, and why. */
export function record(told) {
  const chosen = told.route ? { route: told.route, label: "answered" } : null;
  return [summary(told), trail(told), ...explanation(told, chosen)];
}

/** A status as a badge. */
export function statusBadge(status, code) {
  const kind = status < 300 && !code ? "good" : status < 500 && status !== 429 ? "warn" : "bad";
  return badge(kind, code ? `${status} ${code}` : String(status));
}

function summary(told) {
  return section("outcome", "What came of it", facts([
    ["Request", h("code", {}, told.id)],
    ["Came", `${clock(told.at_ms)}, ${since(told.at_ms)}`],
    ["Status", statusBadge(told.status, told.code)],
    ["Winner", told.route
      ? h("strong", { class: "route" }, told.route) : "none: no route answered"],
    ["Key", told.key ?? NONE],
    ["Client", told.client],
    ["Took", duration(told.duration_ms)],
    ["First byte after", duration(told.first_byte_ms)],
    ["Redis, upstream", `${duration(told.redis_ms)}, ${duration(told.upstream_ms)}`],
    ["Tokens", `${count(told.tokens)} (${told.tokens_source}); ${count(told.estimate_tokens)} reserved`],
    ["Answer", told.stream ? "streamed" : "whole"],
    ["Worker", told.worker],
    ...(told.is_degraded ? [["Redis", badge("warn", "decided without Redis")]] : []),
  ]));
}

function trail(told) {
  const { attempts } = told;
  if (attempts.length === 0) {
    return section("trail", "Trail of attempts", empty("No upstream was called."));
  }
  const end = Math.max(...attempts.map((one) => one.started_ms + one.latency_ms), 1);
  const columns = [
    { name: "Attempt", kind: "number", cell: ({ attempt }) => exact(attempt) },
    { name: "Route", cell: ({ route }) => h("span", { class: "route" }, route) },
    { name: "Key", cell: ({ key }) => given(key) },
    { name: "Outcome", cell: (one) => [
      badge(one.outcome === "success" ? "good" : "bad", one.outcome), " ", why(one)] },
    { name: "Began after", kind: "number", cell: (one) => duration(one.started_ms) },
    { name: "Took", kind: "number", cell: (one) => duration(one.latency_ms) },
    { name: "When", kind: "bar", cell: (one) => timeBar(one, end) },
  ];
  return section("trail", "Trail of attempts", table({
    label: "Attempts", columns, rows: attempts, key: ({ attempt }) => attempt }));
}

function why(one) {
  const parts = [
    one.class, one.code, one.reason,
    one.http_status ? `HTTP ${one.http_status}` : null,
    one.retry_after_ms ? `retry after ${duration(one.retry_after_ms)}` : null,
    one.sent ? `sent: ${one.sent}` : null,
  ].filter(Boolean);
  return h("span", { class: "note" }, [...new Set(parts)].join(" · "));
}

function timeBar(one, end) {
  const share = (ms) => `${(ms / end) * 100}%`;
  const kind = one.outcome === "success" ? "done" : "lost";
  return h("div", { class: "time-bar", "aria-hidden": "true" },
    h("span", { class: kind, style: { left: share(one.started_ms), width: share(one.latency_ms) } }));
}
