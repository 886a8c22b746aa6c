// The questions and controls of the lessons. The arithmetic runs here, so that a picture follows the
// hand; in a web page everything works but the live server, which is simulated there.

export const RED = "#d0312d", BLUE = "#0b5cbf", AMBER = "#c77700", INK = "#1a1d23", GREY = "#8a909a", PALE = "#c9ced6";

// ---------------------------------------------------------------- arithmetic

function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const kept = new Map();
function once(name, make) {
  if (!kept.has(name)) kept.set(name, make());
  return kept.get(name);
}

// Percentile by nearest rank: a value that was measured, never one in between.
export function percentile(sorted, p) {
  const rank = Math.ceil((p / 100) * sorted.length - 1e-9);
  return sorted[Math.min(sorted.length, Math.max(1, rank)) - 1];
}

// The curve of a sorted sample on the nines axis, as steps.
function curveOf(sorted, nines) {
  const points = [];
  for (let x = 0; x < nines; x += nines / 400) points.push([x, percentile(sorted, 100 * (1 - 10 ** -x))]);
  points.push([nines, sorted[sorted.length - 1]]);
  return points;
}

// The highest percentile that ten requests lie above.
export const highestSupported = (n) => 100 * Math.max(0, 1 - 10 / n);
const ninesOf = (p) => -Math.log10(1 - p / 100);

export function ranksOfInterval(n, q) {
  const sd = Math.sqrt(n * q * (1 - q)), low = Math.max(0, Math.floor(n * q - 8 * sd - 8)), high = Math.min(n, Math.ceil(n * q + 8 * sd + 8));
  let mode = Math.min(high, Math.max(low, Math.floor((n + 1) * q)));
  const weight = new Float64Array(high - low + 1), odds = q / (1 - q);
  weight[mode - low] = 1;
  for (let k = mode; k < high; k++) weight[k + 1 - low] = (weight[k - low] * (n - k) * odds) / (k + 1);
  for (let k = mode; k > low; k--) weight[k - 1 - low] = (weight[k - low] * k) / ((n - k + 1) * odds);
  const total = weight.reduce((a, b) => a + b, 0);
  let sum = 0, first = null;
  for (let k = low; k <= high; k++) {
    sum += weight[k - low] / total;
    if (first === null && sum >= 0.025) first = k;
    if (sum >= 0.975) return [first, k + 1];
  }
  return [first, n + 1];
}

function normals(n, seed) {
  const next = random(seed), out = new Float64Array(n);
  for (let k = 0; k < n; k += 2) {
    const r = Math.sqrt(-2 * Math.log(1 - next())), a = 2 * Math.PI * next();
    out[k] = r * Math.cos(a);
    if (k + 1 < n) out[k + 1] = r * Math.sin(a);
  }
  return out;
}

// One request in a hundred is slow; a part of this slowness strikes all requests of a page together.
export const anySlow = (n, together) => 1 - (1 - 0.01 * together) * (1 - 0.01 * (1 - together)) ** n;

export function p99OfSplit(share, slow) {
  return (share * slow) / 100 > 1 ? 1000 : 10;
}

// Latencies (s) that a generator reports: 100 requests per second for 200 s at 1 ms each, and a stall at 100 s.
export function stalled(generator, stall) {
  const times = [], due = 0.01;
  let free = 0;
  for (let k = 0; k < 20000; k++) {
    const at = k * due, from = generator === "open" ? at : Math.max(at, free);
    if (from >= 200 - 1e-9 && generator === "closed") break;
    const end = Math.max(from + 0.001, from >= 100 - 1e-9 && from < 100 + stall - 1e-9 ? 100 + stall : 0);
    times.push(end - from);
    free = end;
    if (generator === "closed" && end > at + due) k = Math.ceil(end / due - 1e-9) - 1;
  }
  return Float64Array.from(times).sort();
}

// Latencies (s) at one server that stops for 100 of 200 s, from a tool that sends 100 per second on so many connections and waits on each.
export function connected(connections) {
  const waiting = Math.min(connections, 10000), times = new Float64Array(10000 + waiting).fill(0.001);
  for (let k = 0; k < waiting; k++) times[10000 + k] = 100 - k * 0.01;
  return times.sort();
}

// Percentiles (s) of service and response time at the till, exact to half a second: the wait is a geometric sum of
// residual service times (Pollaczek and Khinchine), summed up by Panjer's recursion.
export function till(busy, slow, step = 0.5) {
  const share = slow / 100, unit = step / (30 + 150 * share), n = 20000, first = 30 / step, last = 180 / step;
  const wait = new Float64Array(n), below = new Float64Array(n);
  const sum = (from, to) => (to < 0 ? 0 : below[to]) - (from <= 0 ? 0 : below[from - 1]);  // of wait[from … to]
  for (let k = 0; k < n; k++) {
    const near = sum(k - first, k - 1) + sum(k - first + 1, k - 1), far = sum(k - last, k - first - 1) + sum(k - last + 1, k - first);
    wait[k] = ((k ? 0 : 1 - busy) + (busy * unit * (near + share * far)) / 2) / (1 - (busy * unit) / 2);
    below[k] = (k ? below[k - 1] : 0) + wait[k];
  }
  const at = (k) => (k < 0 ? 0 : below[k]), of = (k) => (1 - share) * at(k - first) + share * at(k - last);
  const response = (p) => { let low = 0, high = n - 1; while (low < high) { const mid = (low + high) >> 1; if (of(mid) < p / 100 - 1e-12) low = mid + 1; else high = mid; } return low * step; };
  return { service: (p) => (p <= 100 - slow ? 30 : 180), response };
}

