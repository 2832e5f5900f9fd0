// The small things that all pages are made of.

import { h } from "../dom.js";
import { figure } from "../format.js";

/** A section with a heading; `id` names it for links and tests. */
export function section(id, title, ...children) {
  return h("section", { id, "data-key": id, "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, title), children);
}

/** A name that somebody has given; it is broken only where it would else be too wide. */
export function given(name) {
  return h("span", { class: "name" }, name);
}

/** A word on a coloured ground; the colour repeats what the word says. `kind`: good, bad, warn, dull. */
export function badge(kind, text) {
  return h("span", { class: `badge ${kind}` }, text);
}

/** A list of names and values. A value may be a node. */
export function facts(pairs) {
  return h("dl", { class: "facts" },
    pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** A figure with its name, for a glance. */
export function tile(name, value, note = "") {
  return h("div", { class: "tile", "data-key": `tile-${name}` },
    h("span", { class: "tile-name" }, name), h("strong", {}, value),
    note ? h("span", { class: "note" }, note) : null);
}

/** What stands where there is nothing to show. */
export function empty(text) {
  return h("p", { class: "empty" }, text);
}

/** A message. `kind`: info, warn, error. */
export function notice(kind, ...children) {
  const role = kind === "error" ? "alert" : null;
  return h("div", { class: `notice ${kind}`, role }, children);
}

/** A message about a call that failed. */
export function failed(what, fault) {
  return notice("error", h("p", {}, h("strong", {}, `${what} `), fault.message),
    fault.code ? h("p", { class: "note" }, `Code: ${fault.code}`) : null);
}

/**
 * A table that becomes a list of cards where there is no room.
 *
 * `columns` are `{name, cell(row), kind}`, kind `number` for figures; `key(row)` keeps a row the same
 * one over refreshes. `more(row)`, if given, is what a row has folded away below it.
 */
export function table({ label, columns, rows, key, more, mark }) {
  const head = h("tr", { role: "row" },
    columns.map(({ name, kind }) =>
      h("th", { role: "columnheader", scope: "col", class: kind ?? null }, name)));
  return h("table", { role: "table", "aria-label": label },
    h("thead", { role: "rowgroup" }, head),
    h("tbody", { role: "rowgroup" }, rows.map((row, place) => {
      const name = key ? key(row) : String(place);
      const cells = columns.map(({ name: title, cell, kind }) =>
        h("td", { role: "cell", class: kind ?? null, "data-label": title }, h("div", {}, cell(row))));
      const folded = more ? more(row) : null;
      return [
        h("tr", { role: "row", "data-key": `row-${name}`, class: mark?.(row) ?? null }, cells),
        folded && h("tr", { role: "row", "data-key": `more-${name}`, class: "more" },
          h("td", { role: "cell", colspan: columns.length }, folded)),
      ];
    })));
}

/** A bar of how much of a limit is used; without a limit only the count. */
export function meter(name, used, limit) {
  if (limit === null) {
    return h("div", { class: "meter", "data-key": `meter-${name}` },
      h("span", { class: "meter-name" }, name), h("span", { class: "meter-figures" }, figure(used)));
  }
  const share = limit > 0 ? Math.min(used / limit, 1) : 1;
  const state = share >= 1 ? "full" : share >= 0.8 ? "near" : "free";
  const told = { full: " – used up", near: " – nearly used up", free: "" }[state];
  return h("div", { class: `meter ${state}`, "data-key": `meter-${name}` },
    h("span", { class: "meter-name" }, name),
    h("span", { class: "meter-track", "aria-hidden": "true" },
      h("span", { class: "meter-fill", style: { width: `${share * 100}%` } })),
    h("span", { class: "meter-figures" }, `${figure(used)} of ${figure(limit)}${told}`));
}

/** A field with its label; `note` explains it. */
export function field(label, input, note = "") {
  const id = input.id;
  if (note) input.setAttribute("aria-describedby", `${id}-note`);
  return h("div", { class: "field" }, h("label", { for: id }, label), input,
    note ? h("span", { class: "note", id: `${id}-note` }, note) : null);
}
