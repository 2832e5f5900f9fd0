// A page made of panels: each shows what some documents of the API say, by itself. One whose
// document cannot be read says so, with the time of what it shows, and leaves the others be.

import { Fault } from "../api.js";
import { clock } from "../format.js";
import { h } from "../dom.js";
import { empty, failed, notice, section } from "./basics.js";

const LATE_MS = 1000;

/**
 * Makes a page.
 *
 * `sources` are functions of a signal by name, each of which reads a document, and of whether somebody wants it now. A panel has an `id`, a
 * `title`, the names of the sources it `needs`, and `draw(documents)`, which gives what is shown of
 * them. `more` are further properties of the page. When no source can be read, the page as a whole says so.
 */
export function panelPage({ title, sources, panels, ...more }) {
  const held = new Map();
  return {
    title,
    isLive: true,
    ...more,
    async read(signal, tell, isAsked) {
      // A document that is long in coming must not hold up the others.
      const late = setInterval(() => held.size && tell(held), LATE_MS);
      signal.addEventListener("abort", () => clearInterval(late));
      await Promise.all(Object.entries(sources).map(async ([name, read]) => {
        held.set(name, await taken(read(signal, isAsked), held.get(name)));
      })).finally(() => clearInterval(late));
      const faults = Object.keys(sources).map((name) => held.get(name).fault);
      if (faults.every(Boolean)) throw faults[0];
      return held;
    },
    draw: () => panels.map((panel) => drawn(panel, held)),
  };
}

/** What is known of a source now: what came, or what came before with the fault of now. */
async function taken(answer, before) {
  try {
    return { told: await answer, atMs: Date.now(), fault: null };
  } catch (error) {
    if (!(error instanceof Fault) || error.status === 401) throw error;
    return { told: before?.told, atMs: before?.atMs ?? 0, fault: error };
  }
}

function drawn({ id, title, needs, draw }, held) {
  const parts = needs.map((name) => held.get(name));
  if (!parts.every(Boolean)) return section(id, title, empty("Reading …"));
  const fault = parts.find((one) => one.fault)?.fault ?? null;
  const isThere = parts.every(({ told }) => told !== undefined);
  return section(id, title,
    fault ? outdated(fault, isThere ? Math.min(...parts.map(({ atMs }) => atMs)) : 0) : null,
    isThere ? attempted(() => draw(Object.fromEntries(needs.map((name, at) => [name, parts[at].told]))))
      : null);
}

function outdated(fault, readAtMs) {
  return h("div", { "data-key": "outdated" }, failed("This part could not be read.", fault),
    readAtMs ? h("p", {}, `What is shown here is old: it was read at ${clock(readAtMs)}.`) : null);
}

/** A document of another version, perhaps: while groups are updated, workers and page may differ. */
function attempted(draw) {
  try {
    return draw();
  } catch (error) {
    console.error(error);
    return notice("error", h("p", {}, "This part is not as this page expects it. Load the page anew."));
  }
}