// Sorted latencies (ms) with mean 10 and standard deviation 5: `slow` % take one long time, and the others spread evenly around
// another, by `even` × 5 ms to either side.
export function fixedMeanAndDeviation(slow, even, n = 10000) {
  const count = Math.round((slow / 100) * n), others = n - count, p = count / n, spread = (5 * even) ** 2 / 3;
  const gap = Math.sqrt((25 - (1 - p) * spread) / (p * (1 - p))), step = Math.sqrt((12 * spread) / (others * others - 1));
  return Float64Array.from({ length: n }, (_, k) => 10 - p * gap + (k < others ? step * (k - (others - 1) / 2) : gap)).sort();
}

// A hundred points of mean 10 and deviation 5 of which point `k` is moved to `value`: the others make way. Null where they cannot.
export function moved(points, k, value) {
  const n = points.length, others = points.filter((_, i) => i !== k), mean = others.reduce((a, b) => a + b, 0) / (n - 1);
  const deviation = Math.sqrt(others.reduce((a, b) => a + (b - mean) ** 2, 0) / (n - 1)), middle = (10 * n - value) / (n - 1);
  const left = (25 * n - (value - 10) ** 2) / (n - 1) - (middle - 10) ** 2;
  if (!(left > 1e-3 && deviation > 1e-6)) return null;
  const all = points.map((v, i) => (i === k ? value : middle + ((v - mean) * Math.sqrt(left)) / deviation));
  return Math.min(...all) < 0 ? null : all;
}

// Response times (ms) of a server that answers 1,000 per second on average, in its first minute at `rate` per second.
export function minute(rate) {
  const draw = once("minute", () => { const next = random(6); return Float64Array.from({ length: 160000 }, () => -Math.log(1 - next())); });
  const n = Math.min(80000, Math.round(rate * 60)), times = new Float64Array(n);
  let wait = 0;
  for (let k = 0; k < n; k++) {
    times[k] = wait + draw[2 * k];
    wait = Math.max(0, times[k] - (1000 / rate) * draw[2 * k + 1]);
  }
  return { last: wait, sorted: times.sort() };
}

// p99 (ms) of a closed loop of `n` connections that offer `rate` per second to a server of 1 ms: the machine-repair queue.
// A request finds j others with probability a[j], and then takes the sum of j + 1 exponential times.
export function closedLoopP99(n, rate) {
  const load = rate / 1000 / n, a = [1];
  for (let j = 1; j < n; j++) a[j] = a[j - 1] * (n - j) * load;
  const total = a.reduce((x, y) => x + y, 0), above = new Float64Array(n + 1);
  for (let j = n - 1; j >= 0; j--) above[j] = above[j + 1] + a[j] / total;
  const tail = (t) => { let term = Math.exp(-t), sum = 0; for (let j = 0; j < n; j++) { sum += term * above[j]; term *= t / (j + 1); } return sum; };
  let low = 0, high = 4 * n + 20;
  for (let k = 0; k < 50; k++) { const mid = (low + high) / 2; if (tail(mid) > 0.01) low = mid; else high = mid; }
  return high;
}

const ms = (value) => (value >= 999.5 ? `${+(value / 1000).toPrecision(3)} s` : value >= 0.9995 ? `${+value.toPrecision(3)} ms` : `${+(value * 1000).toPrecision(3)} µs`);
const seconds = (value) => ms(value * 1000);
const thousands = (n) => Math.round(n).toLocaleString("en-US");

