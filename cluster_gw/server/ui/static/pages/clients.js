// Apps with keys of their own: which there are, what they may do and did, and making one.

import { ask } from "../api.js";
import { h } from "../dom.js";
import { count, exact } from "../format.js";
import { empty, field, given, notice, table } from "../parts/basics.js";
import { change, outcome } from "../parts/change.js";
import { BOUNDS, boundsOf, keysBefore, namedBy, namesIn, stateBadge, texts, usageOfMonth } from "../parts/clients.js";
import { panelPage } from "../parts/panels.js";
import { secretPlace, showSecret } from "../parts/secret.js";
import { clientPage } from "./client.js";

const SHOWN = 200;
const USED = 1000;

/** The list, or the client whose id follows. */
export function clientsPage(id) {
  return id ? clientPage(id) : listPage();
}

function listPage() {
  const place = outcome();
  const secret = secretPlace();
  const filter = h("input", { id: "filter", type: "search", autocomplete: "off",
    oninput: () => frame.dispatchEvent(new Event("page:draw")) });
  const state = { version: undefined };
  const reread = () => frame.dispatchEvent(new Event("page:read"));
  const frame = h("div", {}, secret, place, maker({ place, secret, reread, state }),
    h("div", { class: "row" }, field("Filter", filter, "By id, combo or state.")));
  return panelPage({
    title: "Clients",
    frame,
    sources: {
      clients: (signal) => ask("api/clients", { signal }),
      usage: usageOfMonth({ group_by: "client", limit: USED }),
    },
    panels: [
      { id: "clients", title: "Clients", needs: ["clients"], draw: ({ clients }) => {
        state.version = clients.config_version;
        return list(clients, filter.value.trim().toLowerCase());
      } },
      { id: "clients-used", title: "What they used this month", needs: ["clients", "usage"], draw: used },
    ],
  });
}

function maker({ place, secret, reread, state }) {
  const text = (id, more) => h("input", { id: `new-${id}`, autocomplete: "off", spellcheck: "false", ...more });
  const id = text("id", { required: true, pattern: "[a-z0-9][a-z0-9_\\-]{0,63}" });
  const bounds = BOUNDS.map((one) => ({ ...one,
    input: text(one.name, { type: "number", min: "0", step: "any" }) }));
  const combos = text("combos", {});
  const detail = h("input", { id: "new-detail", type: "checkbox" });

  async function make(event) {
    event.preventDefault();
    const limits = Object.fromEntries(bounds.filter(({ input }) => input.value !== "")
      .map(({ name, input }) => [name, Number(input.value)]));
    const names = namesIn(combos.value);
    const body = { id: id.value.trim(), ...(Object.keys(limits).length ? { limits } : {}),
      ...(names ? { combos: names } : {}), ...(detail.checked ? { detail: true } : {}) };
    const told = boundsOf(limits);
    const ifMatch = state.version; // that of the question, whatever is read while it stands there
    let made = null;
    await change({ place, verb: "Make it", title: `Make the client ${body.id}?`, isTyped: true,
      changes: [told.length ? `It may do ${told.join(", ")}.` : "It is not limited.",
        names ? `It may name ${names.join(", ")}.` : "It may name every combo and route.",
        ...(detail.checked ? ["It may ask for rankings and attempts."] : []),
        "Its key is shown once."],
      make: async () => {
        made = await ask("api/clients", { method: "POST", body, ifMatch });
        return made;
      },
      done: () => `The client ${body.id} is there; its key is taken by all workers.` });
    if (made) {
      form.reset();
      showSecret(secret, made);
    }
    reread();
  }

  const form = h("form", { onsubmit: (event) => void make(event), "aria-label": "Make a client" },
    field("Id", id, "Small letters, digits, - and _; at most 64."),
    h("fieldset", { class: "row" }, h("legend", {}, "Limits; empty: none"),
      bounds.map(({ label, input, name }) => field(label, input, name === "key_share" ? "0 to 1." : ""))),
    field("Combos it may name", combos, "Ids with commas between; empty: all."),
    h("div", { class: "field check" }, detail,
      h("label", { for: "new-detail" }, "May ask for rankings and attempts")),
    h("button", { type: "submit", class: "primary" }, "Make it …"));
  return h("details", { class: "editor" }, h("summary", {}, "Make a client"), form);
}

function list({ items }, wanted) {
  const haystack = (one) => [one.id, ...one.combos, one.enabled ? "taken" : "refused",
    one.made ? "made here" : "of the file"].join(" ").toLowerCase();
  const found = items.filter((one) => haystack(one).includes(wanted));
  const left = found.length - SHOWN;
  if (items.length === 0) return empty("No client has a key of its own. Make one above, or in clients of the file.");
  if (found.length === 0) return empty("No client fits the filter.");
  return [
    h("p", { class: "note" }, `${count(found.length)} of ${count(items.length)}. Open one to limit it, give it another `,
      "key or revoke it."),
    table({
      label: "Clients",
      rows: found.slice(0, SHOWN),
      key: ({ id }) => id,
      columns: [
        { name: "Client", cell: ({ id, made }) => [
          h("a", { class: "name", href: `#/clients/${encodeURIComponent(id)}` }, id),
          h("div", { class: "note" }, made ? "made here" : "of the file")] },
        { name: "Keys", cell: stateBadge },
        { name: "Limits", cell: ({ limits }) => texts(boundsOf(limits), "none") },
        { name: "May name", cell: (one) => texts(namedBy(one)) },
        { name: "Fingerprint", cell: ({ fingerprint }) => h("code", {}, fingerprint) },
        { name: "Keys before", cell: (one) => texts(keysBefore(one)) },
      ],
    }),
    left > 0 ? h("p", { class: "note" }, `${left} more; the filter finds them.`) : null,
  ];
}

function used({ clients, usage }) {
  const all = usage.total_items <= usage.items.length;
  const known = new Set(clients.items.map(({ id }) => id));
  const rows = usage.items.slice(0, SHOWN);
  return [
    usage.unreadable.length ? notice("warn", h("p", {}, "Some records cannot be read; these sums lack them.")) : null,
    h("p", { class: "note" }, `From ${usage.from} to ${usage.to} (UTC), as calls were settled; read again every minute.`),
    rows.length === 0 ? empty("No client used anything this month.") : table({
      label: "What clients used",
      rows,
      key: ({ client }) => client,
      columns: [
        { name: "Client", cell: ({ client }) => (known.has(client)
          ? h("a", { class: "name", href: `#/clients/${encodeURIComponent(client)}` }, client) : given(client)) },
        { name: "Requests", kind: "number", cell: (row) => count(row.requests) },
        { name: "Tokens", kind: "number", cell: (row) => count(row.total_tokens) },
        { name: "USD", kind: "number", cell: (row) => (row.cost_usd === null ? "unknown" : exact(row.cost_usd)) },
        { name: "Errors", kind: "number", cell: (row) => count(row.errors) },
        { name: "Cancelled", kind: "number", cell: (row) => count(row.cancelled) },
      ],
    }),
    all && usage.items.length <= SHOWN ? null : h("p", { class: "note" },
      `${usage.total_items - rows.length} more: Usage has all.`),
  ];
}
