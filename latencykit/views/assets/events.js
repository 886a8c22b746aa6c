// How many independent events lie above a percentile of a selection: the rules of latencykit/core/tail_events.py. A stall is one.

import { percentileAt } from "./numbers.js";
import { firstFrom, placeOf } from "./data.js";

const LEAST_EVENTS = 20, BURST = 0.001, CARRIED = 90, STEPS_A_NINE = 8;

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

// Requests of each bin above a percentile; timeouts lie above all others. `running` are counts up to each bucket.
function tailOf(data, slots, running, percentile, total) {
  const below = (total * percentile) / 100;
  const cut = firstFrom(running, below * (1 - 1e-12), 0, running.length - 1);
  const inside = running[cut] - (cut ? running[cut - 1] : 0);
  const share = inside ? Math.min(1, Math.max(0, (running[cut] - below) / inside)) : 0;
  return slots.map((s) => {
    const late = data.timeouts ? data.timeouts[s] : 0;
    const first = firstFrom(data.index, cut, data.from[s], data.from[s + 1]);
    if (first === data.from[s + 1]) return late;
    const at = data.index[first] === cut ? (share - 1) * data.counts[first] : 0;
    return late + data.count[s] - data.upTo[first] + data.counts[first] + at;
  });
}

// Kish's effective number of events: bursts that touch are one, every other request is one of its own.
function effectiveEvents(tail, burst, begin, end, reach) {
  let total = 0, squares = 0, stall = 0, last = -1, until = -Infinity;
  tail.forEach((count, k) => {
    total += count;
    if (!burst[k]) {
      squares += count;
      return;
    }
    const apart = last >= 0 && k - last > 1 && begin[k] - reach[k] > until + 1e-6 * (end[k] - begin[k]);
    if (apart) [squares, stall] = [squares + stall * stall, 0];
    stall += count;
    until = Math.max(until, end[k]);
    last = k;
  });
  squares += stall * stall;
  return total > 0 ? (total * total) / Math.max(squares, total) : 0;
}

// The highest percentile of a selection that is based on enough events. Slots that sum up several intervals do not show whether
// slow requests of one slot came together: there each slot is taken for one event at most.
export function supportedUpTo(data, first, last, spread, wanted) {
  const slots = [];
  for (let s = first; s < last; s++) if (data.count[s] || (data.timeouts && data.timeouts[s])) slots.push(s);
  if (!slots.length) return 0;
  const asked = wanted.filter((p) => p > 0 && p < 100);
  for (let k = 2; k / STEPS_A_NINE <= placeOf(spread.limit); k++) asked.push(percentileAt(k / STEPS_A_NINE));
  asked.sort((a, b) => a - b);
  const load = slots.map((s) => data.count[s] + (data.timeouts ? data.timeouts[s] : 0)), usual = usualLoad(load);
  const all = usual.reduce((a, b) => a + b, 0), running = new Float64Array(data.high.length);
  for (let k = data.from[first]; k < data.from[last]; k++) running[data.index[k]] += data.counts[k];
  for (let k = 1; k < running.length; k++) running[k] += running[k - 1];
  const begin = slots.map((s) => data.start[s]), end = slots.map((s) => data.end[s]);
  const reach = slots.map((s) => (data.reaching && data.max[s] ? data.max[s] / 1e9 : 0));
  let carried = slots.map(() => false), supported = 0;
  for (let k = 0; k < asked.length && asked[k] <= spread.limit; k++) {
    const tail = tailOf(data, slots, running, asked[k], spread.total), sum = tail.reduce((a, b) => a + b, 0);
    const burst = tail.map((count, j) => {
      const expected = (sum * usual[j]) / all;
      if (!count || carried[j]) return carried[j] && count > 0;
      // Within three standard deviations the upper tail of a Poisson variable is above BURST.
      return count > 1 && count > expected + 3 * Math.sqrt(expected) && poissonAtLeast(count, expected) < BURST / tail.length;
    });
    if (asked[k] >= CARRIED) carried = burst;
    const together = data.width === null ? Infinity : (sum * sum) / Math.max(1e-300, tail.reduce((a, b) => a + b * b, 0));
    if (Math.min(effectiveEvents(tail, burst, begin, end, reach), together) < LEAST_EVENTS * (1 - 1e-9)) return supported;
    supported = asked[k];
  }
  return spread.limit;
}