// Each picture: what its axes are, and from the values of the sliders its lines and its sentence.
export const PICTURES = {
  nines_wall: {
    x: "nines", nines: 6, y: [0.01, 1000], unit: ms, label: "percentile of requests", names: { n: "requests" },
    draw({ n }) {
      n = Math.round(n);
      const sorted = normalsOf(n).map((z) => Math.exp(1.2 * z)).sort(), wall = highestSupported(n), band = [];
      for (let x = 0.02; x < ninesOf(wall); x += 0.03) {
        const [low, high] = ranksOfInterval(n, 1 - 10 ** -x);
        if (high <= n) band.push([x, sorted[Math.max(low, 1) - 1], sorted[high - 1]]);
      }
      return { lines: [{ points: curveOf(sorted, 6), colour: BLUE, dottedFrom: ninesOf(wall) }], band, shade: ninesOf(wall),
        text: `${thousands(n)} requests support percentiles up to p${+wall.toPrecision(wall > 99.9 ? 5 : 4)}. The slowest took ${ms(sorted[n - 1])}.` };
    },
  },
  split_panel: {
    x: [0, 100], y: [0, 1100], linear: true, unit: (v) => `${thousands(v)} ms`, label: "share of the traffic that goes to A, %", names: { slow: "slow requests of A, %" },
    draw({ slow }) {
      const jump = Math.min(100, 100 / slow);
      return { lines: [
        { points: [[0, 10], [100, 1000]], colour: AMBER, dash: [7, 4], name: "average of the p99s" },
        { points: [[0, 10], [jump, 10], [jump, 1000], [100, 1000]], colour: BLUE, name: "p99 of all requests" }],
        text: slow > 1 ? `The p99 of all requests jumps when ${jump.toPrecision(3)} % of the traffic goes to A.` : "The p99 of all requests stays at 10 ms." };
    },
  },
  sharing_panel: {
    x: "log", from: 1, to: 1000, y: [0, 100], linear: true, unit: (v) => `${+v.toFixed(0)} %`, label: "requests per page", names: { together: "shared part of all slowness" },
    draw({ together }) {
      const at = (c) => Array.from({ length: 121 }, (_, k) => [k / 40, 100 * anySlow(10 ** (k / 40), c)]);
      return { lines: [{ points: at(0), colour: PALE, name: "independent" }, { points: at(together), colour: BLUE, name: "page views" }],
        dots: [[2, 100 * anySlow(100, together), BLUE]],
        text: `With 100 requests per page, ${(100 * anySlow(100, together)).toFixed(1)} % of the page views contain a slow request.` };
    },
  },
  generators_panel: {
    x: "nines", nines: 4, y: [0.0005, 200], unit: seconds, label: "percentile of requests", names: { stall: "stall, s" },
    draw({ stall }) {
      const all = Object.entries(CLIENTS).map(([name, [colour, dash]]) => ({ name, colour, dash, sorted: stalled(name, stall) }));
      return { lines: all.map(({ name, colour, dash, sorted }) => ({ points: curveOf(sorted, 4), colour, dash, width: name === "closed" ? 4 : 2, name })),
        text: `p99: ${all.map(({ name, sorted }) => `${name} ${seconds(percentile(sorted, 99))}`).join(", ")}. Maximum: ${seconds(all[0].sorted[all[0].sorted.length - 1])} for all three.` };
    },
  },
  spread_panel: {
    x: "nines", nines: 3, y: [0, 80], linear: true, unit: (v) => `${v} ms`, label: "percentile of requests", names: { slow: "slow requests, %", even: "spread of the others" },
    points: ({ slow, even }) => { const all = fixedMeanAndDeviation(slow, even); return Array.from({ length: 100 }, (_, k) => all[100 * k + 50]); },
    place: (k) => ninesOf(k + 0.5),
    draw({ slow, even, points }) {
      const sorted = points ? Float64Array.from(points).sort() : fixedMeanAndDeviation(slow, even), n = sorted.length, p99 = percentile(sorted, 99), mean = sorted.reduce((a, b) => a + b, 0) / n;
      const deviation = Math.sqrt(sorted.reduce((a, b) => a + (b - mean) ** 2, 0) / n), shown = points ? [...sorted] : this.points({ slow, even });
      return { lines: [{ points: [[0, mean], [3, mean]], colour: GREY, dash: [7, 4], name: "mean" }, { points: curveOf(sorted, 3), colour: BLUE, name: "latency" }],
        dots: [...shown.map((v, k) => [this.place(k), v, AMBER]), [2, p99, BLUE]],
        text: `Mean ${mean.toFixed(1)} ms, standard deviation ${deviation.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms.` };
    },
  },
  pole_panel: {
    x: [0, 1200], ticks: [0, 200, 400, 600, 800, 1000, 1200], y: [0.5, 100000], unit: ms, label: "arrivals per second", names: { rate: "arrivals per second" },
    draw({ rate }) {
      const { last, sorted } = minute(rate), loads = Array.from({ length: 200 }, (_, k) => k * 5), p99 = percentile(sorted, 99), mean = sorted.reduce((a, b) => a + b, 0) / sorted.length;
      const formula = (factor) => loads.map((load) => [load, (1000 * factor) / (1000 - load)]);
      return { lines: [{ points: formula(1), colour: BLUE, name: "mean, by the formula" }, { points: formula(Math.log(100)), colour: AMBER, dash: [8, 3], name: "p99, by the formula" }, { points: [[1000, 0.5], [1000, 100000]], colour: GREY, dash: [3, 3], name: "pole" }],
        dots: [[rate, mean, BLUE], [rate, p99, AMBER]],
        text: rate <= 1000 ? `${(rate / 10).toFixed(0)} % busy. In its first minute: mean ${ms(mean)}, p99 ${ms(p99)}.`
          : `Broken: ${thousands(rate)} arrive and 1,000 are answered. After a minute a request waits for ${ms(last)}, and each further minute adds ${ms((rate - 1000) * 60)}.` };
    },
  },
  loops_panel: {
    x: [0, 1600], ticks: [0, 200, 400, 600, 800, 1000, 1200, 1400, 1600], y: [1, 10000], unit: ms, label: "requests per second that are due", names: { connections: "connections of the closed loop" },
    draw({ connections }) {
      const n = Math.round(connections), loads = Array.from({ length: 81 }, (_, k) => Math.max(1, k * 20));
      return { lines: [{ points: loads.filter((load) => load < 1000).map((load) => [load, (1000 * Math.log(100)) / (1000 - load)]), colour: BLUE, name: "open loop" },
        { points: loads.map((load) => [load, closedLoopP99(n, load)]), colour: RED, dash: [8, 3], name: `closed loop, ${thousands(n)} connections` }, { points: [[1000, 1], [1000, 10000]], colour: GREY, dash: [3, 3], name: "pole" }],
        text: `At 1,600 per second the closed loop reports a p99 of ${ms(closedLoopP99(n, 1600))}: it never has more than ${n === 1 ? "one request" : `${thousands(n)} requests`} under way. The open loop has no p99 beyond 1,000 per second: its queue grows.` };
    },
  },
  connections_panel: {
    x: "nines", nines: 4, y: [0.0005, 200], unit: seconds, label: "percentile of requests", names: { digits: "connections, powers of ten (rate × stall is 4)" },
    draw({ digits }) {
      const n = Math.round(10 ** digits), sorted = connected(n);
      return { lines: [{ points: curveOf(connected(10000), 4), colour: PALE, name: "rate × stall = 10,000" }, { points: curveOf(sorted, 4), colour: n < 10000 ? RED : BLUE, name: "reported" }],
        text: `${thousands(n)} connection${n > 1 ? "s" : ""}: ${thousands(sorted.length)} requests, p75 ${seconds(percentile(sorted, 75))}, p99 ${seconds(percentile(sorted, 99))}.` };
    },
  },
  queue_panel: {
    x: "nines", nines: 3, y: [20, 5000], unit: seconds, label: "percentile of customers", names: { busy: "share of the time that she is busy", slow: "slow customers, %" },
    draw({ busy, slow }) {
      const { service, response } = till(busy, slow);
      const curve = (of) => Array.from({ length: 301 }, (_, k) => [k / 100, of(100 * (1 - 10 ** (-k / 100)))]);
      return { lines: [{ points: curve(service), colour: GREY, name: "service time" }, { points: curve(response), colour: BLUE, name: "response time" }],
        text: `p99 of the service time ${thousands(service(99))} s, p99 of the response time ${thousands(response(99))} s.` };
    },
  },
};

