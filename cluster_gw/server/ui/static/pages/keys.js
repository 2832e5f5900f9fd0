// Each key: its state, what its windows count, and what holds it back.

import { ask, Fault, orFault } from "../api.js";
import { h } from "../dom.js";
import { clock, duration, NONE, since, until, within, words } from "../format.js";
import { badge, empty, failed, field, given, meter, notice, section, table } from "../parts/basics.js";

const BOUNDS = [["rpm", "requests a minute"], ["rpd", "requests a day"], ["tpm", "tokens a minute"],
  ["tpd", "tokens a day"], ["concurrency", "at once"]];
const CAPS = [["rpd", "requests a day"], ["tpd", "weighted tokens a day"],
  ["monthly_tokens", "tokens a month"]];
const KINDS = { healthy: "good", unknown: "dull", invalid: "bad", disabled: "bad" };

const KEYS_SHOWN = 100;
const WINDOWS_SHOWN = 20; // of each key; a pool of many models has hundreds
const BREAKERS = { open: "bad", closed: "dull" };

/** Reads all four answers each time; the filter is applied here. */
export function keysPage() {
  const filter = h("input", { id: "filter", type: "search", autocomplete: "off",
    oninput: () => frame.dispatchEvent(new Event("page:draw")) });
  const frame = h("div", { class: "row" },
    field("Filter", filter, "By key, provider, account, or state."));
  const names = new Set();
  // All counts of all keys are a hundred thousand elements in a large pool: drawn where unfolded.
  const unfolded = {
    has: (name) => names.has(name),
    toggle: (name, isOpen) => {
      if (isOpen === names.has(name)) return;
      if (isOpen) names.add(name);
      else names.delete(name);
      frame.dispatchEvent(new Event("page:draw"));
    },
  };
  return {
    title: "Keys and limits",
    isLive: true,
    frame,
    async read(signal) {
      const [keys, health, limits, held] = await Promise.all([
        ask("api/keys", { signal }),
        orFault(ask("api/health", { signal })),
        orFault(ask("api/limits", { signal })),
        orFault(ask("api/fallback/penalty-inspector", { signal })),
      ]);
      return known({ keys, health, limits, held });
    },
    draw: (data) => draw(data, filter.value.trim().toLowerCase(), unfolded),
  };
}

/** What there is to draw where some answers are missing: the rest, and the first fault. */
function known({ keys, health, limits, held }) {
  const instead = (answer, blank) => (answer instanceof Fault ? blank : answer);
  return {
    keys,
    health: instead(health, { items: [], models: [], pool: { degraded: false } }),
    limits: instead(limits, { items: [] }),
    held: instead(held, { rows: [], providers: [] }),
    fault: [health, limits, held].find((answer) => answer instanceof Fault),
  };
}

function draw(data, wanted, unfolded) {
  const rows = rowsOf(data, unfolded);
  const shown = rows.filter(({ haystack }) => haystack.includes(wanted));
  const { pool, models } = data.health;
  return [
    data.fault ? failed("Some of this could not be read; what is missing is not known.", data.fault)
      : null,
    pool.degraded ? notice("warn", h("p", {},
      `The pool is degraded: ${pool.usable_providers} of ${pool.providers} providers can be used.`))
      : null,
    section("keys", `Keys (${shown.length} of ${rows.length})`, shown.length === 0
      ? empty(rows.length === 0 ? "No keys are declared." : "No key fits the filter.")
      : table({ label: "Keys", columns: COLUMNS, rows: shown.slice(0, KEYS_SHOWN),
        key: ({ name }) => name }),
    shown.length > KEYS_SHOWN ? h("p", { class: "note" },
      `${shown.length - KEYS_SHOWN} more; the filter finds them.`) : null),
    providers(data.held.providers),
    models.length ? section("models", "Models that providers refuse", table({
      label: "Models that providers refuse",
      rows: models,
      key: ({ provider, model }) => JSON.stringify([provider, model]),
      columns: [
        { name: "Provider", cell: ({ provider }) => given(provider) },
        { name: "Model", cell: ({ model }) => given(model) },
        { name: "Status", cell: ({ status }) => badge("bad", words(status)) },
        { name: "Reason", cell: ({ reason }) => reason || NONE },
        { name: "Since", cell: ({ at_ms: at }) => clock(at) },
      ],
    })) : null,
  ];
}

/** Joins what the four answers say of each key. */
function rowsOf({ keys, health, limits, held, fault }, unfolded) {
  const name = (provider, key) => JSON.stringify([provider, key]);
  const status = new Map(health.items.map((one) => [name(one.provider, one.key), one]));
  const windows = new Map(limits.items.map((one) => [name(one.provider, one.key), one.windows]));
  const caps = new Map(limits.items.map((one) => [name(one.provider, one.key), one.caps]));
  const rests = new Map();
  const breakers = new Map();
  for (const row of held.rows) {
    gather(rests, row, row.cooldowns, name);
    gather(breakers, row, row.breakers, name);
  }
  return keys.items.map((key) => {
    const own = name(key.provider, key.id);
    const unknown = fault ? "not known" : "without a model";
    const state = key.enabled ? status.get(own)?.status ?? unknown : "disabled";
    return { name: own, key, state, health: status.get(own), windows: windows.get(own) ?? [],
      rests: [...(rests.get(own)?.values() ?? [])],
      breakers: [...(breakers.get(own)?.values() ?? [])],
      caps: caps.get(own) ?? null, unfolded,
      haystack: [key.id, key.provider, key.account, state].join(" ").toLowerCase() };
  });
}

