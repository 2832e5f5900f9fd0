// Shows a key that nobody can read later. It is on the page until it is hidden, another one comes or
// the page is left, and nowhere else: no variable keeps it but the button that copies it.

import { h, show } from "../dom.js";
import { clock } from "../format.js";
import { serverTime } from "../server_time.js";
import { notice } from "./basics.js";

/** Where a key is shown. */
export function secretPlace() {
  return h("div", { class: "told", role: "group", "aria-label": "New key", tabindex: "-1" });
}

/** Shows the key of an answer of the API; it is told until when the one before is taken. */
export function showSecret(place, { id, key, previous_until_ms: until }) {
  const code = h("code", { class: "secret", id: "secret" }, key);
  const said = h("span", { class: "note", role: "status" });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(key);
      said.textContent = "Copied.";
    } catch {
      // Browsers let a page copy only behind https or on localhost.
      getSelection().selectAllChildren(code);
      said.textContent = "This browser does not let it be copied from here: it is marked, copy it yourself.";
    }
  };
  place.replaceChildren(notice("warn",
    h("p", {}, h("strong", {}, `The new key of ${id}. `), "It is shown only now: nobody can read it later."),
    h("p", {}, code),
    until > serverTime.nowMs() ? h("p", {}, `The key before is taken until ${clock(until)}.`) : null,
    h("div", { class: "actions" },
      h("button", { type: "button", class: "primary", onclick: () => void copy() }, "Copy"),
      h("button", { type: "button", onclick: () => show(place) }, "I have it, hide it"), said)));
  place.focus();
}
