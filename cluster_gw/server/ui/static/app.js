// The frame around the pages: who is signed in, which page is shown, and when it is read again.

import { Fault, session } from "./api.js";
import { h, show } from "./dom.js";
import { clock } from "./format.js";
import { auditPage } from "./pages/audit.js";
import { cachePage } from "./pages/cache.js";
import { clientsPage } from "./pages/clients.js";
import { drainPage } from "./pages/drain.js";
import { explainPage } from "./pages/explain.js";
import { keysPage } from "./pages/keys.js";
import { overviewPage } from "./pages/overview.js";
import { pinsPage } from "./pages/pins.js";
import { requestsPage } from "./pages/requests.js";
import { routingPage } from "./pages/routing.js";
import { signIn } from "./pages/sign_in.js";
import { troublePage } from "./pages/trouble.js";
import { usagePage } from "./pages/usage.js";
import { failed, notice } from "./parts/basics.js";

const EVERY_MS = 5000;
const REST = 9; // a read of a large pool takes a worker a second: it gets nine to do other things
const LONGEST_REST_MS = 30_000; // a call that nobody answers must not hide for minutes what others say

/**
 * The pages, in the order of the menu.
 *
 * A page is made for a visit by `make(rest)`, `rest` being what follows its name in the address. It
 * has a `title`; `frame` and `foot`, what is built once; `read(signal, tell, isAsked)`, which asks for data, and may
 * tell of a part of it meanwhile, `isAsked` when somebody wants it now; `draw(data)`, which gives what is shown of it; `isLive`, whether it is read again by itself; `isStill`, whether there is
 * nothing to read; `explain(fault)`, what is shown for a fault it knows.
 */
const PAGES = [
  { name: "overview", label: "Overview", make: overviewPage },
  { name: "trouble", label: "Trouble", make: troublePage },
  { name: "requests", label: "Requests", make: requestsPage },
  { name: "explain", label: "Explain", make: explainPage },
  { name: "keys", label: "Keys and limits", make: keysPage },
  { name: "clients", label: "Clients", make: clientsPage },
  { name: "routing", label: "Routing", make: routingPage },
  { name: "pins", label: "Pins", make: pinsPage },
  { name: "cache", label: "Cache", make: cachePage },
  { name: "usage", label: "Usage", make: usagePage },
  { name: "drain", label: "Drain", make: drainPage },
  { name: "audit", label: "Audit", make: auditPage },
];

const top = document.getElementById("top");
const main = document.getElementById("main");
const said = document.getElementById("said");

const state = { page: null, output: null, visit: null, timer: 0, isPaused: false, readAtMs: 0, tookMs: 0,
  current: "", isMoved: false, isReading: false, data: null, hasData: false };

/** Says something to whoever cannot see the page. */
function say(text) {
  said.textContent = text;
}

function address() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  return { name: name || PAGES[0].name, rest: rest.map(decoded).join("/") };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function leave() {
  clearTimeout(state.timer);
  state.visit?.abort();
  Object.assign(state, { page: null, visit: null, readAtMs: 0, data: null, hasData: false, isReading: false });
}

function visit() {
  if (location.hash === "#main") return;
  leave();
  if (!session.isOpen) {
    showSignIn(null);
    return;
  }
  const { name, rest } = address();
  const known = PAGES.find((page) => page.name === name);
  state.current = known?.name ?? "";
  state.visit = new AbortController();
  state.page = known ? known.make(rest) : null;
  state.output = h("div", { class: "output", id: "output" });
  document.title = `${state.page?.title ?? "Not found"} – cluster-gw`;
  drawTop();
  main.replaceChildren(
    h("h1", {}, state.page?.title ?? "Not found"),
    h("div", { id: "trouble" }),
    ...(state.page ? [state.page.frame ?? "", state.output, state.page.foot ?? ""] :
      [notice("info", h("p", {}, "There is no such page."))]));
  if (state.isMoved) main.focus({ preventScroll: true });
  state.isMoved = true;
  scrollTo(0, 0);
  if (!state.page) return;
  state.page.frame?.addEventListener("page:read", () => void readAgain());
  state.page.frame?.addEventListener("page:draw", drawAgain);
  show(state.output, h("p", { class: "empty" }, "Reading …"));
  void readAgain();
}

