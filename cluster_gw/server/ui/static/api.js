// Asks the gateway. The token is kept in memory, and over a reload of this tab only where whoever
// signed in said so; it goes nowhere but into the header of calls to this very origin.

import { serverTime } from "./server_time.js";

const ROOT = new URL("../", import.meta.url);
const STORED = "cluster-gw.token";
const WITHIN_MS = 20_000;

/** What a call came to instead of an answer. Status 0: there was none. */
export class Fault extends Error {
  constructor(status, code, message, retryAfterMs = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

class Session {
  #token = read();
  #whenOver = () => {};

  get isOpen() {
    return this.#token !== "";
  }

  /** Uses a token from now on; it is not known yet to be right. */
  open(token, { isKept }) {
    this.#token = token;
    if (isKept) write(token);
    else write("");
  }

  close() {
    this.#token = "";
    write("");
  }

  /** Sets what is called with the fault when the gateway does not take the token (any more). */
  whenOver(callback) {
    this.#whenOver = callback;
  }

  end(fault) {
    this.close();
    this.#whenOver(fault);
  }

  get header() {
    // A header is bytes, each as one character; what is no ASCII is sent as the gateway reads it.
    const bytes = new TextEncoder().encode(this.#token);
    return { authorization: `Bearer ${String.fromCharCode(...bytes)}` };
  }
}

// A browser may forbid storage altogether; then nothing is kept.
function read() {
  try {
    return sessionStorage.getItem(STORED) ?? "";
  } catch {
    return "";
  }
}

function write(token) {
  try {
    if (token) sessionStorage.setItem(STORED, token);
    else sessionStorage.removeItem(STORED);
  } catch {
    // It stays in memory.
  }
}

export const session = new Session();

/**
 * Calls the admin API with the token; sends `body` as JSON, or `text`, which is JSON already.
 *
 * Throws a Fault for whatever is no answer of 2xx; one that says that the token is wrong or the API
 * is off also ends the session.
 */
export async function ask(path, { method = "GET", body, text, ifMatch, signal } = {}) {
  const headers = { ...session.header };
  const sent = text ?? (body === undefined ? undefined : JSON.stringify(body));
  if (sent !== undefined) headers["content-type"] = "application/json";
  if (ifMatch !== undefined) headers["if-match"] = String(ifMatch);
  const response = await send(path, { method, headers, body: sent, signal });
  const told = await parsed(response);
  if (response.ok) return told;
  const fault = faultOf(response, told);
  if (fault.status === 401 || fault.code === "admin_disabled") session.end(fault);
  throw fault;
}

/** Gives the fault of a call as its value: one part that cannot be read leaves the others be. */
export async function orFault(answer) {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Fault && error.status !== 401) return error;
    throw error;
  }
}

/** Reads what the operations port tells everybody; `isStatus` takes answers of any status. */
export async function readOpen(path, { isJson, isStatus = false, signal } = {}) {
  const response = await send(path, { signal });
  if (!response.ok && !isStatus) throw faultOf(response, {});
  return isJson ? parsed(response) : response.text();
}

async function send(path, { signal, ...options }) {
  const limit = AbortSignal.timeout(WITHIN_MS);
  try {
    const response = await fetch(new URL(path, ROOT), {
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
      ...options,
    });
    serverTime.note(response.headers.get("date"));
    return response;
  } catch (error) {
    if (signal?.aborted) throw error;
    const isLate = error.name === "TimeoutError";
    const told = isLate
      ? `The gateway did not answer within ${WITHIN_MS / 1000} s.` : "The gateway cannot be reached.";
    throw new Fault(0, "unreachable", told);
  }
}

async function parsed(response) {
  try {
    return await response.json();
  } catch {
    return {};
  }
}

function faultOf(response, told) {
  const error = told?.error ?? {};
  const message = error.message ?? `The gateway answered with status ${response.status}.`;
  return new Fault(response.status, error.code ?? "", message, error.retry_after_ms ?? null);
}
