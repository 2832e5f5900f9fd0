// What tunes the ranking of all combos, when something is cut off or given up, and what is no answer, as forms.

import { ask } from "../api.js";
import { fieldsForm } from "../parts/fields.js";

const HEADROOM = [
  { name: "ramp_start", label: "Lowers a score from", kind: "number",
    note: "Share of a quota that is left, 0 to 1. Empty: what the file says." },
  { name: "floor", label: "Down to", kind: "number", note: "Multiplier at nothing left, 0 to 1." },
];
const ROUTING = [
  { name: "key_selection", label: "Key selection", kind: "choice",
    options: ["auto", "least-remaining"] },
  { name: "explore_unmeasured", label: "Explores the unmeasured", kind: "number", note: "Share of requests, 0 to 1." },
  { name: "task_weight_share", label: "Share of task weights", kind: "number", note: "0 to 1." },
  { name: "cooldown_ceiling_ms", label: "Longest cooldown, ms", kind: "number", note: "Empty: what the file says." },
  { name: "peak_hours_adjust", label: "Peak hours shift weights", kind: "flag",
    read: ({ peak_hours: peak }) => peak.enabled },
  { name: "peak_start_hour", label: "They begin at", kind: "number", note: "Hour, 0 to 23.",
    read: ({ peak_hours: peak }) => peak.start_hour },
  { name: "peak_end_hour", label: "They end at", kind: "number", note: "Hour, 0 to 23.",
    read: ({ peak_hours: peak }) => peak.end_hour },
  { name: "peak_timezone", label: "Time zone", kind: "text", read: ({ peak_hours: peak }) => peak.timezone },
];

const LIMITS = [
  ["breaker.threshold", "Failures in a row that open a breaker"],
  ["breaker.cooldown_ms", "Open before one trial, ms"],
  ["breaker.count_rate_limit", "A 429 counts for it", "flag"],
  ["cooldown.transient_s", "Rest after a failure, s", "number", "0: the breaker alone."],
  ["cooldown.ceiling_s", "Longest rest of our own, s", "number", "Empty: what the file says."],
  ["penalty.rate_limit", "Penalty points for a 429"],
  ["penalty.failure", "Penalty points for a failure"],
  ["penalty.success", "Penalty points for an answer", "number", "0 or less."],
  ["penalty.decay_s", "One point goes after, s"],
  ["penalty.max", "Most penalty points"],
  ["bench.failures", "Failures that bench a model"],
  ["bench.within_s", "They count within, s"],
  ["bench.for_s", "A benched model rests, s"],
  ["degraded.healthy_ratio", "Pool degraded below", "number", "Share of usable providers, 0 to 1."],
  ["degraded.min_providers", "Only with providers", "number", "With fewer the pool is never degraded."],
  ["degraded.entry_s", "Degraded after, s"],
  ["degraded.exit_s", "Well again after, s"],
  ["attempts.max", "Attempts of a request"],
  ["attempts.time_budget_ms", "No further attempt after, ms", "number", "0: no bound."],
  ["attempts.max_consecutive_fails", "Gives up after failures in a row", "number", "0: no bound."],
  ["peek.idle_ms", "Silence that rejects a stream, ms"],
  ["peek.last_idle_ms", "The same where nobody else is left, ms"],
  ["peek.max_total_ms", "Waits for its first words, ms"],
  ["peek.max_blank", "Empty pieces before them"],
  ["peek.max_bytes", "Bytes held back before them"],
].map(([name, label, kind = "number", note = undefined]) => {
  const [section, one] = name.split(".");
  return { name, label, kind, note, read: (held) => held[section][one] };
});
const GATE = [
  { name: "reject_empty", label: "Rejects an empty answer", kind: "flag" },
  { name: "require_terminal", label: "Rejects an answer without an end", kind: "flag" },
  { name: "min_content_length", label: "Fewest characters of an answer", kind: "number" },
  { name: "apply_to", label: "Looks at", kind: "choice", options: ["both", "buffered", "stream"] },
];

/** The body of a change of fields that stand in sections: `{"breaker.threshold": 5}` is two levels there. */
function sections(body) {
  const found = {};
  for (const [name, value] of Object.entries(body)) {
    const [section, one] = name.split(".");
    (found[section] ??= {})[one] = value;
  }
  return found;
}

/** All forms; each `take` is told what was read. */
export function thresholds(place, reread) {
  const headroom = fieldsForm({ id: "headroom", title: "Headroom of all combos", fields: HEADROOM, place, reread,
    send: (body, ifMatch) => ask("api/settings/headroom", { method: "PUT", body, ifMatch }) });
  const routing = fieldsForm({ id: "tuning", title: "What tunes all combos", fields: ROUTING, place, reread,
    send: (body, ifMatch) => ask("api/fallback/routing", { method: "PUT", body, ifMatch }) });
  const limits = fieldsForm({ id: "limits", title: "Thresholds of all combos", fields: LIMITS, place, reread,
    send: (body, ifMatch) => ask("api/settings/thresholds", { method: "PUT", body: sections(body), ifMatch }) });
  let combo = "";
  const gate = fieldsForm({ id: "gate", title: "Response gate of this combo", fields: GATE, place, reread,
    send: (body, ifMatch) => ask(`api/combos/${encodeURIComponent(combo)}`, {
      method: "PUT", body: { response: body }, ifMatch }) });
  return {
    elements: [headroom.element, routing.element, limits.element, gate.element],
    takeLimits: (told) => limits.take(told, told.config_version),
    takeGate: (one, version) => {
      combo = one.id;
      gate.take(one.response, version);
    },
    takeHeadroom: (told) => headroom.take(told, told.config_version),
    takeRouting: (told) => routing.take(told, told.config_version),
  };
}