/** What holds for a whole key stands in the row of each of its routes; here it stands once. */
function gather(found, row, records, name) {
  for (const record of records) {
    const own = name(row.provider, record.key);
    if (!found.has(own)) found.set(own, new Map());
    const about = record.scope === "key" ? "all models" : row.route;
    found.get(own).set(about, { about, ...record });
  }
}

const COLUMNS = [
  { name: "Key", cell: ({ key }) => [h("strong", { class: "name" }, key.id),
    h("div", { class: "note" }, key.account === key.id
      ? key.provider : `${key.provider}, account ${key.account}`)] },
  { name: "State", cell: (row) => [badge(KINDS[row.state] ?? "warn", words(row.state)), checked(row)] },
  { name: "Windows", kind: "windows", cell: (row) => [capsOf(row.caps), windowsOf(row)] },
  { name: "Rests", cell: ({ rests }) => holds(rests, (one) =>
    `${one.about}: rests (${words(one.reason ?? one.source)}), ends ${within(one.expires_in_ms)}`) },
  { name: "Breakers", cell: ({ breakers }) => holds(breakers, (one) =>
    `${one.about}: ${words(one.state)} after ${one.failures} failures, trial ${within(one.until_in_ms)}`) },
];

function checked({ health }) {
  if (!health) return null;
  const parts = [
    health.checked_at_ms ? `checked ${since(health.checked_at_ms)}` : "not checked",
    health.reason,
    health.rejections ? `${health.rejections} rejections` : null,
  ].filter(Boolean);
  return h("div", { class: "note" }, parts.join(" · "));
}

function windowsOf({ windows, name, unfolded }) {
  const bounded = windows.filter(isBounded);
  if (windows.length === 0) return NONE;
  return [
    firstOf(bounded, true),
    h("details", { "data-key": "counts",
      ontoggle: ({ target }) => unfolded.toggle(name, target.open) },
    h("summary", {}, bounded.length ? "All counts" : "No limits; counts"),
    unfolded.has(name) ? firstOf(windows, false) : null),
  ];
}

/** What a provider caps over all models of a key. */
function capsOf(caps) {
  if (caps === null) return null;
  return h("div", { class: "window", "data-key": "caps" }, h("div", { class: "note" }, "provider's caps"),
    CAPS.filter(([name]) => caps[name].limit !== null).map(([name, words]) => {
      const { used, limit, ends_ms: ends } = caps[name];
      const what = ends ? `${words}, ends ${until(ends)}` : words;
      return used === null ? h("p", { class: "note" }, `${words}: cannot be read`)
        : meter(what, used, limit);
    }));
}

function firstOf(windows, onlyBounded) {
  const left = windows.length - WINDOWS_SHOWN;
  return [
    windows.slice(0, WINDOWS_SHOWN).map((one) => windowOf(one, onlyBounded)),
    left > 0 ? h("p", { class: "note" }, `${left} more: /api/limits has all.`) : null,
  ];
}

function isBounded(window) {
  return BOUNDS.some(([name]) => window[name].limit !== null);
}

function windowOf(window, onlyBounded) {
  const about = window.routes.length ? window.routes.join(", ") : `whole ${words(window.scope)}`;
  const bounds = BOUNDS.filter(([name]) => !onlyBounded || window[name].limit !== null);
  const day = window.day_ends_ms ? `day ends ${until(window.day_ends_ms)}` : "";
  return h("div", { class: "window", "data-key": JSON.stringify([window.scope, about, onlyBounded]) },
    h("div", { class: "note" }, about, day ? ` · ${day}` : ""),
    bounds.map(([name, words]) => meter(words, window[name].used, window[name].limit)));
}

function holds(list, text) {
  return list.length === 0 ? NONE
    : h("ul", { class: "plain" }, list.map((one) => h("li", {}, text(one))));
}

function providers(list) {
  if (list.length === 0) return null;
  return section("cut-off", "Providers with failures lately", table({
    label: "Providers with failures lately",
    rows: list,
    key: ({ provider }) => provider,
    columns: [
      { name: "Provider", cell: ({ provider }) => given(provider) },
      { name: "Breaker", cell: ({ breaker }) =>
        badge(BREAKERS[breaker] ?? "warn", words(breaker)) },
      { name: "Trial in", cell: ({ opens_in_ms: ms }) => (ms ? duration(ms) : NONE) },
      { name: "Failed targets", kind: "number", cell: ({ failed_targets: n }) => String(n) },
    ],
  }));
}