async function readAgain(isAsked = false) {
  const { page, visit: mine, output } = state;
  if (!page || !session.isOpen) return;
  clearTimeout(state.timer);
  state.isReading = true;
  const beganMs = performance.now();
  const isMine = () => state.visit === mine && session.isOpen;
  const trouble = document.getElementById("trouble");
  try {
    const data = await page.read(mine.signal, (part) => {
      if (!isMine()) return;
      Object.assign(state, { data: part, hasData: true });
      drawAgain();
    }, isAsked);
    if (!isMine()) return;
    Object.assign(state, { data, hasData: true, readAtMs: Date.now() });
    drawAgain();
    show(trouble);
  } catch (error) {
    if (!isMine() || error.name === "AbortError") return;
    tellTrouble(page, error instanceof Fault ? error : misunderstood(error), trouble, output);
  } finally {
    if (state.visit === mine) {
      output.dataset.reads = Number(output.dataset.reads ?? 0) + 1;
      Object.assign(state, { isReading: false, tookMs: performance.now() - beganMs });
      drawTop();
      plan();
    }
  }
}

function drawAgain() {
  if (state.hasData) show(state.output, state.page.draw(state.data));
}

/** An answer of another version, perhaps: while groups are updated, workers and page may differ. */
function misunderstood(error) {
  console.error(error);
  return new Fault(0, "unreadable", "An answer is not as this page expects it. Load the page anew.");
}

function tellTrouble(page, fault, trouble, output) {
  const own = page.explain?.(fault);
  if (own) {
    show(trouble);
    show(output, own);
    return;
  }
  const stale = state.hasData
    ? h("p", {}, `What is shown below was read at ${clock(state.readAtMs)}.`) : null;
  show(trouble, failed("This could not be read.", fault), stale);
  if (!state.hasData) show(output);
}

function plan() {
  clearTimeout(state.timer);
  if (!state.page?.isLive || state.isPaused || document.hidden) return;
  const rest = Math.min(REST * state.tookMs, LONGEST_REST_MS);
  state.timer = setTimeout(() => void readAgain(), Math.max(EVERY_MS, rest));
}

function drawTop() {
  const isIn = session.isOpen;
  const isStill = state.page === null || state.page.isStill;
  show(top,
    h("a", { class: "brand", href: "#/overview" }, "cluster-gw"),
    isIn ? h("nav", { "aria-label": "Pages" }, h("ul", {}, PAGES.map((page) =>
      h("li", { "data-key": page.name }, h("a", { href: `#/${page.name}`,
        "aria-current": page.name === state.current ? "page" : null }, page.label))))) : null,
    isIn ? h("div", { class: "controls", "data-key": "controls" },
      h("span", { class: "note", id: "read-at" },
        state.readAtMs && !isStill ? `Read at ${clock(state.readAtMs)}` : ""),
      state.page?.isLive ? h("button", { type: "button", "data-key": "pause",
        "aria-pressed": String(state.isPaused), onclick: togglePause },
      state.isPaused ? "Refresh is paused" : "Pause refresh") : null,
      isStill ? null : h("button", { type: "button", "data-key": "now",
        onclick: () => void readAgain(true) }, "Refresh now"),
      h("button", { type: "button", "data-key": "out", onclick: signOut }, "Sign out")) : null);
}

function togglePause() {
  state.isPaused = !state.isPaused;
  say(state.isPaused ? "Refresh is paused." : "The page is read again every five seconds.");
  drawTop();
  if (state.isPaused) clearTimeout(state.timer);
  else void readAgain();
}

function signOut() {
  session.close();
  leave();
  showSignIn(null);
  say("You are signed out.");
}

function showSignIn(fault) {
  leave();
  document.title = "Sign in – cluster-gw";
  drawTop();
  main.replaceChildren(signIn(fault, visit));
  main.querySelector("input")?.focus();
}

session.whenOver((fault) => showSignIn(fault));
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(state.timer);
  else if (state.page?.isLive && !state.isPaused && !state.isReading) void readAgain();
});
addEventListener("hashchange", visit);
visit();
