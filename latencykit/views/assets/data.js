// From the packed bytes in the page to counts, and from counts to percentiles: the rules of latencykit/histogram/lookup.py.

import { valueText } from "./numbers.js";

// Deflated bytes, as base64.
async function inflated(packed) {
  const binary = atob(packed), bytes = new Uint8Array(binary.length);
  for (let k = 0; k < bytes.length; k++) bytes[k] = binary.charCodeAt(k);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

// Numbers were laid down a plane of bytes at a time, lowest bytes first, which deflates well.
function unplaned(buffer, offset, size, width) {
  const bytes = new Uint8Array(buffer, offset, size * width), out = new Float64Array(size);
  for (let plane = 0, factor = 1; plane < width; plane++, factor *= 256)
    for (let k = 0; k < size; k++) out[k] += bytes[plane * size + k] * factor;
  return out;
}

export async function unpack(packed) {
  const buffer = await inflated(packed.bytes);
  const { buckets, entries, widths } = packed, slots = packed.start.length;
  let at = 16 * buckets;
  const take = (size, width) => {
    const out = unplaned(buffer, at, size, width);
    at += size * width;
    return out;
  };
  const low = new Float64Array(buffer.slice(0, 8 * buckets)), high = new Float64Array(buffer.slice(8 * buckets, at));
  const lengths = take(slots, widths[0]), deltas = take(entries, widths[1]), counts = take(entries, widths[2]);
  const from = new Uint32Array(slots + 1), index = new Uint32Array(entries), count = new Float64Array(slots);
  const upTo = new Float64Array(entries); // counts of the bin's lower buckets and of this one
  for (let s = 0; s < slots; s++) {
    from[s + 1] = from[s] + lengths[s];
    for (let k = from[s], bucket = -1; k < from[s + 1]; k++) {
      bucket += deltas[k];
      index[k] = bucket;
      upTo[k] = count[s] += counts[k];
    }
  }
  return { ...packed, low, high, from, index, counts, count, upTo, bytes: null };
}

export function placeOf(percentile) {
  return percentile >= 100 ? Infinity : -Math.log10(1 - percentile / 100);
}

// The highest percentile that a number of independent values bounds from above.
function supportedBy(total) {
  return total > 0 ? Math.max(Math.min(100 * Math.exp(Math.log(0.025) / total), 50), 100 * (1 - 10 / total)) : 0;
}

// Whether edges pin a value down within a tenth.
export function isResolved(low, high) {
  return high <= 1.1 * low * (1 + 1e-12);
}

// The slots first..last - 1 as a step function: value[k] is the highest value of its bucket, low[k] its lower edge, valid
// up to percentile[k]. From step `known` on, values are only lower bounds: there lies what timed out, or is above the last bucket.
export function distribution(data, first, last) {
  return distributionOf(data, [[first, last]]);
}

// The same of several ranges of slots.
export function distributionOf(data, ranges) {
  const counts = new Float64Array(data.high.length);
  for (const [first, last] of ranges) for (let k = data.from[first]; k < data.from[last]; k++) counts[data.index[k]] += data.counts[k];
  let top = -Infinity, late = 0, above = 0, bound = Infinity, sum = 0, count = 0;
  for (const [first, last] of ranges) for (let s = first; s < last; s++) {
    if (data.max[s] !== null && data.max[s] > top) top = data.max[s];
    sum += data.sum[s];
    count += data.count[s];
    if (!data.timeouts || !data.timeouts[s]) continue;
    late += data.timeouts[s];
    bound = Math.min(bound, data.bound[s]);
  }
  for (const k of data.open) if (counts[k]) {
    above += counts[k];
    sum -= (counts[k] * (data.low[k] + data.high[k])) / 2;
    bound = Math.min(bound, data.low[k]);
  }
  late += above;
  const inside = count - above, total = inside + late, percentile = [], value = [], low = [];
  let below = 0, known = -1, least = 0, most = 0;
  const step = (number, high, edge) => {
    least += number * edge;
    most += number * high;
    below += number;
    percentile.push((100 * below) / total);
    value.push(high);
    low.push(edge);
  };
  const timedOut = () => {
    known = value.length;
    step(late, bound, bound);
  };
  for (let k = 0; k < counts.length; k++) {
    if (!counts[k] || data.open.includes(k)) continue;
    const high = Math.min(data.high[k], top);
    if (late && known < 0 && high > bound) timedOut();
    step(counts[k], known < 0 ? high : Math.max(bound, high), Math.min(data.low[k], high));
  }
  if (late && known < 0) timedOut();
  if (known < 0) known = value.length;
  const limit = supportedBy(total), mean = total ? meanOf(sum / inside, least / total, most / total, late > 0) : null;
  return { counts, percentile, value, low, known, count, late, total, mean, limit, doubts: [[limit, 100]] };
}

// A mean as a row: the number where the buckets pin it down, else what it lies between.
function meanOf(mean, low, high, open) {
  const resolved = !open && isResolved(low, high);
  return { value: open ? low : resolved ? mean : high, low, resolved, open, supported: true };
}

// A curve that the package worked out: the whole run, exactly.
export function given(curve) {
  return { ...curve, known: curve.known ?? curve.value.length, total: curve.count === null ? 1 : curve.count + curve.late };
}

// The first place of an ascending array, from `first` and before `last`, that is not below a value; `last` where all are.
export function firstFrom(values, value, first, last) {
  while (first < last) {
    const middle = (first + last) >> 1;
    if (values[middle] < value) first = middle + 1;
    else last = middle;
  }
  return first;
}

// Requests of a bin whose bucket ends above `low` and not above `high`.
export function countWithin(data, s, low, high) {
  const cut = (value) => firstFrom(data.high, value * (1 + 1e-12), 0, data.high.length); // the first bucket that ends above
  const upTo = (bucket) => {
    const k = firstFrom(data.index, bucket, data.from[s], data.from[s + 1]);
    return k > data.from[s] ? data.upTo[k - 1] : 0;
  };
  return upTo(cut(high)) - upTo(cut(low));
}

// A percentile of a step function as a row of the package: its value, the edges it lies between, and whether that is known.
export function rowAt(spread, percentile) {
  let first = 0, last = spread.percentile.length - 1;
  const { top, top_low: least } = spread;
  if (percentile >= 100 && isResolved(least, top)) return { value: top, low: least, high: top, resolved: true, open: false, supported: true, at: last };
  while (first < last) {
    const middle = (first + last) >> 1;
    if (spread.percentile[middle] >= percentile) last = middle;
    else first = middle + 1;
  }
  const value = spread.value[first], low = spread.low[first], open = first >= spread.known;
  const supported = spread.count === null || percentile >= 100 || (!open && !spread.doubts.some(([first, last]) => percentile > first && percentile <= last));
  return { value, low, high: open ? null : value, resolved: !open && isResolved(low, value), open, supported, at: first };
}

// As `format_range` and `format_row` of latencykit/units.py write it.
export function rowText(row, unit) {
  let text = valueText(row.value, unit);
  if (row.open) text = `≥ ${text}`;
  else if (!row.resolved && !(row.low > 0)) text = row.value ? `≤ ${text}` : text;
  else if (!row.resolved) {
    const first = valueText(row.low, unit), [, number, name] = /^(.*?)((?: [^ ]+)?)$/.exec(first);
    if (first !== text) text = `${name && text.endsWith(name) ? number : first}–${text}`;
  }
  return row.supported ? text : `(${text})`;
}
