// Asks for the token of the admin API, and says why the last one was not taken.

import { ask, Fault, session } from "../api.js";
import { h, show } from "../dom.js";
import { duration } from "../format.js";
import { field, notice } from "../parts/basics.js";

const SHORTEST = 32;

/** Gives the form; `then` is called when a token has been taken. */
export function signIn(fault, then) {
  const input = h("input", { id: "token", name: "token", type: "password", required: true,
    autocomplete: "current-password", spellcheck: "false" });
  const keep = h("input", { id: "keep", type: "checkbox" });
  const told = h("div", { id: "refusal" });
  const button = h("button", { type: "submit", class: "primary" }, "Sign in");

  async function enter(event) {
    event.preventDefault();
    button.disabled = true;
    show(told);
    session.open(input.value.trim(), { isKept: keep.checked });
    try {
      await ask("api/config");
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      if (!session.isOpen) return; // The page was drawn anew with the reason.
      session.close();
      show(told, refusal(error));
      button.disabled = false;
      return;
    }
    input.value = "";
    then();
  }

  const form = h("form", { class: "sign-in", onsubmit: (event) => void enter(event) },
    h("h1", {}, "Sign in"), told,
    // Managers of passwords look for whose it is.
    h("input", { type: "text", name: "username", value: "admin", autocomplete: "username", hidden: true }),
    field("Admin token", input, "The value of GW_ADMIN_TOKEN of the gateway."),
    h("div", { class: "field check" }, keep,
      h("label", { for: "keep" }, "Keep it in this tab over a reload")),
    button);
  if (fault) show(told, refusal(fault));
  return form;
}

function refusal(fault) {
  if (fault.code === "admin_disabled") {
    return notice("error", h("p", {}, h("strong", {}, "The admin API is off.")),
      h("p", {}, `Set GW_ADMIN_TOKEN to at least ${SHORTEST} characters in the environment of `,
        h("code", {}, "cluster-gw serve"), " and start it again."));
  }
  if (fault.status === 401) {
    return notice("error", h("p", {}, h("strong", {}, "This token is not known here (401).")),
      h("p", {}, "It is the value of GW_ADMIN_TOKEN in the environment of the gateway; it may have ",
        "been changed since."));
  }
  const wait = fault.retryAfterMs ? ` Try again in ${duration(fault.retryAfterMs)}.` : "";
  return notice("error", h("p", {}, `${fault.message}${wait}`));
}