function normalsOf(n) {
  return once("normals", () => normals(50000, 4)).slice(0, n);
}

// ---------------------------------------------------------------- pictures

const LABELS = [0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999];

export function axes(canvas, spec) {
  const width = Math.max(300, Math.min(760, canvas.parentElement.clientWidth || 720)), height = Math.round(width * (width < 500 ? 0.7 : 0.46)), ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d"), box = { left: 64, right: width - 18, top: 14, bottom: height - 42 };
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, width, height);
  const [low, high] = spec.x === "nines" ? [0, spec.nines] : spec.x === "log" ? [Math.log10(spec.from), Math.log10(spec.to)] : spec.x;
  const x = (v) => box.left + ((v - low) / (high - low)) * (box.right - box.left);
  const back = (px) => low + ((px - box.left) / (box.right - box.left)) * (high - low);
  const scale = spec.linear ? (v) => v : (v) => Math.log10(Math.max(v, spec.y[0])), [bottom, top] = spec.y.map(scale);
  const y = (v) => box.bottom - ((scale(v) - bottom) / (top - bottom)) * (box.bottom - box.top);
  const value = (py) => { const t = bottom + ((box.bottom - py) / (box.bottom - box.top)) * (top - bottom); return spec.linear ? t : 10 ** t; };
  return { context, box, x, y, back, value, low, high, width, height };
}

export function paint(canvas, spec, picture) {
  const a = axes(canvas, spec), { context: c, box, x, y } = a;
  c.font = "12px system-ui, sans-serif";
  c.lineJoin = "round";
  if (picture.shade !== undefined && picture.shade < a.high) {
    c.fillStyle = "#eff1f4";
    c.fillRect(x(picture.shade), box.top, box.right - x(picture.shade), box.bottom - box.top);
    c.fillStyle = "#5b626d";
    c.textAlign = "left";
    if (box.right - x(picture.shade) > 150) c.fillText("the sample is too small", x(picture.shade) + 6, box.bottom - 8);
  }
  const ticksX = spec.x === "nines" ? LABELS.filter((p) => ninesOf(p) < spec.nines - 0.3).map((p) => [p === 0 ? 0 : ninesOf(p), String(p)]).concat([[spec.nines, "100 %"]])
    : spec.x === "log" ? [1, 10, 100, 1000].map((v) => [Math.log10(v), thousands(v)]) : (spec.ticks || [0, 20, 40, 60, 80, 100]).map((v) => [v, thousands(v)]);
  const ticksY = [];
  if (spec.linear) for (let v = 0; v <= spec.y[1]; v += spec.y[1] > 500 ? 200 : 20) ticksY.push(v);
  else for (let e = Math.ceil(Math.log10(spec.y[0]) - 1e-9); e <= Math.log10(spec.y[1]) + 1e-9; e++) ticksY.push(10 ** e);
  c.strokeStyle = "#e6e8eb";
  c.fillStyle = "#3d434d";
  c.lineWidth = 1;
  c.textAlign = "center";
  for (const [v, text] of ticksX) { line(c, x(v), box.top, x(v), box.bottom); c.fillText(text, x(v) - (text === "100 %" ? 6 : 0), box.bottom + 16); }
  c.fillText(spec.label, (box.left + box.right) / 2, box.bottom + 34);
  c.textAlign = "right";
  for (const v of ticksY) { line(c, box.left, y(v), box.right, y(v)); c.fillText(spec.unit(v), box.left - 6, y(v) + 4); }
  c.save();
  c.beginPath();
  c.rect(box.left, box.top - 4, box.right - box.left + 4, box.bottom - box.top + 8);
  c.clip();
  if (picture.band && picture.band.length > 1) {
    c.fillStyle = "rgba(11, 92, 191, 0.18)";
    c.beginPath();
    picture.band.forEach(([at, , high], k) => (k ? c.lineTo(x(at), y(high)) : c.moveTo(x(at), y(high))));
    picture.band.slice().reverse().forEach(([at, low]) => c.lineTo(x(at), y(low)));
    c.fill();
  }
  for (const one of picture.lines) {
    c.strokeStyle = one.colour;
    c.lineWidth = one.width || 2;
    stroke(c, one.points.filter(([v]) => one.dottedFrom === undefined || v <= one.dottedFrom), x, y, one.dash || []);
    if (one.dottedFrom !== undefined) stroke(c, one.points.filter(([v]) => v >= one.dottedFrom - 0.02), x, y, [2, 4]);
  }
  for (const [at, v, colour] of picture.dots || []) { c.fillStyle = colour; c.beginPath(); c.arc(x(at), y(v), 4.5, 0, 7); c.fill(); }
  c.restore();
  const named = picture.lines.filter((one) => one.name), widest = Math.max(0, ...named.map((one) => c.measureText(one.name).width));
  c.fillStyle = "rgba(255, 255, 255, 0.85)"; // over a line that crosses the names
  if (named.length) c.fillRect(box.left + 8, box.top + 2, 36 + widest, 17 * named.length + 4);
  named.forEach((one, k) => {
    c.strokeStyle = c.fillStyle = one.colour;
    c.lineWidth = 3;
    c.setLineDash(one.dash || []);
    line(c, box.left + 12, box.top + 12 + 17 * k, box.left + 34, box.top + 12 + 17 * k);
    c.setLineDash([]);
    c.textAlign = "left";
    c.fillStyle = INK;
    c.fillText(one.name, box.left + 40, box.top + 16 + 17 * k);
  });
  return a;
}

function line(c, x1, y1, x2, y2) { c.beginPath(); c.moveTo(x1, y1); c.lineTo(x2, y2); c.stroke(); }

