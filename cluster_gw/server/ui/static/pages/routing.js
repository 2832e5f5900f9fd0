// How a combo ranks its chain; it is changed here only after a question, through the admin API.

import { ask, Fault } from "../api.js";
import { h, show } from "../dom.js";
import { duration, exact, NONE, short, words } from "../format.js";
import { badge, field, given, notice, section, table } from "../parts/basics.js";
import { conflict, notDone, outcome } from "../parts/change.js";
import { confirmChanges } from "../parts/dialog.js";
import { firstToBeTried, ranked, skipped } from "../parts/explanation.js";
import { panelPage } from "../parts/panels.js";
import { Draft } from "./routing_draft.js";
import { thresholds } from "./thresholds.js";

const PRESETS = ["intelligence", "speed", "budget"];
const DEFAULT = "auto:"; // of the default combo, also where another one is called auto
const QUESTION = "How would a short request be ranked?";

/** The page of one combo; of the default combo unless its name follows. */
export function routingPage(name) {
  const draft = new Draft();
  const editor = h("div", { class: "editor" });
  const news = h("div", {});
  const told = h("div", { id: "told", role: "status", tabindex: "-1" });
  const frame = h("div", {}, news, editor);
  const tuned = outcome();
  const query = name ? `?combo=${encodeURIComponent(name)}` : "";
  const reread = () => frame.dispatchEvent(new Event("page:read"));
  const forms = thresholds(tuned, reread);
  const redraw = (focus) => {
    drawEditor(editor, { draft, told, redraw, save, sort });
    if (focus) document.getElementById(focus)?.focus();
  };

  async function save() {
    const changes = draft.changes();
    if (!(await confirmChanges(`Change ${draft.combo}?`, changes))) return;
    await write(async () => {
      const warnings = [];
      let version = draft.version;
      const { routing, chain } = draft.bodies();
      const at = `?combo=${encodeURIComponent(draft.combo)}`;
      for (const [path, body] of [["api/fallback/routing", routing], ["api/fallback", chain]]) {
        if (!body) continue;
        const answer = await ask(path + at, { method: "PUT", body, ifMatch: version });
        version = answer.config_version;
        warnings.push(...(answer.warnings ?? []));
      }
      return warnings;
    });
  }

  async function sort(preset) {
    const change = `Put the chain of ${draft.combo} in order by ${preset}.`;
    if (!(await confirmChanges("Sort the chain?", [change], "Sort"))) return;
    const path = `api/fallback/sort/${preset}?combo=${encodeURIComponent(draft.combo)}`;
    await write(async () => (await ask(path, { method: "POST", ifMatch: draft.version })).warnings ?? []);
  }

  async function write(change) {
    try {
      const warnings = await change();
      show(told, notice("info", h("p", {}, "The change is in force.")),
        warnings.map((text) => notice("warn", h("p", {}, text))));
      draft.forget();
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      show(told, error.status === 412 ? conflict() : notDone(error));
      draft.keepOver();
    }
    told.focus();
    reread();
  }

  /** Tells the draft what holds; whoever is changing something is told that it moved. */
  function take(data) {
    const focused = document.activeElement?.id;
    if (draft.take(data)) redraw(editor.contains(document.activeElement) ? focused : null);
    show(news, draft.isOutdated ? notice("warn", h("p", {},
      "The configuration was changed meanwhile. ", h("button", { type: "button", onclick: () => {
        draft.keepOver();
        reread();
      } }, "Keep my changes over what holds now"))) : null);
    forms.takeRouting(data.routing);
    const shown = data.combos.items.find(({ id }) => id === data.routing.combo);
    if (shown) forms.takeGate(shown, data.combos.config_version);
  }

  return panelPage({
    title: "Routing",
    frame,
    foot: h("div", {}, tuned, forms.elements),
    sources: {
      config: async (signal) => {
        const [combos, routing, chain] = await Promise.all([
          ask("api/combos", { signal }),
          ask(`api/fallback/routing${query}`, { signal }),
          ask(`api/fallback${query}`, { signal }),
        ]);
        return { combos, routing, chain };
      },
      explained: (signal) => ask("api/explain", { method: "POST", signal, body: { request: {
        model: name || DEFAULT, messages: [{ role: "user", content: QUESTION }] } } }),
      headroom: (signal) => ask("api/settings/headroom", { signal }),
      limits: (signal) => ask("api/settings/thresholds", { signal }),
    },
    panels: [
      { id: "ranking", title: "Ranking now", needs: ["explained"], draw: ({ explained }) => [
        h("p", { class: "note" }, "By means, without chance, as a short request to ", given(explained.combo),
          ` would be ranked; snapshot ${exact(explained.snapshot.version)}.`),
        ranked(explained, firstToBeTried(explained))] },
      { id: "skipped", title: "Left out now", needs: ["explained"], draw: ({ explained }) => skipped(explained) },
      { id: "scores", title: "Scores now", needs: ["config"], draw: ({ config }) => {
        take(config);
        return scores(config.routing);
      } },
      { id: "scarce", title: "Headroom", needs: ["headroom"], draw: ({ headroom }) => {
        forms.takeHeadroom(headroom);
        return h("p", {}, `A route with less than ${exact(headroom.ramp_start)} of a quota left is ranked lower, `,
          `down to ${exact(headroom.floor)} of its score.`);
      } },
      { id: "cut", title: "Thresholds", needs: ["limits"], draw: ({ limits }) => {
        forms.takeLimits(limits);
        const { breaker, bench } = limits;
        return h("p", {}, `${exact(breaker.threshold)} failures in a row cut a model off on a key for `,
          `${duration(breaker.cooldown_ms)}, ${exact(bench.failures)} within ${exact(bench.within_s)} s on several keys `,
          `bench it for ${exact(bench.for_s)} s.`);
      } },
    ],
  });
}

