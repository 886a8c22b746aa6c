// From the packed bytes in the page to counts, and from counts to percentiles: the rules of latencykit/stats/quantiles.py.

async function inflated(text) {
  const binary = atob(text), bytes = new Uint8Array(binary.length);
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

async function unpack(packed) {
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
  for (let s = 0; s < slots; s++) {
    from[s + 1] = from[s] + lengths[s];
    for (let k = from[s], bucket = -1; k < from[s + 1]; k++) {
      bucket += deltas[k];
      index[k] = bucket;
      count[s] += counts[k];
    }
  }
  return { ...packed, low, high, from, index, counts, count, bytes: null };
}

// Counts of the slots first..last - 1, summed up.
function tally(data, first, last) {
  const counts = new Float64Array(data.high.length);
  for (let k = data.from[first]; k < data.from[last]; k++) counts[data.index[k]] += data.counts[k];
  let top = -Infinity, late = 0;
  for (let s = first; s < last; s++) {
    if (data.max[s] !== null && data.max[s] > top) top = data.max[s];
    late += data.timeouts ? data.timeouts[s] : 0;
  }
  return { counts, top, late };
}

function rankOf(percentile, total) {
  return Math.max(1, Math.ceil((percentile * (1 - 2 ** -53) * total) / 100));
}

function supportedPlace(total) {
  return total > 0 ? -Math.log10(-Math.expm1(Math.log(0.025) / total)) : 0;
}

// A step function: value[k] holds up to cumulative[k] of `total`. What timed out stands above all that was within `bound`.
function distribution(data, first, last) {
  const { counts, top, late } = tally(data, first, last);
  const value = [], cumulative = [], low = [];
  let below = 0;
  for (let k = 0; k < counts.length; k++) {
    if (!counts[k] || (late && data.high[k] > data.bound)) continue;
    below += counts[k];
    value.push(Math.min(data.high[k], top));
    low.push(data.low[k]);
    cumulative.push(below);
  }
  let seen = 0, weighted = 0;
  for (let k = 0; k < counts.length; k++) {
    seen += counts[k];
    weighted += (counts[k] * (data.low[k] + data.high[k])) / 2;
  }
  return {
    value, low, cumulative, total: seen + late, count: seen, late, mean: seen ? weighted / seen : NaN,
    top: late ? Math.max(data.bound, seen ? top : 0) : top, bound: late ? data.bound : null,
  };
}

// A curve that the package worked out: of sources without time, and of models.
function given(curve) {
  const total = curve.count === null ? 1 : curve.count + curve.late;
  return {
    value: curve.value, low: curve.low, cumulative: curve.percentile.map((p) => (p / 100) * total), total, mean: curve.mean,
    count: curve.count, late: curve.late, top: curve.top, bound: curve.bound, places: curve.percentile.map(placeOf),
  };
}

function placeOf(percentile) {
  return percentile >= 100 ? Infinity : -Math.log10(1 - percentile / 100);
}

function placesOf(spread) {
  if (!spread.places) spread.places = spread.cumulative.map((c) => -Math.log10(Math.max(0, spread.total - c) / spread.total));
  return spread.places;
}

// Position of a percentile's bucket; beyond the last one lies what timed out.
function positionAt(spread, percentile) {
  if (spread.count === null) return spread.places.findIndex((place) => place >= placeOf(percentile) - 1e-12);
  const rank = rankOf(percentile, spread.total);
  let low = 0, high = spread.cumulative.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spread.cumulative[middle] >= rank - 1e-6) high = middle;
    else low = middle + 1;
  }
  return low;
}

function valueAt(spread, percentile) {
  const at = positionAt(spread, percentile);
  return at < 0 || at >= spread.value.length ? spread.top : spread.value[at];
}
