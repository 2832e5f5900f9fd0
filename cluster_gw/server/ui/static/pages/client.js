// One client: what it may do and used, its limits as a form, and its keys.

import { ask, Fault } from "../api.js";
import { h, show } from "../dom.js";
import { count, exact } from "../format.js";
import { facts, field, meter, notice, tile } from "../parts/basics.js";
import { change, outcome } from "../parts/change.js";
import { fieldsForm } from "../parts/fields.js";
import { BOUNDS, boundsOf, keysBefore, namedBy, namesIn, stateBadge, texts, usageOfMonth } from "../parts/clients.js";
import { panelPage } from "../parts/panels.js";
import { secretPlace, showSecret } from "../parts/secret.js";

const GRACES = [["86400", "a day"], ["3600", "an hour"], ["604800", "a week"], ["2592000", "30 days"],
  ["0", "not at all"]];
const MONTHLY = [["monthly_tokens", "tokens", "total_tokens"], ["monthly_usd", "USD", "cost_usd"]];
const FIELDS = [
  ...BOUNDS.map(({ name, label }) => ({ name, label, kind: "number", blank: "no limit",
    note: name === "key_share" ? "0 to 1." : "", read: ({ limits }) => limits[name] ?? null })),
  { name: "combos", label: "Combos it may name", kind: "text", blank: "what the file says, else all",
    note: "Ids with commas between; * for all.", read: ({ combos }) => combos.join(", ") },
  { name: "detail", label: "May ask for rankings and attempts", kind: "flag" },
];

/** Reads the client; its forms keep what somebody has typed. */
export function clientPage(id) {
  const path = `api/clients/${encodeURIComponent(id)}`;
  const place = outcome();
  const secret = secretPlace();
  const held = { told: null };
  const frame = h("div", {}, h("p", {}, h("a", { href: "#/clients" }, "All clients")), secret, place);
  const reread = () => frame.dispatchEvent(new Event("page:read"));
  const form = fieldsForm({ id: "client-limits", title: `Limits of ${id}`, fields: FIELDS, place, reread,
    send: (body, ifMatch) => ask(path, { method: "PUT", body: bodyOf(body), ifMatch }) });
  const grace = h("select", { id: "grace" }, GRACES.map(([value, text]) => h("option", { value }, text)));
  const buttons = h("div", { class: "actions" });

  /** Does something to its keys as they were when it was asked. */
  async function act(asked) {
    const ifMatch = held.told?.config_version;
    let answer = null;
    await change({ place, ...asked, make: async () => {
      answer = await asked.make(ifMatch);
      return answer;
    } });
    reread();
    return answer;
  }

  async function rotate() {
    const [[, told]] = GRACES.filter(([value]) => value === grace.value);
    const answer = await act({
      title: `Give ${id} another key?`,
      verb: "Rotate",
      changes: ["The new key is shown once, and taken by all workers at once.",
        grace.value === "0" ? "The key of now is refused from then on." : `The key of now is taken for ${told} more.`],
      make: (ifMatch) => ask(`${path}/rotate`, { method: "POST", body: { grace_s: Number(grace.value) }, ifMatch }),
      done: () => `${id} has another key.`,
    });
    if (answer) showSecret(secret, answer);
  }

  const asking = {
    rotate,
    revoke: () => act({
      title: `Revoke all keys of ${id}?`,
      verb: "Revoke",
      changes: ["All its keys are refused with 401 from now on, for ever; requests under way end by themselves.",
        "It comes back only with another key."],
      make: (ifMatch) => ask(`${path}/revoke`, { method: "POST", ifMatch }),
      done: () => `All keys of ${id} are refused.`,
    }),
    stop: () => act({
      title: `Refuse the keys of ${id} for a while?`,
      verb: "Refuse",
      changes: ["All its requests are refused with 401 until it is let in again, with the same key."],
      make: (ifMatch) => ask(path, { method: "PUT", body: { enabled: false }, ifMatch }),
      done: () => `The keys of ${id} are refused.`,
    }),
    letIn: () => act({
      title: `Take the key of ${id} again?`,
      verb: "Take",
      changes: ["Requests with its key are served. A revoked client needs another key: rotate it as well."],
      make: (ifMatch) => ask(path, { method: "PUT", body: { enabled: true }, ifMatch }),
      done: () => `The key of ${id} is taken.`,
    }),
    remove: () => act({
      title: held.told?.made ? `Remove ${id}?` : `Go back to what the file says of ${id}?`,
      verb: held.told?.made ? "Remove" : "Go back",
      changes: held.told?.made
        ? ["Its keys are refused, and its limits are forgotten. What it used is kept."]
        : ["Its limits and its key are those of the file again, also where they were changed or revoked here."],
      make: (ifMatch) => ask(path, { method: "DELETE", ifMatch }),
      done: () => (held.told?.made ? `${id} is removed.` : `${id} is as the file says.`),
    }),
  };

  const button = (name, text) => h("button", { type: "button", "data-key": name,
    onclick: () => void asking[name]() }, text);
  const keys = h("section", { class: "editor", "aria-labelledby": "client-keys-title" },
    h("h2", { id: "client-keys-title" }, `Keys of ${id}`),
    h("div", { class: "row" }, field("The key before is taken for", grace, "After a rotation.")),
    buttons);

  const foot = h("div", { hidden: true }, form.element, keys);

  /** Tells forms and buttons what holds; there is nothing to do with a client that is not there. */
  function take(client) {
    held.told = client;
    foot.hidden = client === null;
    if (client === null) return notice("info", h("p", {}, `There is no client ${id} (any more).`));
    form.take(client, client.config_version);
    show(buttons,
      button("rotate", "Give it another key …"),
      client.enabled ? button("stop", "Refuse them for a while …") : button("letIn", "Take the key again …"),
      button("revoke", "Revoke all …"),
      button("remove", client.made ? "Remove the client …" : "Go back to the file …"));
    return about(client);
  }

  return panelPage({
    title: `Client ${id}`,
    frame,
    foot,
    sources: {
      client: (signal) => orNone(ask(path, { signal })),
      usage: usageOfMonth({ group_by: "client", client: id }),
    },
    panels: [
      { id: "client", title: "What it is and may do", needs: ["client"], draw: ({ client }) => take(client) },
      { id: "client-used", title: "Used this month", needs: ["client", "usage"], draw: used },
    ],
  });
}

