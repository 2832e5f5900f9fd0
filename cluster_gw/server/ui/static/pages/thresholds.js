// What tunes the ranking of all combos, as forms.

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

/** Both forms; `take` is told what was read. */
export function thresholds(place, reread) {
  const headroom = fieldsForm({ id: "headroom", title: "Headroom of all combos", fields: HEADROOM, place, reread,
    send: (body, ifMatch) => ask("api/settings/headroom", { method: "PUT", body, ifMatch }) });
  const routing = fieldsForm({ id: "tuning", title: "What tunes all combos", fields: ROUTING, place, reread,
    send: (body, ifMatch) => ask("api/fallback/routing", { method: "PUT", body, ifMatch }) });
  return {
    elements: [headroom.element, routing.element],
    takeHeadroom: (told) => headroom.take(told, told.config_version),
    takeRouting: (told) => routing.take(told, told.config_version),
  };
}
