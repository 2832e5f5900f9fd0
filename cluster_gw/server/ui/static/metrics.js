// Reads the Prometheus text format, as far as the gateway writes it.

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const ESCAPED = { n: "\n" };

/** Gives the samples of each name, as a list of `{labels, value}`. */
export function parseMetrics(text) {
  const found = new Map();
  for (const line of text.split("\n")) {
    if (line.startsWith("#")) continue;
    const sample = SAMPLE.exec(line);
    if (!sample) continue;
    const labels = {};
    for (const [, name, value] of (sample[2] ?? "").matchAll(LABEL)) {
      labels[name] = value.replace(/\\(.)/g, (_, mark) => ESCAPED[mark] ?? mark);
    }
    if (!found.has(sample[1])) found.set(sample[1], []);
    found.get(sample[1]).push({ labels, value: Number(sample[3]) });
  }
  return found;
}

/** The sum over all samples of a name for which `holds`; null when there is none of that name. */
export function total(metrics, name, holds = () => true) {
  const samples = metrics.get(name);
  if (!samples) return null;
  return samples.filter(({ labels }) => holds(labels)).reduce((sum, { value }) => sum + value, 0);
}

/** Sums by the value of one label, the largest first. */
export function totalsBy(metrics, name, label) {
  const sums = new Map();
  for (const { labels, value } of metrics.get(name) ?? []) {
    sums.set(labels[label], (sums.get(labels[label]) ?? 0) + value);
  }
  return [...sums].sort(([, one], [, other]) => other - one);
}
