// Why a request went where it went, or where one would go now.

import { ask, Fault } from "../api.js";
import { h, show } from "../dom.js";
import { empty, failed, field, notice } from "../parts/basics.js";
import { explanation, firstToBeTried } from "../parts/explanation.js";
import { onePage } from "./requests.js";

const SURFACES = ["chat", "responses", "messages", "completions", "embeddings", "gemini"];
const EXAMPLE = { model: "auto", messages: [{ role: "user", content: "hello" }] };

/** The two questions; with an id the answer to the first. */
export function explainPage(id) {
  const byId = idForm(id);
  if (id) {
    const page = onePage(id);
    return { ...page, title: "Explain a request", frame: byId };
  }
  const answer = h("div", { id: "answer" });
  return {
    title: "Explain",
    isLive: false,
    isStill: true,
    frame: h("div", {}, byId, forecastForm(answer), answer),
    read: async () => null,
    draw: () => [],
  };
}

function idForm(id) {
  const input = h("input", { id: "request-id", type: "text", value: id, required: true,
    spellcheck: "false", autocomplete: "off" });
  const go = (event) => {
    event.preventDefault();
    const name = input.value.trim();
    if (name) location.hash = `#/explain/${encodeURIComponent(name)}`;
  };
  return h("form", { class: "panel", onsubmit: go, "aria-label": "A request that has ended" },
    h("h2", {}, "A request that has ended"),
    field("Request id", input, "The value of X-Gw-Request-Id of its answer."),
    h("button", { type: "submit" }, "Explain it"));
}

function forecastForm(answer) {
  const body = h("textarea", { id: "body", rows: 10, spellcheck: "false", required: true,
    value: JSON.stringify(EXAMPLE, null, 2) });
  const surface = h("select", { id: "surface" },
    SURFACES.map((name) => h("option", { value: name }, name)));
  const client = h("input", { id: "client", type: "text", autocomplete: "off", spellcheck: "false" });
  const headers = h("textarea", { id: "headers", rows: 2, spellcheck: "false" });
  const sample = h("input", { id: "sample", type: "checkbox" });

  async function foresee(event) {
    event.preventDefault();
    let text;
    try {
      text = question(body.value, { surface: surface.value, client: client.value.trim() || null,
        headers: readHeaders(headers.value), sample: sample.checked });
    } catch (error) {
      show(answer, notice("error", h("p", {}, error.message)));
      return;
    }
    show(answer, empty("Asking …"));
    try {
      const told = await ask("api/explain", { method: "POST", text });
      show(answer, verdict(told), explanation(told, firstToBeTried(told)));
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      show(answer, failed("The request could not be served:", error));
    }
  }

  return h("form", { class: "panel", onsubmit: (event) => void foresee(event),
    "aria-label": "A request that would come now" },
  h("h2", {}, "A request that would come now"),
  field("Body", body, "As a client would send it, in JSON. Nothing is sent to any provider."),
  h("div", { class: "row" },
    field("Surface", surface), field("Client", client, "Its id; anybody without it.")),
  field("Headers", headers, "One on each line, such as X-Gw-Session-Id: s1"),
  h("div", { class: "field check" }, sample,
    h("label", { for: "sample" }, "Draw as for a real request, instead of means")),
  h("button", { type: "submit", class: "primary" }, "Explain"));
}

/** The question as text: the request goes out as it was typed, long numbers and all. */
function question(request, more) {
  JSON.parse(request);
  return `{"request": ${request}, ${JSON.stringify(more).slice(1)}`;
}

function readHeaders(text) {
  const headers = {};
  for (const line of text.split("\n").filter((one) => one.trim())) {
    const at = line.indexOf(":");
    if (at < 1) throw new Error(`This is no header, write NAME: VALUE. – ${line}`);
    headers[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return headers;
}

function verdict(told) {
  const first = firstToBeTried(told);
  return h("div", { role: "status" }, first
    ? notice("info", h("p", {}, "It would be sent to ",
      h("strong", { class: "route", id: "winner" }, first.route), " first."))
    : notice("warn", h("p", {}, "Nothing could take it now; what is left out says why.")));
}