/** Gives null for a client that is not there (any more). */
async function orNone(answer) {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Fault && error.status === 404) return null;
    throw error;
  }
}

/** The body of a change of what was touched: bounds stand in `limits`. */
function bodyOf(touched) {
  const names = new Set(BOUNDS.map(({ name }) => name));
  const limits = Object.entries(touched).filter(([name]) => names.has(name));
  const rest = Object.entries(touched).filter(([name]) => !names.has(name))
    .map(([name, value]) => [name, name === "combos" ? namesIn(value) : value]);
  return { ...Object.fromEntries(rest), ...(limits.length ? { limits: Object.fromEntries(limits) } : {}) };
}

function about(client) {
  return facts([
    ["Comes from", client.made ? "made here" : "the file"],
    ["Its keys are", stateBadge(client)],
    ["Fingerprint", h("code", {}, client.fingerprint)],
    ["Keys before", texts(keysBefore(client))],
    ["Limits", texts(boundsOf(client.limits), "none")],
    ["May name", texts(namedBy(client))],
    ["Rankings and attempts", client.detail ? "may ask for them" : "are not told"],
  ]);
}

function used({ client, usage }) {
  const { total } = usage;
  return [
    usage.unreadable.length ? notice("warn", h("p", {}, "Some records cannot be read; these sums lack them.")) : null,
    h("p", { class: "note" }, `From ${usage.from} to ${usage.to} (UTC), as calls were settled; read again every minute.`),
    h("div", { class: "tiles" },
      tile("Requests", count(total.requests), `${count(total.errors)} errors`),
      tile("Tokens", count(total.total_tokens)),
      tile("Cost", total.cost_usd === null ? "unknown" : `${exact(total.cost_usd)} USD`),
      tile("Cancelled", count(total.cancelled)),
      tile("Cache hits", count(total.cache_hits))),
    MONTHLY.filter(([name]) => client !== null && (client.limits[name] ?? null) !== null)
      .map(([name, what, sum]) => (total[sum] === null
        ? h("p", { class: "note" }, `${what}: unknown of ${exact(client.limits[name])}`)
        : meter(`${what} this month`, total[sum], client.limits[name]))),
  ];
}
