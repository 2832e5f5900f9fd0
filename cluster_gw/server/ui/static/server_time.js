// The time as the gateway has it: a browser's own clock may be minutes off, and "in 12 s" would lie.

const TOLERATED_MS = 2000; // headers tell whole seconds, and an answer takes a while

class ServerTime {
  #aheadMs = 0;

  /** Notes the header `Date` of an answer that has just come; nonsense is ignored. */
  note(header) {
    const aheadMs = Date.parse(header ?? "") - Date.now();
    if (Number.isNaN(aheadMs)) return;
    this.#aheadMs = Math.abs(aheadMs) > TOLERATED_MS ? aheadMs : 0;
  }

  /** Now, in ms since the epoch. */
  nowMs() {
    return Date.now() + this.#aheadMs;
  }
}

export const serverTime = new ServerTime();