function stroke(c, points, x, y, dash) {
  c.setLineDash(dash);
  c.beginPath();
  points.forEach(([at, v], k) => (k ? c.lineTo(x(at), y(v)) : c.moveTo(x(at), y(v))));
  c.stroke();
  c.setLineDash([]);
}

// ---------------------------------------------------------------- elements

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const STYLE = `
.lesson { max-width: 780px; background: #fff; color: ${INK}; font: 14px system-ui, sans-serif; padding: 6px; border-radius: 4px; }
.lesson canvas { display: block; max-width: 100%; touch-action: none; }
.lesson canvas:focus-visible, .lesson button:focus-visible { outline: 2px solid ${BLUE}; outline-offset: 2px; }
.lesson .choices { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 14px; margin: 6px 4px; }
.lesson input[type=range] { width: min(340px, 60vw); accent-color: ${BLUE}; }
.lesson output { min-width: 5em; font-variant-numeric: tabular-nums; }
.lesson button { font: inherit; padding: 6px 14px; border: 1px solid #767c86; border-radius: 4px; background: #f4f5f7; color: ${INK}; cursor: pointer; user-select: none; touch-action: none; }
.lesson button:disabled { opacity: 0.5; cursor: default; }
.lesson button[aria-pressed=true] { background: ${RED}; border-color: ${RED}; color: #fff; }
.lesson .said { margin: 4px; min-height: 1.4em; }
.lesson table { border-collapse: collapse; margin: 6px 4px; font-variant-numeric: tabular-nums; }
.lesson form { margin: 4px; } .lesson form p, .lesson fieldset { margin: 0 0 8px; } .lesson fieldset { padding: 4px 10px; border: 1px solid #767c86; border-radius: 4px; }
.lesson label, .lesson legend { color: ${INK}; font-weight: 600; } .lesson .choices label { font-weight: normal; }
.lesson input[type=text] { font: inherit; padding: 5px 8px; margin-top: 4px; border: 1px solid #767c86; border-radius: 4px; background: #fff; color: ${INK}; }
.jp-Cell:has(.lesson.open) ~ .jp-Cell { display: none; } /* JupyterLab: cells below an open question */
.lesson td, .lesson th { padding: 2px 12px 2px 0; text-align: right; font-weight: normal; color: ${INK}; background: #fff; }
.lesson th:first-child, .lesson td:first-child { text-align: left; }
/* In a dark theme the panel is its own negative, with the hues that it has. */
:is(body[data-jp-theme-light=false], html[data-theme=dark]) .lesson { filter: invert(0.9) hue-rotate(180deg); }
`;

// One picture per frame, however often the hand moves.
function framed(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  };
}

function host(el, canvas, ...children) {
  const box = element("div", { class: "lesson" }, element("style", {}, STYLE), ...children);
  // Slides and JupyterLab have keys of their own: arrows move to another cell, in place of a slider.
  box.addEventListener("keydown", (event) => { if (!event.ctrlKey && !event.metaKey) event.stopPropagation(); });
  el.replaceChildren(box);
  return box;
}

function followWidth(box, draw) {
  const watch = new ResizeObserver(draw);
  watch.observe(box);
  return () => watch.disconnect();
}

// Sliders beside a picture. `choices` has per name a range [first, last, step, start] or a list of words.
export function play(el, { picture, choices }) {
  const spec = PICTURES[picture], values = {}, canvas = element("canvas", { role: "img" }), said = element("p", { class: "said", role: "status" });
  const draw = framed(() => {
    const drawn = spec.draw(values);
    paint(canvas, spec, drawn);
    said.textContent = drawn.text;
    canvas.setAttribute("aria-label", drawn.text);
    canvas.dataset.frames = Number(canvas.dataset.frames || 0) + 1;
  });
  const rows = Object.entries(choices).map(([name, range]) => {
    const title = spec.names[name] || name;
    if (typeof range[0] === "string") {
      values[name] = range[0];
      const group = element("div", { class: "choices", role: "radiogroup", "aria-label": title });
      const id = `g${Math.random()}`;
      for (const word of range) {
        const input = element("input", { type: "radio", name: id, value: word });
        input.checked = word === range[0];
        input.addEventListener("change", () => { values[name] = word; draw(); });
        group.append(element("label", {}, input, ` ${word}`));
      }
      return group;
    }
    const [first, last, step, start] = range, byFactor = first > 0 && last / first >= 50;
    // Whole steps, so that both ends can be reached.
    const steps = byFactor || step < 1 ? 400 : last - first, at = (k) => (byFactor ? first * (last / first) ** (k / steps) : first + ((last - first) * k) / steps);
    const to = (v) => Math.round(steps * (byFactor ? Math.log(v / first) / Math.log(last / first) : (v - first) / (last - first)));
    const shown = element("output"), input = element("input", { type: "range", "aria-label": title, min: 0, max: steps, step: 1, value: to(start) });
    const read = (value = at(Number(input.value))) => {
      values[name] = step >= 1 ? Math.round(value) : value;
      shown.textContent = step >= 1 ? thousands(values[name]) : String(+values[name].toPrecision(3));
      input.setAttribute("aria-valuetext", shown.textContent);
    };
    read(start);
    input.addEventListener("input", () => { values.points = null; read(); draw(); });
    return element("label", { class: "choices" }, `${title} `, input, shown);
  });
  if (spec.points) movePoints(canvas, spec, values, draw);
  const box = host(el, canvas, ...rows, canvas, said), close = followWidth(box, draw);
  draw();
  return close;
}

