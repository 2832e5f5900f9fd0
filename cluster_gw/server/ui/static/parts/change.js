// Changes something after a question, and tells what came of it.

import { Fault } from "../api.js";
import { h, show } from "../dom.js";
import { failed, notice } from "./basics.js";
import { confirmChanges } from "./dialog.js";

/** Where it is told what came of a change. */
export function outcome() {
  return h("div", { class: "told", role: "status", tabindex: "-1" });
}

/**
 * Asks, makes a change, and tells of it in `place`; gives whether it was made.
 *
 * `make` makes it and gives its answer, of which `warnings` are told; `done(answer)` gives the sentence.
 * `note` stands in the question instead of when it holds; `isTyped`: a form keeps what was typed for it.
 */
export async function change({ place, title, changes, verb, note, isTyped = false, make, done }) {
  if (!(await confirmChanges(title, changes, verb, note))) return false;
  try {
    const answer = await make();
    show(place, notice("info", h("p", {}, done(answer))),
      (answer.warnings ?? []).map((text) => notice("warn", h("p", {}, text))));
    return true;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    show(place, error.status === 412 ? conflict(isTyped) : notDone(error));
    return false;
  } finally {
    place.focus();
  }
}

/** What is told of a change that was refused, or of which nobody knows whether it was made. */
export function notDone(fault) {
  const isRefused = fault.status >= 400 && fault.status < 500;
  return failed(isRefused ? "It was not changed."
    : "It is not known whether it was changed: look before you repeat it.", fault);
}

/** What is told when somebody else was faster. */
export function conflict(isTyped = true) {
  return notice("error", h("p", {}, h("strong", {}, "Somebody else changed the configuration first (412). "),
    isTyped
      ? ["Nothing was stored in that step, and what you typed is still here, beside what holds now: ",
        "look at it again and send it once more, or discard it."]
      : ["Nothing was done. What is shown is what holds now: look at it, and do it again if it is still right. ",
        h("a", { href: "#/audit" }, "Who changed what")]));
}
