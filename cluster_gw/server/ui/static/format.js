// Numbers and times as people read them. A figure of a document is never worked out anew: `exact`
// gives it as it came.

import { serverTime } from "./server_time.js";

export const NONE = "–";

/** A number as the document has it. */
export function exact(value) {
  return value === null || value === undefined ? NONE : String(value);
}

/** The same with at most so many digits after the point, for a quick look. */
export function short(value, digits = 4) {
  if (value === null || value === undefined) return NONE;
  return Number.isInteger(value) ? String(value) : value.toFixed(digits);
}

const LARGE = 10_000;

/** The same, a large whole number with groups of three digits. */
export function figure(value) {
  return Number.isInteger(value) && Math.abs(value) >= LARGE ? value.toLocaleString("en") : exact(value);
}

/** A whole number with groups of three digits. */
export function count(value) {
  return value === null || value === undefined ? NONE : Math.round(value).toLocaleString("en");
}

/** A share of 0 to 1 in percent. */
export function percent(share, digits = 1) {
  return Number.isFinite(share) ? `${(share * 100).toFixed(digits)} %` : NONE;
}

/** A duration in ms, in the unit that suits it. */
export function duration(ms) {
  if (ms === null || ms === undefined) return NONE;
  if (ms === 0) return "0 ms";
  if (ms < 0.995) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  if (ms < 86_400_000) return `${(ms / 3_600_000).toFixed(1)} h`;
  return `${(ms / 86_400_000).toFixed(1)} d`;
}

/** The time of day of an instant, with its date unless that is today. */
export function clock(ms) {
  if (!ms) return NONE;
  const at = new Date(ms);
  const time = at.toLocaleTimeString("en-GB");
  return at.toDateString() === new Date().toDateString() ? time : `${isoDay(at)} ${time}`;
}

function isoDay(at) {
  const two = (number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** How long until an instant; what is over says so. */
export function until(ms, nowMs = serverTime.nowMs()) {
  if (ms === null || ms === undefined) return NONE;
  return within(ms - nowMs);
}

/** How long from now, told as a length. */
export function within(ms) {
  return ms > 0 ? `in ${duration(ms)}` : "now";
}

/** How long since an instant. */
export function since(ms, nowMs = serverTime.nowMs()) {
  return ms ? `${duration(Math.max(0, nowMs - ms))} ago` : NONE;
}

/** A word of the API without its underscores. */
export function words(name) {
  return String(name).replaceAll("_", " ");
}
