// A form of some settings: what somebody has typed stays over refreshes, whatever others change, until
// it is sent or discarded. Only what differs is sent, with the version that the question was about.

import { h, show } from "../dom.js";
import { exact } from "../format.js";
import { field, notice } from "./basics.js";
import { change } from "./change.js";

/**
 * Makes it; gives its `element`, and `take(held, version)`, which is told what holds after each read.
 *
 * `fields` are `{name, label, kind, options, note, read(held)}`, kind `flag`, `number`, `text` or `choice`; a name
 * is that of the body, `read` finds the value where the document has it elsewhere; `blank` says what an emptied
 * field means. `send(body, version)` sends.
 */
export function fieldsForm({ id, title, fields, place, reread, send }) {
  const state = { held: null, version: null, touched: new Map() };
  const inputs = new Map(fields.map((one) => [one.name, inputOf(id, one, (value) => {
    state.touched.set(one.name, value);
    draw();
  })]));
  const buttons = h("div", { class: "actions" });
  const news = h("div", {});
  const element = h("section", { id, class: "editor", "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, title),
    h("div", { class: "row" }, fields.map((one) => field(one.label, inputs.get(one.name), one.note))),
    news, buttons);

  const heldOf = (one) => (one.read ? one.read(state.held) : state.held[one.name]);
  const changed = () => fields.filter(({ name }) => state.touched.has(name))
    .filter((one) => state.touched.get(one.name) !== heldOf(one));

  function draw() {
    if (!state.held) return;
    for (const one of fields) {
      const input = inputs.get(one.name);
      if (!state.touched.has(one.name) && input !== document.activeElement) put(input, one, heldOf(one));
    }
    const list = changed();
    show(news, list.length ? h("ul", { class: "changes" }, list.map((one) =>
      h("li", { "data-key": one.name }, textOf(one)))) : null);
    show(buttons,
      h("button", { type: "button", class: "primary", "data-key": "send", disabled: list.length === 0,
        onclick: () => void save() },
      list.length ? `Review ${list.length} change${list.length > 1 ? "s" : ""} …` : "No changes"),
      h("button", { type: "button", "data-key": "discard", disabled: state.touched.size === 0,
        onclick: discard }, "Discard"));
  }

  function textOf(one) {
    return `${one.label}: ${exact(heldOf(one))} → ${told(one, state.touched.get(one.name))}`;
  }

  function discard() {
    state.touched.clear();
    for (const one of fields) put(inputs.get(one.name), one, heldOf(one));
    draw();
  }

  async function save() {
    const list = changed();
    const { version } = state;
    const broken = list.find(({ name }) => !inputs.get(name).checkValidity());
    if (broken) {
      show(place, notice("error", h("p", {}, `${broken.label}: ${inputs.get(broken.name).validationMessage}`)));
      inputs.get(broken.name).focus();
      return;
    }
    const body = Object.fromEntries(list.map(({ name }) => [name, state.touched.get(name)]));
    const isDone = await change({ place, title: `Change ${title.toLowerCase()}?`, isTyped: true,
      changes: list.map(textOf), make: () => send(body, version), done: () => "The change is in force." });
    if (isDone) state.touched.clear();
    reread();
  }

  return {
    element,
    take(held, version) {
      Object.assign(state, { held, version });
      draw();
    },
  };
}

function told({ blank = "what the file says" }, value) {
  return value === null ? blank : exact(value);
}

function inputOf(id, { name, kind, options }, take) {
  const own = { id: `${id}-${name}` };
  if (kind === "choice") {
    return h("select", { ...own, onchange: ({ target }) => take(target.value) },
      options.map((value) => h("option", { value }, value)));
  }
  if (kind === "flag") {
    return h("input", { ...own, type: "checkbox", onchange: ({ target }) => take(target.checked) });
  }
  const isNumber = kind === "number";
  return h("input", { ...own, type: isNumber ? "number" : "text", step: isNumber ? "any" : null, autocomplete: "off",
    oninput: ({ target }) => take(target.value === "" ? null : isNumber ? Number(target.value) : target.value) });
}

function put(input, { kind }, value) {
  if (kind === "flag") input.checked = value === true;
  else input.value = value ?? "";
}
