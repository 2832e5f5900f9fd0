// One document explains a ranking, whoever asked for it: it is shown here, whole, and not judged anew.

import { h } from "../dom.js";
import { clock, duration, exact, NONE, short, until, words } from "../format.js";
import { badge, empty, facts, given, section, table } from "./basics.js";
import { colourFactors, legend, scaleOf, scoreBar } from "./score_bar.js";

const PLACES_SHOWN = 100; // nobody reads a thousand, and they take a second to draw
const SKIPS_SHOWN = 200;

/**
 * Shows the ranking, its figures, and what was left out.
 *
 * `chosen` is `{route, label}`: the place to mark and the word to mark it with, or null.
 */
export function explanation(told, chosen) {
  return [contextOf(told), section("ranking", "Ranking", ranked(told, chosen)),
    section("skipped", "Left out", skipped(told))];
}

function contextOf(told) {
  const { version, age_ms: ageMs } = told.snapshot;
  return section("context", "Ranked by", facts([
    ["Combo", told.combo],
    ["Family", told.family],
    ["Strategy", told.strategy],
    ["Configuration", `version ${told.config_version}`],
    ["Snapshot", version ? `version ${version}, ${duration(ageMs)} old` : "none yet"],
    ["Epoch", told.epoch],
  ]));
}

/** The places of a ranking and what each is made of. */
export function ranked(told, chosen) {
  const { ranking } = told;
  if (ranking.length === 0) return empty("No route could serve this request.");
  const shown = ranking.filter(({ route }, at) => at < PLACES_SHOWN || route === chosen?.route);
  const left = ranking.length - shown.length + (told.left_out ?? 0);
  const colours = colourFactors(ranking);
  const scale = scaleOf(ranking);
  const isScored = ranking.some(({ score }) => score !== null);
  const columns = [
    { name: "Rank", kind: "number", cell: (place) => exact(place.rank) },
    { name: "Route", cell: (place) => routeCell(place, chosen) },
    { name: "Score", kind: "number score", cell: (place) =>
      h("span", { title: exact(place.score) }, place.score === null ? NONE : short(place.score)) },
    ...(isScored ? [
      { name: "Made of", kind: "bar", cell: (place) => scoreBar(place, scale, colours) },
      { name: "Times", kind: "effects", cell: (place) => effects(place.multipliers.map((one) =>
        [`× ${short(one.value)}`, one.name, one.value === 1])) },
      { name: "Plus", kind: "effects", cell: (place) => effects(place.adjustments.map((one) =>
        [`${one.delta < 0 ? "−" : "+"} ${short(Math.abs(one.delta))}`, one.name, one.delta === 0])) },
    ] : []),
    { name: "Reasons", cell: (place) => reasons(place.reasons) },
  ];
  return [
    isScored ? legend(colours) : h("p", { class: "note" },
      `The strategy ${told.strategy} only orders: there are no scores.`),
    table({ label: "Ranked routes", columns, rows: shown, key: ({ route }) => route,
      more: figures, mark: ({ route }) => (route === chosen?.route ? "chosen" : null) }),
    left ? h("p", { class: "note" }, `${left} more places are not shown.`) : null,
  ];
}

function routeCell(place, chosen) {
  return [
    h("strong", { class: "route" }, place.route),
    place.route === chosen?.route ? badge("good", chosen.label) : null,
    place.half_open ? badge("warn", "half-open") : null,
    place.match_tier ? badge("dull", `match tier ${place.match_tier}`) : null,
  ];
}

function effects(list) {
  if (list.length === 0) return NONE;
  return h("ul", { class: "plain" }, list.map(([figure, name, isNeutral]) =>
    h("li", { class: isNeutral ? "note" : null }, `${figure} `, h("span", {}, words(name)))));
}

function reasons(list) {
  return h("ul", { class: "plain" }, list.map((reason) => h("li", {}, reason)));
}

/** Every figure of a place, unrounded. */
function figures(place) {
  const part = (label, columns, rows) => rows.length === 0 ? null :
    h("div", { class: "figures", "data-key": label }, h("h3", {}, label), table({
      label: `${label} of ${place.route}`, columns, rows, key: ({ name, id }) => name ?? id }));
  const number = (name, cell) => ({ name, kind: "number", cell });
  return h("details", { "data-key": "figures" },
    h("summary", {}, "Figures and keys of ", h("span", { class: "route" }, place.route)),
    place.score === null ? null : h("p", { class: "formula" }, formula(place)),
    part("Factors", [
      { name: "Factor", cell: ({ name }) => name },
      number("Weight", ({ weight }) => exact(weight)),
      number("Value", ({ value }) => exact(value)),
      number("Contribution", ({ contribution }) => exact(contribution)),
      { name: "Source", cell: ({ source }) => source },
      number("Samples", ({ samples }) => exact(samples)),
    ], place.factors),
    part("Multipliers", [
      { name: "Multiplier", cell: ({ name }) => name },
      number("Value", ({ value }) => exact(value)),
      { name: "Detail", cell: ({ detail }) => detail || NONE },
    ], place.multipliers),
    part("Adjustments", [
      { name: "Adjustment", cell: ({ name }) => name },
      number("Delta", ({ delta }) => exact(delta)),
    ], place.adjustments),
    part("Keys in the order they are tried", [
      { name: "Key", cell: ({ id }) => given(exact(id)) },
      number("Score", ({ score }) => exact(score)),
    ], place.keys));
}

function formula(place) {
  const times = place.multipliers.map(({ value }) => ` × ${exact(value)}`).join("");
  const plus = place.adjustments
    .map(({ delta }) => ` ${delta < 0 ? "−" : "+"} ${exact(Math.abs(delta))}`).join("");
  return `base ${exact(place.base)}${times}${plus} = score ${exact(place.score)}`;
}

/** What was left out, with its reason. */
export function skipped(told) {
  const rows = told.skipped.slice(0, SKIPS_SHOWN);
  const left = told.skipped.length - rows.length + (told.skips_left_out ?? 0);
  const columns = [
    { name: "Route", cell: ({ route }) => h("span", { class: "route" }, route) },
    { name: "Key", cell: ({ key }) => given(key ?? "all") },
    { name: "Code", cell: ({ code }) => h("code", {}, code) },
    { name: "About", cell: ({ scope }) => scope },
    { name: "Detail", cell: ({ detail }) => detail || NONE },
    { name: "Usable again", cell: ({ retry_at_ms: at }) =>
      at === null ? NONE : `${until(at)} (${clock(at)})` },
  ];
  return [rows.length === 0
    ? empty("Nothing was left out.")
    : table({ label: "Routes and keys that were left out", columns, rows,
      key: ({ route, key, code }) => JSON.stringify([route, key, code]) }),
  left ? h("p", { class: "note" }, `${left} more are not shown.`) : null];
}

/**
 * The place of a forecast that would be called first: the best with a key that nothing refuses.
 *
 * What is refused stands in the document; here it is only looked up.
 */
export function firstToBeTried(told) {
  const refused = new Set(told.skipped.map(({ route, key }) => JSON.stringify([route, key])));
  const isBarred = (route, key) => refused.has(JSON.stringify([route, key]));
  const first = told.ranking.find(({ route, keys }) =>
    !isBarred(route, null) && keys.some(({ id }) => !isBarred(route, id)));
  return first ? { route: first.route, label: "tried first" } : null;
}
