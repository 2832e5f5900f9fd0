// Where runs and sessions stay, and having them choose anew.

import { ask } from "../api.js";
import { h } from "../dom.js";
import { exact, within } from "../format.js";
import { badge, empty, given, notice, table } from "../parts/basics.js";
import { change, outcome } from "../parts/change.js";
import { panelPage } from "../parts/panels.js";

const LISTED = 200;

/** Reads the first two hundred. */
export function pinsPage() {
  const place = outcome();
  const frame = h("div", {}, h("p", { class: "note" },
    "A pin keeps a run or a session of a client on its route. It yields to open breakers, rests, missing ",
    "capabilities and little headroom. The key is a hash; nobody can read from it whose it is."), place);
  const remove = async (query, what) => {
    const isDone = await change({
      place,
      title: "Remove pins?",
      changes: [what],
      verb: "Remove",
      make: () => ask(`api/pins${query}`, { method: "DELETE" }),
      done: ({ removed, complete }) =>
        `Removed: ${removed} pins${complete ? "." : "; there are more, do it again."}`,
    });
    if (isDone) frame.dispatchEvent(new Event("page:read"));
  };
  return panelPage({
    title: "Pins",
    frame,
    sources: { pins: (signal) => ask(`api/pins?limit=${LISTED}`, { signal }) },
    panels: [{ id: "pins", title: "Pins", needs: ["pins"], draw: ({ pins }) => list(pins, remove) }],
  });
}

function list({ items, complete }, remove) {
  if (items.length === 0) return empty("No run and no session has a pin now.");
  const combos = [...new Set(items.map(({ combo }) => combo))].sort();
  return [
    complete ? null : notice("info", h("p", {}, `There are more than these ${items.length}.`)),
    table({
      label: "Pins",
      rows: items,
      key: ({ combo, scope, key, epoch }) => JSON.stringify([combo, scope, key, epoch]),
      columns: [
        { name: "Combo", cell: ({ combo }) => given(combo) },
        { name: "Of a", cell: ({ scope }) => scope },
        { name: "Key", cell: ({ key }) => h("code", {}, key) },
        { name: "Stays on", cell: (pin) => [h("span", { class: "route" }, pin.route),
          pin.is_current ? null : badge("dull", "not used any more: its combo was changed")] },
        { name: "Requests", kind: "number", cell: ({ requests }) => exact(requests) },
        { name: "Ends unless used", cell: ({ expires_in_ms: ms }) => within(ms) },
        { name: "Act", cell: ({ combo, scope, key }) => h("button", { type: "button",
          "aria-label": `Remove the pin ${key} of ${combo}`,
          onclick: () => void remove(`?${new URLSearchParams({ combo, scope, key })}`,
            `The pin ${key} of ${combo}: its next request chooses anew.`) }, "Remove") },
      ],
    }),
    h("div", { class: "actions" }, combos.map((combo) => h("button", { type: "button", "data-key": combo,
      onclick: () => void remove(`?${new URLSearchParams({ combo })}`,
        `All pins of ${combo}, also those that are not shown.`) }, `Remove all of ${combo} …`))),
  ];
}
