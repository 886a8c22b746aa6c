// Which percentiles of a selection are shown plain: the jackknife over blocks of time of latencykit/core/jackknife.py.

const Z = 1.959963984540054;
const SUPPORT = {
  blocks: 12, minBlocks: 3, range: 1.25, stepsPerOctave: 4, leastCorrelation: 0.1, sliver: 1.5, columns: 64, groups: 400,
  usual: [75, 90, 95, 99, 99.9, 99.99, 99.999],
};

// Student's two-sided quantile of 95 % (Cornish and Fisher).
function studentQuantile(degrees) {
  const first = (Z ** 3 + Z) / 4, second = (5 * Z ** 5 + 16 * Z ** 3 + 3 * Z) / 96;
  return Z + first / degrees + second / degrees ** 2 + (3 * Z ** 7 + 19 * Z ** 5 + 17 * Z ** 3 - 15 * Z) / 384 / degrees ** 3;
}

// The group of each bucket: columns of 1.1 %, put together to some hundred, fine in the tails. What timed out lies above all.
function groupsOf(data, { counts, late, value: values }) {
  const sums = new Map(), column = (k) => Math.floor(SUPPORT.columns * Math.log2(Math.max(data.high[k], 2 ** -40)));
  for (let k = 0; k < counts.length; k++) if (counts[k]) sums.set(column(k), (sums.get(column(k)) || 0) + counts[k]);
  const steps = [...sums.keys()].sort((a, b) => a - b), total = steps.reduce((sum, step) => sum + sums.get(step), late);
  let below = 0;
  const odds = steps.map((step) => {
    const share = ((below += sums.get(step)) - sums.get(step) / 2 + 0.25) / (total + 0.5);
    return Math.log(share / (1 - share));
  });
  const width = (odds.at(-1) - odds[0]) / SUPPORT.groups || 1, groups = new Map(), weight = [], value = [];
  let before = null;
  steps.forEach((step, k) => {
    const own = steps.length > SUPPORT.groups ? Math.min(Math.floor((odds[k] - odds[0]) / width), SUPPORT.groups - 1) : k;
    if (own !== before) [weight[weight.length], value[value.length], before] = [0, 0, own];
    groups.set(step, weight.length - 1);
    weight[weight.length - 1] += sums.get(step);
    value[value.length - 1] += sums.get(step) * 2 ** ((step + 0.5) / SUPPORT.columns);
  });
  const logs = value.map((sum, k) => Math.log(sum / weight[k]));
  if (late) logs.push(Math.log(values.at(-1)));
  return { group: Int32Array.from(counts, (count, k) => (count ? groups.get(column(k)) : 0)), logs };
}

// Logarithm of the value with each share above it: it goes over from one group to the next within half of the smaller one.
function quantiles(counts, logs, shares) {
  let below = 0, last = -1;
  const ranks = [], value = [], total = counts.reduce((a, b) => a + b, 0);
  counts.forEach((count, k) => {
    if (!(count > 0)) return;
    const half = last < 0 ? 0 : Math.min(count, counts[last]) / 2;
    ranks.push(below - half, below + half);
    value.push(logs[last < 0 ? k : last], logs[k]);
    [below, last] = [below + count, k];
  });
  let k = ranks.length - 1; // shares above descend, and so do ranks from the last to the first
  const found = new Float64Array(shares.length);
  for (let j = shares.length - 1; j >= 0; j--) {
    const rank = (1 - shares[j]) * total;
    while (k > 0 && ranks[k] > rank) k--;
    const part = k < ranks.length - 1 ? Math.max(0, (rank - ranks[k]) / (ranks[k + 1] - ranks[k])) : 0;
    found[j] = value[k] + (part ? part * (value[k + 1] - value[k]) : 0);
  }
  return found;
}

// The counts of each block of a selection: as many bins each, or a bin each where there are few.
function blocksOf(data, ranges, group, size, late) {
  const bins = [];
  for (const [first, last] of ranges) for (let s = first; s < last; s++) if (data.count[s] || late(s)) bins.push(s);
  const number = Math.min(SUPPORT.blocks, bins.length), edge = (b) => (b < number ? Math.floor(b * (bins.length / number)) : bins.length);
  const blocks = Array.from({ length: number }, () => new Float64Array(size));
  for (let b = 0; b < number; b++)
    for (let j = edge(b); j < edge(b + 1); j++) {
      const s = bins[j];
      for (let k = data.from[s]; k < data.from[s + 1]; k++) blocks[b][group[data.index[k]]] += data.counts[k];
      if (late(s)) blocks[b][size - 1] += late(s);
    }
  return { blocks, bins };
}

