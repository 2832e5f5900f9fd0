// Picks from documents of the API what holds requests back; what is picked stays as it is there.

const NEAR = 0.8; // as bars of limits change their colour
const WINDOWS = [["rpm", "requests a minute", "within a minute"], ["rpd", "requests a day", "within 24 hours"],
  ["tpm", "tokens a minute", "within a minute"], ["tpd", "tokens a day", "within 24 hours"],
  ["concurrency", "at once", "as requests end"]];
const CAPS = [["rpd", "requests a day"], ["tpd", "weighted tokens a day"],
  ["monthly_tokens", "tokens a month"]];
const WELL = new Set(["healthy", "unknown"]);

/** Each rest once, those that end first before others; `about` is a route, or null for all of a key. */
export function restsOf(held) {
  return once(held, ({ cooldowns }) => cooldowns)
    .sort((one, other) => one.expires_at_ms - other.expires_at_ms);
}

/** Each breaker that is not closed, once. */
export function breakersOf(held) {
  return once(held, ({ breakers }) => breakers).sort((one, other) => one.until_ms - other.until_ms);
}

/** What holds for a whole key stands in the row of each of its routes. */
function once(held, records) {
  const found = new Map();
  for (const row of held.rows) {
    for (const record of records(row)) {
      const about = record.scope === "key" ? null : row.route;
      const name = JSON.stringify([row.provider, record.key, about]);
      if (!found.has(name)) found.set(name, { name, provider: row.provider, about, ...record });
    }
  }
  return [...found.values()];
}

/** Bounds of windows and caps of which a fifth is left at most, the fullest first. */
export function nearLimits(limits) {
  const found = limits.items.flatMap(({ provider, key, windows, caps }) => [
    ...windows.flatMap((window) => ofWindow(window).map((bound) => ({ provider, key, ...bound }))),
    ...(caps === null ? [] : ofCaps(caps).map((bound) => ({ provider, key, ...bound }))),
  ]);
  return found
    .filter(({ used, limit }) => limit !== null && used !== null && used >= NEAR * limit)
    .sort((one, other) => fullness(other) - fullness(one))
    .map((bound) => ({ name: JSON.stringify([bound.provider, bound.key, bound.about, bound.what]), ...bound }));
}

function fullness({ used, limit }) {
  return limit > 0 ? used / limit : 1;
}

function ofWindow(window) {
  const about = window.routes.length ? window.routes : [`whole ${window.scope}`];
  return WINDOWS.map(([name, what, frees]) => ({ about, what, frees, ...window[name],
    ends_ms: name.endsWith("d") ? window.day_ends_ms : null }));
}

function ofCaps(caps) {
  return CAPS.map(([name, what]) => ({ about: ["provider's caps"], what, frees: "as its period ends",
    ends_ms: null, ...caps[name] }));
}

/** Keys that are neither well nor unknown to be otherwise. */
export function refusedKeys(health) {
  return health.items.filter(({ status }) => !WELL.has(status));
}
