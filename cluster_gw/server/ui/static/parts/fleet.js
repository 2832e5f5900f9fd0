// The workers of all groups, as they report.

import { h } from "../dom.js";
import { clock, duration, exact, NONE, since } from "../format.js";
import { badge, empty, table } from "./basics.js";

export const STATUS_KINDS = { ready: "good", degraded: "warn", starting: "warn", draining: "warn" };
const OLD_MS = 15_000; // a new one comes every five seconds
const ROWS = 200;

/** A word beside a snapshot that is older than three of them should be; null without reason. */
export function oldSnapshot(ageMs) {
  return ageMs !== null && ageMs > OLD_MS ? badge("warn", "old") : null;
}

/** A table of them; those that lag say in which. */
export function fleet({ items, config_version: configVersion }) {
  if (items.length === 0) return empty("No worker has been heard within the last hour.");
  const gone = items.filter(({ alive }) => !alive);
  const shown = [...items.filter(({ alive }) => alive), ...gone].slice(0, ROWS);
  const of = (read) => ({ alive, state }) => (state === null || !alive ? NONE : read(state));
  return [table({
    label: "Workers",
    rows: shown,
    key: ({ id }) => id,
    columns: [
      { name: "Worker", cell: ({ id, state }) => [h("strong", { class: "name" }, id),
        h("div", { class: "note" }, state === null ? "told nothing"
          : `${state.host}, process ${state.pid}, version ${state.version}`)] },
      { name: "State", cell: statusOf },
      { name: "Heard", kind: "number", cell: (worker) => `${duration(worker.silent_ms)} ago` },
      { name: "In flight", kind: "number", cell: of((state) => exact(state.in_flight)) },
      { name: "Configuration", kind: "number", cell: of((state) => [exact(state.config_version),
        state.config_version < configVersion ? badge("warn", "behind") : null]) },
      { name: "File", kind: "number", cell: of((state) => exact(state.file_version)) },
      { name: "Snapshot", kind: "number", cell: of((state) => exact(state.snapshot_version)) },
      { name: "Its age", kind: "number", cell: of((state) => [duration(state.snapshot_age_ms),
        oldSnapshot(state.snapshot_age_ms)]) },
      { name: "Started", cell: of((state) => clock(state.started_at_ms)) },
    ],
  }), items.length > ROWS ? h("p", { class: "note" }, `${items.length - ROWS} more: /api/workers has all.`) : null];
}

function statusOf({ alive, drained_since_ms: drained, state }) {
  const status = state?.status ?? "unknown";
  return [
    alive ? badge(STATUS_KINDS[status] ?? "dull", status) : badge("dull", "gone"),
    drained ? h("div", { class: "note" }, `drained since ${clock(drained)}, ${since(drained)}`) : null,
  ];
}