// The factor by which drift that is slower than a block widens the standard error: bins around the median stay alike over some.
function driftOf(bins, group, data, logs) {
  const sizes = bins.map((s) => data.count[s]), whole = sizes.reduce((a, b) => a + b, 0), counts = new Float64Array(logs.length);
  for (const s of bins) for (let k = data.from[s]; k < data.from[s + 1]; k++) counts[group[data.index[k]]] += data.counts[k];
  let half = 0;
  for (let below = 0; half < counts.length - 1 && below + counts[half] < whole / 2; half++) below += counts[half];
  half = Math.max(half, 1);
  const slow = bins.map((s) => {
    let above = 0;
    for (let k = data.from[s]; k < data.from[s + 1]; k++) if (group[data.index[k]] >= half) above += data.counts[k];
    return above;
  });
  const share = slow.reduce((a, b) => a + b, 0) / whole, rest = slow.map((above, j) => above - share * sizes[j]), n = rest.length;
  const product = (lag) => rest.slice(lag).reduce((sum, value, j) => sum + value * rest[j], 0), first = product(0);
  let correlation = 1;
  for (let lag = 1; first > 0 && lag < n; lag++) {
    const one = product(lag) / first;
    if (one < Math.max(SUPPORT.leastCorrelation, 1 / Math.sqrt(n))) break; // one standard error is noise
    correlation += 2 * one;
  }
  const variance = (length) => (correlation / length) * (1 - (correlation / 2 / length) * (1 - Math.exp((-2 * length) / correlation)));
  const apart = (variance(n / SUPPORT.blocks) - variance(n)) / (SUPPORT.blocks - 1);
  return apart > 0 ? Math.sqrt(Math.max(variance(n) / apart, 1)) : Infinity;
}

// How a selection varies between blocks of time: their number, and how far the value with each of some shares above it, descending,
// may lie from it with 95 %, as a logarithm; with the drift that blocks share.
export function jackknifeOf(data, ranges, spread) {
  const late = (s) => (data.timeouts ? data.timeouts[s] : 0), { group, logs } = groupsOf(data, spread);
  const { blocks, bins } = blocksOf(data, ranges, group, logs.length, late), number = blocks.length;
  const whole = new Float64Array(logs.length);
  for (const block of blocks) block.forEach((count, k) => (whole[k] += count));
  const reach = (shares) => {
    const leftOut = blocks.map((block) => quantiles(whole.map((count, k) => count - block[k]), logs, shares));
    const factor = studentQuantile(number - 1) * (number === SUPPORT.blocks ? driftOf(bins, group, data, logs) : 1);
    return shares.map((_, k) => {
      const mean = leftOut.reduce((sum, row) => sum + row[k], 0) / number;
      const error = Math.sqrt(((number - 1) / number) * leftOut.reduce((sum, row) => sum + (row[k] - mean) ** 2, 0));
      return error && factor * error;
    });
  };
  return { number, full: number === SUPPORT.blocks, reach };
}

// The ranges of percentiles of a selection that are not known within a quarter.
export function doubtsIn(data, ranges, spread, { number, full, reach: reachOf } = jackknifeOf(data, ranges, spread)) {
  const few = [spread.limit, 100], octaves = Math.log2(Math.max(spread.total, 4)) - 1, most = Math.log(SUPPORT.range);
  // Where bins of a page are wider than those of the log, too few of them do not show how its parts differ.
  if (!full && data.width !== null) return [[0, 100]];
  if (number < SUPPORT.minBlocks) return [few];
  const steps = Array.from({ length: Math.ceil(octaves * SUPPORT.stepsPerOctave) + 1 }, (_, k) => 0.5 * 2 ** (-k / SUPPORT.stepsPerOctave));
  const shares = [...new Set([...steps, ...SUPPORT.usual.map((p) => 1 - p / 100)])].filter((share) => share >= 0.5 * 2 ** -octaves).sort((a, b) => b - a);
  const reach = reachOf(shares);
  const doubts = [], border = (k) => 100 * (1 - Math.exp(Math.log(shares[k - 1]) + ((most - reach[k - 1]) / (reach[k] - reach[k - 1])) * Math.log(shares[k] / shares[k - 1])));
  for (let k = 0, first = null; k <= shares.length; k++) {
    const doubted = k < shares.length && reach[k] > most;
    if (doubted && first === null) first = k ? border(k) : 0;
    if (doubted || first === null) continue;
    if (first < spread.limit) doubts.push([first, Math.min(k < shares.length ? border(k) : 100, spread.limit)]);
    first = null;
  }
  // What remains between two of them by a hair is not known.
  return [...doubts, few].map(([begin, end], k, all) => [begin, k + 1 < all.length && end < all[k + 1][0] && 100 - end < SUPPORT.sliver * (100 - all[k + 1][0]) ? all[k + 1][0] : end]);
}
