// The newest requests that a record is kept of, and one of them.

import { ask } from "../api.js";
import { h } from "../dom.js";
import { clock, count, duration, exact, NONE } from "../format.js";
import { empty, field, given, notice, section, table } from "../parts/basics.js";
import { record, statusBadge } from "../parts/record.js";

const LISTED = 50;

/** The list, or the record whose id follows. */
export function requestsPage(id) {
  return id ? onePage(id) : listPage();
}

/** A record, as a page. */
export function onePage(id) {
  return {
    title: "A request",
    isLive: false,
    frame: h("p", {}, h("a", { href: "#/requests" }, "All recent requests")),
    read: (signal) => ask(`api/requests/${encodeURIComponent(id)}`, { signal }),
    draw: record,
    explain: (fault) => (fault.status === 404 ? noRecord(id) : null),
  };
}

function noRecord(id) {
  return notice("info",
    h("p", {}, "No record is kept of the request ", h("code", {}, id), "."),
    h("p", { class: "note" }, "The id is the value of X-Gw-Request-Id. Not every request is kept, ",
      "and none for ever: telemetry.request_records of the configuration says which."));
}

function listPage() {
  const kinds = [["all", "all"], ["notable", "notable: failed, fell back, asked for detail"],
    ["plain", "ordinary"]];
  const kind = h("select", { id: "kind", onchange: () => frame.dispatchEvent(new Event("page:read")) },
    kinds.map(([value, text]) => h("option", { value }, text)));
  const frame = h("div", { class: "row" }, field("Requests", kind));
  return {
    title: "Requests",
    isLive: true,
    frame,
    read: (signal) => ask(`api/requests?limit=${LISTED}&kind=${kind.value}`, { signal }),
    draw: list,
  };
}

function list({ items }) {
  const columns = [
    { name: "Came at", cell: (one) => h("a", { class: "time", href: `#/requests/${encodeURIComponent(one.id)}`,
      "aria-label": `Request ${one.id} of ${clock(one.at_ms)}` }, clock(one.at_ms)) },
    { name: "Status", cell: (one) => statusBadge(one.status, one.code) },
    { name: "Combo", cell: (one) => given(one.combo) },
    { name: "Route", cell: (one) =>
      one.route ? h("span", { class: "route" }, one.route) : NONE },
    { name: "Key", cell: (one) => given(one.key ?? NONE) },
    { name: "Attempts", kind: "number", cell: (one) => exact(one.attempts) },
    { name: "Took", kind: "number", cell: (one) => duration(one.duration_ms) },
    { name: "First byte", kind: "number", cell: (one) => duration(one.first_byte_ms) },
    { name: "Tokens", kind: "number", cell: (one) => count(one.tokens) },
    { name: "Client", cell: (one) => given(one.client) },
  ];
  return section("recent", `The newest ${LISTED}`, items.length === 0
    ? empty("No request is kept: none came lately, or telemetry.request_records keeps none.")
    : table({ label: "Recent requests", columns, rows: items, key: ({ id }) => id }));
}
