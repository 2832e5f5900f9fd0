// Asks before something is changed.

import { h } from "../dom.js";

const IN_FORCE = "It is in force on all workers within two seconds.";

/**
 * Shows a question with the changes it is about; gives whether they are wanted.
 *
 * `changes` are texts. Escape and "Cancel" mean no, and nothing is chosen beforehand but "Cancel".
 */
export function confirmChanges(title, changes, verb = "Apply", note = IN_FORCE) {
  return new Promise((resolve) => {
    const close = (answer) => () => dialog.close(answer);
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" },
      h("h2", { id: "dialog-title" }, title),
      h("ul", { class: "changes" }, changes.map((change) => h("li", {}, change))),
      h("p", { class: "note" }, note),
      h("div", { class: "actions" },
        h("button", { type: "button", autofocus: true, onclick: close("no") }, "Cancel"),
        h("button", { type: "button", class: "primary", onclick: close("yes") }, verb)));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
