// Taking workers out of use while they live: which are, what each has left, and doing so.

import { ask, Fault, orFault, readOpen } from "../api.js";
import { h, show } from "../dom.js";
import { clock, count, duration, exact, NONE, since } from "../format.js";
import { parseMetrics, totalsBy } from "../metrics.js";
import { badge, empty, failed, given, notice, table, tile } from "../parts/basics.js";
import { change, outcome } from "../parts/change.js";
import { STATUS_KINDS } from "../parts/fleet.js";
import { panelPage } from "../parts/panels.js";

const ROWS = 200;
const WITHIN = "A worker hears of it within a second; what is under way ends by itself.";
const NOBODY = "No worker is left that load balancers send anything: /readyz of every group says 503.";

/** Reads the workers, and which leases hold a slot. */
export function drainPage() {
  const place = outcome();
  const frame = h("div", {}, h("p", { class: "note" },
    "A drained worker lives and serves what comes all the same. New connections pass it by, and once all workers of a ",
    "group are drained, load balancers are told to send it nothing. A restart ends it, too."), place);
  const reread = () => frame.dispatchEvent(new Event("page:read"));

  /** Asks with the workers as they are at this moment: others may drain some, too. */
  async function act({ isAll, id, isBack }) {
    const workers = await orFault(ask("api/workers"));
    if (workers instanceof Fault) {
      show(place, failed("Nothing was asked for, since the workers cannot be told.", workers));
      place.focus();
      return;
    }
    const { items } = workers;
    const left = items.filter((one) => isInUse(one) && !isAll && one.id !== id).length;
    const whom = isAll ? "all workers of all groups" : id;
    const query = new URLSearchParams(isAll ? { all: "true" } : { worker: id });
    await change(isBack
      ? { place, title: `Have ${whom} take part again?`, verb: "Take part", note: WITHIN,
        changes: ["Load balancers send requests again."],
        make: () => ask(`api/drain?${query}`, { method: "DELETE" }), done: told("takes part again", "take part again") }
      : { place, title: `Drain ${whom}?`, verb: "Drain", note: WITHIN,
        changes: [left ? `${left} of ${items.filter(({ alive }) => alive).length} living workers stay in use.` : NOBODY],
        make: () => ask("api/drain", { method: "POST", body: isAll ? { all: true } : { worker: id } }),
        done: told("is drained", "are drained") });
    reread();
  }

  return panelPage({
    title: "Drain",
    frame,
    sources: {
      workers: (signal) => ask("api/workers", { signal }),
      metrics: async (signal) => parseMetrics(await readOpen("metrics", { signal })),
    },
    panels: [
      { id: "drain", title: "Workers of all groups", needs: ["workers"], draw: ({ workers }) => list(workers, act) },
      { id: "leases", title: "Leases that hold a slot", needs: ["metrics"], draw: ({ metrics }) => leases(metrics) },
    ],
  });
}

function told(one, many) {
  return ({ changed }) => (changed.length === 0 ? "That was so already."
    : `${changed.join(", ")} ${changed.length === 1 ? one : many}.`);
}

function isInUse({ alive, drained_since_ms: drained, state }) {
  return alive && !drained && state?.status !== "draining";
}

function list({ items }, act) {
  if (items.length === 0) return empty("No worker has been heard within the last hour.");
  const living = items.filter(({ alive }) => alive);
  const drained = living.filter((one) => one.drained_since_ms);
  const used = living.filter(isInUse);
  const flying = (some) => some.reduce((sum, { state }) => sum + (state?.in_flight ?? 0), 0);
  const shown = [...living, ...items.filter(({ alive }) => !alive)].slice(0, ROWS);
  return [
    used.length ? null : notice("warn", h("p", {}, NOBODY)),
    h("div", { class: "tiles" },
      tile("In use", `${used.length} of ${living.length}`),
      tile("Drained", exact(drained.length)),
      tile("In flight on these", count(flying(drained)), drained.length && !flying(drained) ? "nothing left" : "")),
    h("p", { class: "actions" },
      h("button", { type: "button", "data-key": "all", disabled: used.length === 0,
        onclick: () => void act({ isAll: true, isBack: false }) }, "Drain all …"),
      h("button", { type: "button", "data-key": "none", disabled: drained.length === 0,
        onclick: () => void act({ isAll: true, isBack: true }) }, "Have all take part again …")),
    table({
      label: "Workers",
      rows: shown,
      key: ({ id }) => id,
      columns: [
        { name: "Worker", cell: ({ id, state }) => [h("strong", { class: "name" }, id),
          h("div", { class: "note" }, state === null ? "told nothing" : `${state.host}, process ${state.pid}`)] },
        { name: "State", cell: stateOf },
        { name: "Heard", kind: "number", cell: (one) => `${duration(one.silent_ms)} ago` },
        { name: "Drained since", cell: ({ drained_since_ms: at }) => (at ? `${clock(at)}, ${since(at)}` : NONE) },
        { name: "In flight", kind: "number", cell: ({ alive, state }) => (alive && state ? exact(state.in_flight) : NONE) },
        { name: "Left", cell: left },
        { name: "Act", cell: (one) => button(one, act) },
      ],
    }),
    items.length > ROWS ? h("p", { class: "note" }, `${items.length - ROWS} more: /api/workers has all.`) : null,
  ];
}

function stateOf({ alive, state }) {
  if (!alive) return badge("dull", "gone");
  const status = state?.status ?? "unknown";
  return badge(STATUS_KINDS[status] ?? "dull", status);
}

function left({ alive, drained_since_ms: drained, state }) {
  if (!alive || !drained || !state) return NONE;
  return state.in_flight ? badge("warn", `waits for ${state.in_flight}`) : badge("good", "nothing, it may be stopped");
}

function button({ id, alive, drained_since_ms: drained }, act) {
  if (!alive) return NONE;
  return drained
    ? h("button", { type: "button", "aria-label": `Have ${id} take part again`,
      onclick: () => void act({ id, isBack: true }) }, "Take part again …")
    : h("button", { type: "button", "aria-label": `Drain ${id}`,
      onclick: () => void act({ id, isBack: false }) }, "Drain …");
}

function leases(metrics) {
  const rows = totalsBy(metrics, "gw_leases_count", "provider").filter(([, n]) => n > 0);
  return [
    h("p", { class: "note" }, "Of all workers, as the snapshot says: up to five seconds old."),
    rows.length === 0 ? empty("No request holds a slot.") : table({
      label: "Leases",
      rows,
      key: ([provider]) => provider,
      columns: [
        { name: "Provider", cell: ([provider]) => given(provider) },
        { name: "Leases", kind: "number", cell: ([, n]) => count(n) },
      ],
    }),
  ];
}
