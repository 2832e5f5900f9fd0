// What somebody is about to change of a combo, beside what holds.

export class Draft {
  /** `held` is what the gateway said last before something was touched. */
  held = null;
  combos = [];
  strategy = "";
  weights = null;
  chain = [];
  isOutdated = false;
  #isKept = false;

  get combo() {
    return this.held.combo;
  }

  get family() {
    return this.held.family;
  }

  get strategies() {
    return this.held.strategies;
  }

  get version() {
    return this.held.version;
  }

  get isDirty() {
    return this.changes().length > 0;
  }

  /** Takes what was read; what somebody has touched stays. Tells whether there is news to draw. */
  take({ combos, routing, chain }) {
    const now = {
      combo: routing.combo,
      family: routing.family,
      strategies: routing.strategies,
      strategy: routing.strategy,
      // What hours of more load shift is not what was set, and must not be sent back as that.
      weights: routing.peak_adjusted && routing.weights
        ? { ...routing.weights, ...routing.custom_weights } : routing.weights,
      isShifted: routing.peak_adjusted,
      chain: chain.items,
      // The older of the two: what came between them would else be overwritten unseen.
      version: Math.min(routing.config_version, chain.config_version),
    };
    this.combos = combos.items.map(({ id }) => id);
    if (this.held && this.isDirty) {
      if (this.#isKept) return this.#putOver(now);
      this.isOutdated = now.version !== this.held.version;
      return false;
    }
    this.#isKept = false;
    const isNews = !this.held || JSON.stringify(now) !== JSON.stringify(this.held);
    this.held = now;
    this.isOutdated = false;
    if (isNews) this.reset();
    return isNews;
  }

  /** Goes back to what was read last. */
  reset() {
    this.strategy = this.held.strategy;
    this.weights = this.held.weights === null ? null : { ...this.held.weights };
    this.chain = this.held.chain.map((one) => ({ ...one }));
  }

  /** Has the next read taken as what holds, with what was touched put over it. */
  keepOver() {
    this.#isKept = true;
  }

  /** What was touched stays, where there still is such a thing; all else is as it holds now. */
  #putOver(now) {
    const { held } = this;
    const mine = { strategy: this.strategy, weights: this.weights, chain: this.chain,
      isStrategy: this.strategy !== held.strategy, changed: this.changedWeights(), isOrder: this.isReordered() };
    const was = new Map(held.chain.map(({ route, enabled }) => [route, enabled]));
    this.held = now;
    this.isOutdated = false;
    this.#isKept = false;
    this.reset();
    if (mine.isStrategy && now.strategies.includes(mine.strategy)) this.strategy = mine.strategy;
    for (const name of mine.changed) {
      if (this.weights && name in this.weights) this.weights[name] = mine.weights[name];
    }
    const places = new Map(mine.chain.map((one, place) => [one.route, { place, enabled: one.enabled }]));
    for (const one of this.chain) {
      const own = places.get(one.route);
      if (own && own.enabled !== was.get(one.route)) one.enabled = own.enabled;
    }
    if (mine.isOrder) {
      const placeOf = ({ route }) => places.get(route)?.place ?? places.size;
      this.chain.sort((one, other) => placeOf(one) - placeOf(other));
    }
    return true;
  }

  /** Has the next read taken whatever was touched. */
  forget() {
    this.held = null;
    this.isOutdated = false;
    this.#isKept = false;
  }

  /** What differs from what holds, a text for each. */
  changes() {
    const { held } = this;
    if (!held) return [];
    const found = [];
    if (this.strategy !== held.strategy) found.push(`Strategy: ${held.strategy} → ${this.strategy}`);
    for (const name of this.changedWeights()) {
      found.push(`Weight of ${name}: ${held.weights[name]} → ${this.weights[name]}`);
    }
    const was = new Map(held.chain.map((one) => [one.route, one.enabled]));
    for (const { route, enabled } of this.chain) {
      if (was.get(route) !== enabled) found.push(`${route}: ${enabled ? "off → on" : "on → off"}`);
    }
    if (this.isReordered()) {
      found.push(`Order: ${this.chain.map(({ route }) => route).join(", ")}`);
    }
    return found;
  }

  /** The bodies of the two calls; null where nothing of it changes. */
  bodies() {
    const { held } = this;
    const routing = {};
    if (this.strategy !== held.strategy) routing.strategy = this.strategy;
    else if (this.changedWeights().length > 0) routing.weights = this.weights;
    const was = JSON.stringify(held.chain.map(({ route, enabled }) => [route, enabled]));
    const isSame = was === JSON.stringify(this.chain.map(({ route, enabled }) => [route, enabled]));
    const items = this.chain.map(({ route, enabled }) => ({ route, enabled }));
    return {
      routing: Object.keys(routing).length ? routing : null,
      chain: isSame ? null : { items },
    };
  }

  changedWeights() {
    if (this.strategy !== this.held.strategy || !this.weights) return [];
    return Object.keys(this.weights).filter((name) => this.weights[name] !== this.held.weights[name]);
  }

  isReordered() {
    return this.chain.some(({ route }, place) => this.held.chain[place]?.route !== route);
  }
}