function drawEditor(editor, { draft, told, redraw, save, sort }) {
  const go = (event) => {
    location.hash = `#/routing/${encodeURIComponent(event.target.value)}`;
  };
  const changes = draft.changes();
  const option = (value, chosen) => h("option", { value, selected: value === chosen }, value);
  editor.replaceChildren(
    h("div", { class: "row" },
      field("Combo", h("select", { id: "combo", onchange: go },
        draft.combos.map((name) => option(name, draft.combo)))),
      field("Strategy", h("select", { id: "strategy", onchange: (event) => {
        draft.strategy = event.target.value;
        redraw("strategy");
      } }, draft.strategies.map((name) => option(name, draft.strategy))),
      `Family: ${draft.family}`)),
    weights(draft, redraw),
    section("chain", "Chain", chain(draft, redraw),
      h("div", { class: "actions" }, h("span", { class: "note" }, "Sort by"),
        PRESETS.map((preset) => h("button", { type: "button", disabled: draft.isDirty,
          onclick: () => void sort(preset) }, preset)))),
    h("div", { class: "actions sticky" },
      h("button", { type: "button", id: "review", class: "primary", disabled: changes.length === 0,
        onclick: () => void save() },
      changes.length ? `Review ${changes.length} change${changes.length > 1 ? "s" : ""} …` : "No changes"),
      h("button", { type: "button", id: "discard", disabled: changes.length === 0, onclick: () => {
        draft.reset();
        redraw("combo");
      } }, "Discard")),
    told);
}

function weights(draft, redraw) {
  const entries = Object.entries(draft.weights ?? {});
  if (entries.length === 0) {
    return h("p", { class: "note" }, "The strategy in force weighs nothing; it only orders.");
  }
  if (draft.strategy !== draft.held.strategy) {
    return h("p", { class: "note" }, "Weights can be set when the new strategy is in force.");
  }
  return h("fieldset", { class: "row" }, h("legend", {}, "Weights"),
    entries.map(([name, value]) => {
      const id = `weight-${name}`;
      return field(words(name), h("input", { id, type: "number", min: "0", step: "any", value,
        onchange: (event) => {
          draft.weights[name] = event.target.value === "" ? value : Number(event.target.value);
          redraw(id);
        } }));
    }),
    h("p", { class: "note" }, "A strategy with weights of its own ignores these; the answer says so.",
      draft.held.isShifted ? " Peak hours shift them now." : ""));
}

function chain(draft, redraw) {
  const last = draft.chain.length - 1;
  const move = (place, by, id) => () => {
    const [one] = draft.chain.splice(place, 1);
    draft.chain.splice(place + by, 0, one);
    const isStuck = place + by === 0 || place + by === last;
    redraw(isStuck ? (by < 0 ? `down-${id}` : `up-${id}`) : (by < 0 ? `up-${id}` : `down-${id}`));
  };
  const columns = [
    { name: "Priority", kind: "number", cell: ({ place }) => String(place + 1) },
    { name: "Route", cell: (one) => [h("span", { class: "route" }, one.route),
      one.model_enabled ? null : badge("warn", "model disabled"),
      one.keys.length ? null : badge("warn", "no key")] },
    { name: "Takes part", cell: (one) => h("input", { type: "checkbox", id: `on-${one.route}`,
      checked: one.enabled, "aria-label": `${one.route} takes part`, onchange: (event) => {
        one.enabled = event.target.checked;
        redraw(`on-${one.route}`);
      } }) },
    { name: "Move", cell: (one) => h("div", { class: "actions" },
      h("button", { type: "button", id: `up-${one.route}`, disabled: one.place === 0,
        "aria-label": `Move ${one.route} up`, onclick: move(one.place, -1, one.route) }, "↑"),
      h("button", { type: "button", id: `down-${one.route}`, disabled: one.place === last,
        "aria-label": `Move ${one.route} down`, onclick: move(one.place, 1, one.route) }, "↓")) },
    { name: "Keys", cell: ({ keys }) => keys.join(", ") || NONE },
  ];
  draft.chain.forEach((one, place) => {
    one.place = place;
  });
  return table({ label: "Chain", columns, rows: draft.chain, key: ({ route }) => route });
}

const OWN = new Set(["rank", "route", "provider", "model", "name", "enabled", "model_enabled",
  "excluded", "score", "total_requests"]);

function scores({ scores: rows, strategy }) {
  if (rows === null) {
    return notice("warn", h("p", {}, "They cannot be told while Redis is away."));
  }
  const axes = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((name) => !OWN.has(name));
  const figure = (name) => ({ name: words(name), kind: "number",
    cell: (row) => h("span", { title: exact(row[name]) }, short(row[name], 3)) });
  return [h("p", { class: "note" }, `By means, without chance, as ${strategy} ranks a short request.`),
    table({ label: "Scores", rows, key: ({ route }) => route, columns: [
      { name: "Rank", kind: "number", cell: ({ rank }) => exact(rank) },
      { name: "Route", cell: (row) => [h("span", { class: "route" }, row.route),
        row.excluded ? badge("warn", words(row.excluded)) : null] },
      figure("score"),
      ...axes.map(figure),
      figure("total_requests"),
    ] })];
}
