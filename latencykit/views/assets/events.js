// How many independent events lie above a percentile of a selection: the rules of latencykit/core/evidence.py. A stall is one.

import { firstFrom } from "./data.js";

export const LEAST_EVENTS = 20;
export const Z = 1.959963984540054;
const BURST = 0.001, CARRIED = 90;

// ln Γ(x) for x ≥ 1 (Stirling's series, after the recurrence has made x large).
function lnGamma(x) {
  let shift = 0;
  for (; x < 12; x++) shift -= Math.log(x);
  return shift + (x - 0.5) * Math.log(x) - x + 0.9189385332046727 + 1 / (12 * x) - 1 / (360 * x ** 3);
}

// Probability of `count` or more where `mean` is expected: the regularized incomplete gamma function, by its series.
function poissonAtLeast(count, mean) {
  if (!(mean > 0)) return 0;
  let term = 1, sum = 1;
  for (let n = 1; n < 10000 && term > 1e-17 * sum; n++) sum += term *= mean / (count + n);
  return Math.min(1, sum * Math.exp(count * Math.log(mean) - mean - lnGamma(count + 1)));
}

function medianOf(values) {
  const sorted = [...values].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// What is usual for each slot: a backlog that is worked off crowds a slot, and must not raise what is expected of it.
function usualLoad(load) {
  const reach = 5, all = load.length < 4 * reach + 2 ? medianOf(load) : null;
  const edge = (k) => load[Math.min(load.length - 1, Math.max(0, k))];
  return load.map((count, k) => {
    const near = all ?? medianOf(Array.from({ length: 2 * reach + 1 }, (_, j) => edge(k + j - reach)));
    return Math.min(count, 2 * near);
  });
}

// Whether a count is too high for chance: P(X ≥ count) < level where `mean` is expected. Two bounds settle nearly all counts:
// Chernoff's from above, and P(X = count) from below.
function isBurst(count, mean, level) {
  if (count <= 1 || count <= mean + 3 * Math.sqrt(mean)) return false; // there, the probability is above BURST
  if (!(mean > 0)) return true;
  const logs = count * Math.log(mean) - mean, wanted = Math.log(level);
  if (logs + count - count * Math.log(count) < wanted) return true;
  return logs - lnGamma(count + 1) < wanted && poissonAtLeast(count, mean) < level;
}

// Kish's effective number of events: bursts that touch, or with nothing but slow slots between them, are one; every other request is
// one of its own.
function effectiveEvents(tail, burst, slow, begin, end, reach) {
  let total = 0, squares = 0, stall = 0, until = -Infinity, parted = false;
  for (let k = 0; k < tail.length; k++) {
    const count = tail[k];
    total += count;
    if (!burst[k]) {
      squares += count;
      parted ||= !slow[k];
      continue;
    }
    const apart = parted && begin[k] - reach[k] > until + 1e-6 * (end[k] - begin[k]);
    if (apart) [squares, stall] = [squares + stall * stall, 0];
    stall += count;
    until = Math.max(until, end[k]);
    parted = false;
  }
  squares += stall * stall;
  return total > 0 ? (total * total) / Math.max(squares, total) : 0;
}

// Percentile and independent events above it, of each of some percentiles, ascending; with them the requests of each bin
// above it and in all, in arrays that the next percentile overwrites. Timeouts lie above all others.
export function* eventsAbove(data, ranges, spread, percentiles) {
  const slots = [], asked = [...percentiles].sort((a, b) => a - b), late = (s) => (data.timeouts ? data.timeouts[s] : 0);
  for (const [first, last] of ranges) for (let s = first; s < last; s++) if (data.count[s] || late(s)) slots.push(s);
  if (!slots.length) return;
  const size = slots.length, load = slots.map((s) => data.count[s] + late(s)), usual = usualLoad(load);
  const all = usual.reduce((a, b) => a + b, 0), running = Float64Array.from(spread.counts);
  for (let k = 1; k < running.length; k++) running[k] += running[k - 1];
  const begin = slots.map((s) => data.start[s]), end = slots.map((s) => data.end[s]);
  const reach = slots.map((s) => (data.reaching && data.max[s] ? data.max[s] / 1e9 : 0));
  const at = slots.map((s) => data.from[s]), tail = new Float64Array(size), burst = new Uint8Array(size);
  const slow = new Uint8Array(size), carried = new Uint8Array(size);
  for (const percentile of asked) {
    const below = (spread.total * percentile) / 100, cut = firstFrom(running, below * (1 - 1e-12), 0, running.length - 1);
    const inside = running[cut] - (cut ? running[cut - 1] : 0), share = inside ? Math.min(1, Math.max(0, (running[cut] - below) / inside)) : 0;
    let sum = 0, squares = 0;
    for (let j = 0; j < size; j++) {
      const s = slots[j], until = data.from[s + 1];
      let k = at[j]; // percentiles ascend, and so does the first bucket above them
      while (k < until && data.index[k] < cut) k++;
      at[j] = k;
      const above = k === until ? 0 : data.count[s] - data.upTo[k] + data.counts[k] + (data.index[k] === cut ? (share - 1) * data.counts[k] : 0);
      tail[j] = late(s) + above;
      sum += tail[j];
      squares += tail[j] * tail[j];
    }
    for (let j = 0; j < size; j++) {
      burst[j] = tail[j] && (carried[j] || isBurst(tail[j], (sum * usual[j]) / all, BURST / size)) ? 1 : 0;
      slow[j] = carried[j] || burst[j];
    }
    if (percentile >= CARRIED) carried.set(slow);
    const together = data.width === null ? Infinity : (sum * sum) / Math.max(1e-300, squares);
    yield [percentile, Math.min(effectiveEvents(tail, burst, slow, begin, end, reach), together), tail, load];
  }
}

// ---------------------------------------------------------------- how requests of successive bins depend on each other

const LEAST_BINS = 20, BLOCKS = 10, GROWTH = 2;

// The long-run variance of a sum, from overlapping blocks of every length up to a tenth.
export function longRun(residual) {
  const n = residual.length;
  if (n < LEAST_BINS) return { variance: Infinity, degrees: 2, settled: false };
  const longest = Math.max(1, Math.floor(n / BLOCKS)), lengths = [], sums = new Float64Array(n + 1);
  for (let length = 1; length <= longest; length *= 2) lengths.push(length);
  if (lengths.at(-1) < longest) lengths.push(longest);
  for (let k = 0; k < n; k++) sums[k + 1] = sums[k] + residual[k];
  const found = lengths.map((length) => {
    let squares = 0;
    for (let k = length; k <= n; k++) squares += (sums[k] - sums[k - length]) ** 2;
    return ((squares / (n - length + 1)) * n) / length / (1 - length / n);
  });
  const last = found.at(-1), [half, quarter] = [2, 4].map((part) => found[lengths.findLastIndex((length) => length <= Math.max(1, Math.floor(longest / part)))]);
  const most = Math.max(...found), degrees = Math.max(2, (1.5 * n) / lengths[found.indexOf(most)] - 1);
  return { variance: Math.max(most, last + Math.max(last - half, 0)), degrees, settled: last <= GROWTH * quarter };
}

// As many independent events as are as uncertain as the requests above a percentile: dependence in time makes them fewer, and
// so do few bins (Student's quantile for the normal one). None where the bins are too few to show it, or drift.
export function independentEvents(tail, load) {
  let above = 0, total = 0;
  for (let k = 0; k < tail.length; k++) [above, total] = [above + tail[k], total + load[k]];
  const share = above / total, { variance, degrees, settled } = longRun(Float64Array.from(tail, (count, k) => count - share * load[k]));
  if (!settled || !(above > 0) || share >= 1) return 0;
  const z = Z * Z, student = 1 + (z + 1) / 4 / degrees + (5 * z * z + 16 * z + 3) / 96 / degrees ** 2;
  return ((1 - share) * above * above) / (Math.max(variance, above * (1 - share)) * student * student);
}