// Single points of a picture follow the pointer, or the arrow keys: left and right choose one, up and down move it.
function movePoints(canvas, spec, values, draw) {
  let held = null, cursor = 99;
  const order = (points) => points.map((v, k) => [v, k]).sort((a, b) => a[0] - b[0]).map(([, k]) => k);
  const move = (k, value) => {
    const all = moved(values.points, k, Math.min(spec.y[1], Math.max(0, value)));
    if (all) values.points = all;
    draw();
  };
  const place = (event) => {
    const a = axes(canvas, spec), frame = canvas.getBoundingClientRect(), zoom = canvas.offsetWidth / frame.width;
    draw();
    return [a, (event.clientX - frame.left) * zoom, (event.clientY - frame.top) * zoom];
  };
  canvas.tabIndex = 0;
  canvas.addEventListener("pointerdown", (event) => {
    const [a, x, y] = place(event), points = values.points || spec.points(values);
    const near = order(points).map((k, rank) => [Math.hypot(a.x(spec.place(rank)) - x, a.y(points[k]) - y), k]).sort((one, other) => one[0] - other[0])[0];
    if (near[0] > 24) return;
    values.points = points;
    held = near[1];
    canvas.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  canvas.addEventListener("pointermove", (event) => { if (held === null) return; const [a, , y] = place(event); move(held, a.value(y)); });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { held = null; });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], change = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!(step || change)) return;
    event.preventDefault();
    event.stopPropagation();
    values.points = values.points || spec.points(values);
    cursor = Math.min(99, Math.max(0, cursor + (step || 0)));
    if (change) { const k = order(values.points)[cursor]; move(k, values.points[k] + change); cursor = order(values.points).indexOf(k); }
  });
}

// A question: the reader types a number, or chooses. `answer` is what was answered before.
export function ask(el, { question, unit, choices, several, answer = "" }, changed = () => {}) {
  const id = `q${Math.random()}`, said = element("p", { class: "said", role: "status" });
  const field = element("input", { type: "text", id, size: 12, autocomplete: "off", "aria-describedby": `${id}u` });
  const options = choices.map((word) => element("input", { type: several ? "checkbox" : "radio", name: id, value: word }));
  const fields = choices.length
    ? element("fieldset", {}, element("legend", {}, question), element("div", { class: "choices" }, ...options.map((one) => element("label", {}, one, ` ${one.value}`))))
    : element("p", {}, element("label", { for: id }, question), element("br"), field, element("span", { id: `${id}u` }, ` ${unit}`));
  const given = () => {
    if (choices.length) return options.filter((one) => one.checked).map((one) => one.value).join(" and ");
    const text = field.value.trim();
    if (!/\d/.test(text)) return "";
    return /^[\d.,\s_]+(e\d+)?$/i.test(text) && unit ? `${text} ${unit}` : text;
  };
  const form = element("form", {}, fields, element("button", { type: "submit" }, "Answer"));
  const show = (text) => { said.textContent = text ? `Your answer: ${text}. Read on.` : el.closest(".jp-Cell") ? "What is below appears with your answer." : ""; };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = given();
    if (!text) { said.textContent = choices.length ? "Choose first." : "Type a number first; a guess is enough."; return; }
    show(text);
    box.classList.remove("open");
    changed(text);
  });
  show(answer);
  const box = host(el, null, form, said);
  box.classList.toggle("open", !answer);
  return () => {};
}

