// What a score is made of, as lengths. The lengths are drawn from the figures of the document; no
// figure comes from here.

import { h } from "../dom.js";
import { exact, short } from "../format.js";

const COLOURS = 8;

/** Tells each factor of a ranking which colour it has, in the order in which they come. */
export function colourFactors(ranking) {
  const names = new Set(ranking.flatMap((place) => place.factors.map(({ name }) => name)));
  return new Map([...names].map((name, place) => [name, `colour-${(place % COLOURS) + 1}`]));
}

/** What the colours mean. */
export function legend(colours) {
  return h("ul", { class: "legend", "aria-label": "Factors" },
    [...colours].map(([name, colour]) =>
      h("li", {}, h("span", { class: `swatch ${colour}`, "aria-hidden": "true" }), name)),
    h("li", {}, h("span", { class: "swatch final", "aria-hidden": "true" }),
      "score after multipliers and adjustments"));
}

/** The figure that takes the whole length: the greatest of a ranking. */
export function scaleOf(ranking) {
  const lengths = ranking.flatMap((place) => [
    place.score ?? 0,
    place.factors.reduce((sum, { contribution }) => sum + Math.max(contribution, 0), 0),
  ]);
  return Math.max(...lengths, Number.MIN_VALUE);
}

/** The bar of one place: contributions stacked, and below them the score. */
export function scoreBar(place, scale, colours) {
  const width = (value) => ({ width: `${(Math.max(value, 0) / scale) * 100}%` });
  const told = place.factors.map(({ name, contribution }) => `${name} ${short(contribution)}`);
  return h("div", { class: "score-bar", role: "img",
    "aria-label": `Contributions: ${told.join(", ")}. Score: ${short(place.score)}.` },
    h("div", { class: "stack" }, place.factors.map(({ name, contribution }) =>
      h("span", { class: `segment ${colours.get(name)}`, style: width(contribution),
        title: `${name}: ${exact(contribution)}` }))),
    h("div", { class: "final-track" },
      h("span", { class: "final", style: width(place.score ?? 0),
        title: `score: ${exact(place.score)}` })));
}
