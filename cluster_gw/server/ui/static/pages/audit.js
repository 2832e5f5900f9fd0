// What operators changed: who, when, from where, and from which version of the configuration to which.

import { ask } from "../api.js";
import { h } from "../dom.js";
import { clock, count, exact, NONE, since } from "../format.js";
import { badge, empty, field, given, table } from "../parts/basics.js";
import { panelPage } from "../parts/panels.js";

const SPANS = [["100", "the newest 100"], ["500", "the newest 500"], ["2000", "all that are kept, 2000 at most"]];
const SHOWN = 200;
const UNKNOWN = 500;

/** Reads the newest changes; the filter is applied here. */
export function auditPage() {
  const filter = h("input", { id: "filter", type: "search", autocomplete: "off",
    oninput: () => frame.dispatchEvent(new Event("page:draw")) });
  const span = h("select", { id: "span", onchange: () => frame.dispatchEvent(new Event("page:read")) },
    SPANS.map(([value, text]) => h("option", { value }, text)));
  const frame = h("div", { class: "row" }, field("Read", span),
    field("Filter", filter, "By who, address, path, or a field that was set."));
  return panelPage({
    title: "Audit",
    frame,
    sources: { audit: (signal) => ask(`api/audit?limit=${span.value}`, { signal }) },
    panels: [{ id: "audit", title: "Who changed what", needs: ["audit"],
      draw: ({ audit }) => list(audit, filter.value.trim().toLowerCase()) }],
  });
}

function list({ items, config_version: version }, wanted) {
  const haystack = (one) => [one.actor, one.address, one.method, one.path, one.about, ...one.fields].join(" ").toLowerCase();
  const found = items.filter((one) => haystack(one).includes(wanted));
  const left = found.length - SHOWN;
  if (items.length === 0) return empty("Nothing was changed yet through the admin API or the command line.");
  return [
    h("p", { class: "note" }, `${count(found.length)} of ${count(items.length)} changes. The configuration is at version `,
      `${exact(version)} now. What was refused is not written down; values are not either.`),
    found.length === 0 ? empty("No change fits the filter.") : table({
      label: "Changes",
      rows: found.slice(0, SHOWN),
      key: ({ id }) => id,
      columns: [
        { name: "When", cell: ({ at_ms: at }) => [h("span", { class: "time" }, clock(at)), h("div", { class: "note" }, since(at))] },
        { name: "Who", cell: ({ actor, address }) => [h("strong", { class: "name" }, actor),
          h("div", { class: "note" }, address)] },
        { name: "What", cell: ({ method, path, about }) => [badge("dull", method), h("code", {}, path),
          about ? h("div", {}, given(about)) : null] },
        { name: "Fields", cell: ({ fields }) => fields.length === 0 ? NONE
          : h("ul", { class: "plain" }, fields.map((one) => h("li", {}, given(one)))) },
        { name: "Configuration", cell: versions },
        { name: "Done", cell: ({ status }) => status < UNKNOWN
          ? badge("good", `yes, ${status}`) : badge("warn", `not known, ${status}`) },
      ],
    }),
    left > 0 ? h("p", { class: "note" }, `${left} more; the filter finds them.`) : null,
  ];
}

function versions({ config_version: after, config_version_before: before }) {
  if (before === after) return `${exact(after)}, as before`;
  return `${before === null ? "not told" : exact(before)} → ${exact(after)}`;
}
