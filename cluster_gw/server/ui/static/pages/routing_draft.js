// What somebody is about to change of a combo, beside what holds.

export class Draft {
  /** `held` is what the gateway said last before something was touched. */
  held = null;
  combos = [];
  strategy = "";
  weights = null;
  chain = [];
  isOutdated = false;

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
      this.isOutdated = now.version !== this.held.version;
      return false;
    }
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

  /** Has the next read taken whatever was touched. */
  forget() {
    this.held = null;
    this.isOutdated = false;
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