// Draw the curve `asked` by hand on the nines axis, then see the truth. `given` curves are visible before.
export function predict(el, { asked, truths, given, nines, low, high, example, answer = "" }, changed = () => {}) {
  const spec = { x: "nines", nines, y: [low, high], unit: ms, label: "percentile of requests" }, drawn = new Map(), STEPS = 120;
  const invite = `Draw: ${asked}. Drag from left to right across the axes, or use the arrow keys.`, wanted = truths.find((one) => one.name === asked) || truths[0];
  const canvas = element("canvas", { tabindex: "0", role: "application", "aria-label": `Draw ${asked}: drag from left to right; arrow keys move and change it` });
  const said = element("p", { class: "said", role: "status" }, answer || invite);
  const reveal = element("button", { type: "button", disabled: "" }, "Show the truth"), again = element("button", { type: "button" }, "Start again");
  let shown = false, cursor = 0, last = null;
  const points = () => [...drawn.entries()].sort((a, b) => a[0] - b[0]).map(([k, v]) => [(k / STEPS) * nines, v]);
  const at = (t) => {
    const all = points();
    if (!all.length || t < all[0][0] - 0.05 || t > all[all.length - 1][0] + 0.05) return null;
    const after = all.findIndex(([x]) => x >= t);
    if (after <= 0) return (after ? all[all.length - 1] : all[0])[1];
    const [x1, v1] = all[after - 1], [x2, v2] = all[after];
    return v1 * (v2 / v1) ** ((t - x1) / (x2 - x1));
  };
  const truthAt = (one, t) => one.points.reduce((best, p) => (p[0] <= t + 1e-9 ? p : best), one.points[0])[1];
  const draw = framed(() => {
    const colours = [BLUE, AMBER, "#00806a", "#7a4fbf", "#b0417d", GREY], dashes = [[], [8, 3], [3, 3], [10, 3, 2, 3], [1, 4], [14, 4]];
    const known = Object.entries(given).map(([name, end]) => ({ points: truths.find((one) => one.name === name).points.filter(([t]) => t <= end + 1e-9), colour: GREY, name: `${name}, as known` }));
    const others = truths.filter((one) => one !== wanted).map((one, k) => ({ points: one.points, colour: colours[(k + 1) % 6], dash: dashes[(k + 1) % 6], name: one.name }));
    const lines = shown ? [...others, { points: wanted.points, colour: BLUE, width: 3, name: wanted.name }] : known;
    const a = paint(canvas, spec, { lines: [...lines, ...(drawn.size ? [{ points: points(), colour: INK, dash: [6, 4], width: 3, name: "your prediction" }] : [])] });
    if (!drawn.size) {
      a.context.fillStyle = "#5b626d";
      a.context.textAlign = "center";
      a.context.fillText(`draw here: ${asked}`, (a.box.left + a.box.right) / 2, (a.box.top + a.box.bottom) / 2);
    }
    if (document.activeElement === canvas || el.getRootNode().activeElement === canvas) {
      const t = (cursor / STEPS) * nines;
      a.context.strokeStyle = INK;
      line(a.context, a.x(t), a.box.top, a.x(t), a.box.bottom);
    }
    canvas.dataset.frames = Number(canvas.dataset.frames || 0) + 1;
  });
  const put = (k, value) => {
    const v = Math.min(high, Math.max(low, value)), from = last && Math.abs(last[0] - k) < STEPS ? last : [k, v];
    for (let step = Math.min(from[0], k); step <= Math.max(from[0], k); step++)
      drawn.set(step, from[0] === k ? v : from[1] * (v / from[1]) ** ((step - from[0]) / (k - from[0])));
    last = [k, v];
    reveal.disabled = false;
    draw();
  };
  const place = (event) => {
    const a = axes(canvas, spec), frame = canvas.getBoundingClientRect();
    draw();
    const zoom = canvas.offsetWidth / frame.width; // a slide may be scaled
    return [Math.min(STEPS, Math.max(0, Math.round((a.back((event.clientX - frame.left) * zoom) / nines) * STEPS))), a.value((event.clientY - frame.top) * zoom)];
  };
  const report = () => {
    const marks = [50, 90, 99, 99.9, 99.99].filter((p) => at(ninesOf(p)) !== null && ninesOf(p) < nines);
    const of = marks.map((p) => `p${p}: you drew ${ms(at(ninesOf(p)))}, it is ${ms(truthAt(wanted, ninesOf(p)))}`);
    said.textContent = `${asked[0].toUpperCase()}${asked.slice(1)}. ${of.join("; ")}.`;
    changed(said.textContent);
  };
  let held = false;
  canvas.addEventListener("pointerdown", (event) => { if (shown) return; held = true; last = null; canvas.setPointerCapture(event.pointerId); put(...place(event)); event.preventDefault(); canvas.focus(); });
  canvas.addEventListener("pointermove", (event) => { if (held) for (const one of event.getCoalescedEvents?.().length ? event.getCoalescedEvents() : [event]) put(...place(one)); });
  const release = () => { held = false; };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("focus", draw);
  canvas.addEventListener("blur", draw);
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -2, ArrowRight: 2 }[event.key], change = { ArrowUp: 1.12, ArrowDown: 1 / 1.12 }[event.key];
    if (shown || !(move || change)) return;
    event.preventDefault();
    event.stopPropagation();
    const value = drawn.get(cursor) ?? (last ? last[1] : Math.sqrt(low * high));
    if (move) { last = [cursor, value]; drawn.set(cursor, value); cursor = Math.min(STEPS, Math.max(0, cursor + move)); put(cursor, value); }
    else { last = null; put(cursor, value * change); }
    said.textContent = `p${(100 * (1 - 10 ** (-(cursor / STEPS) * nines))).toPrecision(5)}: ${ms(drawn.get(cursor))}`;
  });
  reveal.addEventListener("click", () => { shown = true; reveal.disabled = true; box.classList.remove("open"); report(); draw(); });
  again.addEventListener("click", () => { shown = false; drawn.clear(); last = null; cursor = 0; reveal.disabled = true; said.textContent = invite; draw(); });
  const box = host(el, canvas, canvas, element("div", { class: "choices" }, reveal, again), said), close = followWidth(box, draw);
  box.classList.toggle("open", !answer);
  draw();
  return close;
}

// ---------------------------------------------------------------- the live server

// Three clients of one server, each with its own way to measure; 50 requests per second each.
const CLIENTS = { closed: [RED, []], "catch-up": [AMBER, [8, 4]], open: [BLUE, []] };

// In a web page: the same three clients and a server in the browser's own time.
export class Imitation {
  constructor(rate = 50, service = 0.001) {
    Object.assign(this, { rate, service, frozen: false, at: 0, times: { closed: [], "catch-up": [], open: [] }, next: { closed: 0, "catch-up": 0, open: 0 }, waiting: { closed: null, "catch-up": null, open: [] } });
  }

  // Let the clock run to `now` (seconds).
  run(now) {
    for (const name of ["closed", "catch-up"]) {
      if (this.frozen && this.waiting[name] !== null) continue;
      if (!this.frozen && this.waiting[name] !== null) { this.times[name].push(this.at - this.waiting[name] + this.service); this.next[name] = name === "closed" ? this.at + 1 / this.rate : this.next[name]; this.waiting[name] = null; }
      for (let busy = this.at; this.next[name] < now; ) {
        const sent = Math.max(this.next[name], busy);
        if (name === "catch-up" && sent > now) break;
        this.next[name] += 1 / this.rate;
        if (this.frozen) { this.waiting[name] = sent; break; }
        this.times[name].push(this.service);
        busy = sent + this.service;
      }
    }
    if (!this.frozen) { for (const due of this.waiting.open) this.times.open.push(this.at - due + this.service); this.waiting.open = []; }
    for (; this.next.open < now; this.next.open += 1 / this.rate) this.frozen ? this.waiting.open.push(this.next.open) : this.times.open.push(this.service);
    this.at = now;
  }

  // Percentile curves and counts, with what is still waiting as far as the client knows of it.
  state() {
    const clients = {};
    for (const [name, times] of Object.entries(this.times)) {
      const open = name === "open" ? this.waiting.open : this.waiting[name] === null ? [] : [this.waiting[name]];
      const sorted = Float64Array.from([...times, ...open.map((since) => this.at - since)].map((s) => s * 1000)).sort();
      clients[name] = { n: sorted.length, p99: percentile(sorted, 99) ?? 0, max: sorted[sorted.length - 1] ?? 0, points: sorted.length ? curveOf(sorted, 3) : [] };
    }
    return { clients, frozen: this.frozen, seconds: this.at };
  }
}

export function freeze(el, { send = null, listen = null }) {
  const spec = { x: "nines", nines: 3, y: [0.1, 60000], unit: ms, label: "percentile of requests" }, canvas = element("canvas", { role: "img", "aria-label": "Percentile curves of the three clients" });
  const button = element("button", { type: "button", "aria-pressed": "false" }, "Hold to freeze the server"), stop = element("button", { type: "button" }, "Start again");
  const said = element("p", { class: "said", role: "status" }, `${send ? "" : "A web page cannot start a server, so this one is simulated. Recorded runs of a real one are below, under “On real machines”. "}Three clients send 50 requests per second each. Hold the button for some seconds, and watch their curves.`);
  const table = element("table"), lines = () => Object.entries(CLIENTS);
  let state = { clients: {}, frozen: false, seconds: 0 };
  const draw = framed(() => {
    paint(canvas, spec, { lines: lines().filter(([name]) => state.clients[name]?.points.length).map(([name, [colour, dash]]) => ({ points: state.clients[name].points, colour, dash, name })) });
    const rows = lines().map(([name]) => state.clients[name]).map((one, k) => element("tr", {}, ...[lines()[k][0], one ? thousands(one.n) : "–", one?.n ? ms(one.p99) : "–", one?.n ? ms(one.max) : "–"].map((text) => element("td", {}, text))));
    table.replaceChildren(element("tr", {}, ...["client", "requests", "p99", "slowest"].map((text) => element("th", {}, text))), ...rows);
    canvas.dataset.frames = Number(canvas.dataset.frames || 0) + 1;
  });
  let world = null, timer = 0, began = 0;
  if (!send) {
    world = new Imitation();
    began = performance.now();
    timer = setInterval(() => { world.run((performance.now() - began) / 1000); state = world.state(); draw(); }, 60);
  }
  const hold = (on) => {
    if ((button.getAttribute("aria-pressed") === "true") === on) return;
    button.setAttribute("aria-pressed", String(on));
    button.textContent = on ? "Frozen: release to thaw" : "Hold to freeze the server";
    if (send) send({ freeze: on });
    else { world.run((performance.now() - began) / 1000); world.frozen = on; }
    if (!on) said.textContent = "The open client has recorded the stall. What do the other two report?";
  };
  button.addEventListener("pointerdown", (event) => { button.setPointerCapture(event.pointerId); hold(true); });
  for (const name of ["pointerup", "pointercancel", "blur"]) button.addEventListener(name, () => hold(false));
  button.addEventListener("keydown", (event) => { if (event.key === " " || event.key === "Enter") { event.preventDefault(); hold(true); } });
  button.addEventListener("keyup", (event) => { if (event.key === " " || event.key === "Enter") hold(false); });
  stop.addEventListener("click", () => { hold(false); if (send) send({ again: true }); else { world = new Imitation(); began = performance.now(); } });
  const quiet = listen && listen((message) => {
    if (message.said) said.textContent = message.said;
    if (message.clients) { state = message; draw(); }
  });
  const box = host(el, canvas, element("div", { class: "choices" }, button, stop), canvas, table, said), close = followWidth(box, draw);
  draw();
  if (send) send({ again: true });
  return () => { close(); clearInterval(timer); if (quiet) quiet(); if (send) send({ stop: true }); };
}

const KINDS = { ask, play, predict, freeze };

// The controls of a page without a kernel. What is below a question is in <details class="below"> with the
// question's number, and opens with its answer; where it has none, as on slides, it is visible.
export function mountAll(page = document) {
  const asked = [...page.querySelectorAll(".latencykit-live[data-kind=ask], .latencykit-live[data-kind=predict]")];
  for (const one of page.querySelectorAll("details.below > summary")) {
    one.textContent = "Answer the question above to see what is here.";
    one.tabIndex = -1;
    one.addEventListener("click", (event) => event.preventDefault());
  }
  for (const box of page.querySelectorAll(".latencykit-live[data-kind]")) {
    const options = JSON.parse(box.dataset.options), number = asked.indexOf(box) + 1;
    KINDS[box.dataset.kind](box, options, (answer) => {
      for (const one of page.querySelectorAll(`details.below[data-after="${number}"]`)) {
        one.open = true;
        one.firstElementChild.hidden = true;
      }
      for (const one of page.querySelectorAll(".latencykit-said"))
        if (one.dataset.question === options.question) {
          one.querySelector("b").textContent = answer;
          one.firstElementChild.hidden = false;
        }
    });
  }
}

// In JupyterLab: open the headings that `latencykit lab` collapsed, up to the next question.
function expandBelow(el) {
  for (let next = el.closest(".jp-Cell")?.nextElementSibling; next; next = next.nextElementSibling) {
    if (/\b(ask|draw_prediction)\(/.test(next.querySelector(".cm-content")?.textContent || "")) break;
    next.querySelector(".jp-collapseHeadingButton.jp-mod-collapsed")?.click();
  }
}

function render({ model, el }) {
  const kind = model.get("_kind"), options = JSON.parse(model.get("_options"));
  if (options.live)
    return freeze(el, {
      send: (message) => model.send(message),
      listen: (heard) => { model.on("msg:custom", heard); return () => model.off("msg:custom", heard); },
    });
  const close = KINDS[kind](el, { ...options, answer: model.get("answer") }, (answer) => {
    model.set("answer", answer);
    model.save_changes();
    expandBelow(el);
  });
  const skip = () => { if (model.get("_skipped")) { el.querySelector(".lesson").classList.remove("open"); expandBelow(el); } };
  model.on("change:_skipped", skip);
  setTimeout(skip); // once it is in its cell
  return () => { model.off("change:_skipped", skip); close(); };
}

export default { render };
