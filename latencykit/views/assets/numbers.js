// Numbers as the package writes them (see latencykit/units.py), and the ticks of the axes.

// Unit, its nanoseconds, and from how many nanoseconds on it is used.
const UNITS = [["d", 864e11, 1728e11], ["h", 36e11, 72e11], ["min", 6e10, 12e10], ["s", 1e9, 1e9], ["ms", 1e6, 1e6], ["µs", 1e3, 1e3], ["ns", 1, 1]];

export function plain(number, digits) {
  if (number === 0 || !Number.isFinite(number)) return String(number);
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(number))));
  const text = number.toFixed(Math.min(decimals, 100));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

// To a number of significant digits; a tie goes to the even digit, as in Python.
function rounded(number, digits) {
  const near = Number(number.toPrecision(digits)), [head, power] = Math.abs(number).toExponential(60).split("e");
  const every = head.replace(".", ""), kept = every.slice(0, digits);
  if (!/^50*$/.test(every.slice(digits)) || Number(kept) % 2) return near;
  return Math.sign(number) * Number(`${kept}e${Number(power) - digits + 1}`);
}

export function grouped(number) {
  return String(Math.round(number)).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

export function valueText(value, unit, digits = 3) {
  if (value === null || Number.isNaN(value)) return "unknown";
  if (unit !== "ns") {
    const whole = Math.abs(value).toFixed(0).length;
    return rounded(value, Math.max(digits, whole)).toLocaleString("en-US", { maximumSignificantDigits: 21 });
  }
  if (value === 0) return "0";
  const near = rounded(value, digits);
  const [name, size] = UNITS.find((one) => Math.abs(near) >= one[2]) || UNITS.at(-1);
  return `${plain((size <= 1e9 ? near : value) / size, digits)} ${name}`;
}

// Percentiles are placed evenly by nines: p90 at 1, p99 at 2, p99.9 at 3.
export function percentileAt(place) {
  return 100 * (1 - 10 ** -place);
}

export function percentileText(p) {
  if (p >= 100) return "max";
  const nines = Math.floor(-Math.log10(1 - p / 100) + 1e-9);
  const text = p.toFixed(Math.max(1, nines)).replace(/\.?0+$/, "");
  return `p${text}`;
}

// Times from the start, all in the unit of which all are multiples (time_texts of latencykit/plot).
export function timeTexts(moments) {
  const largest = Math.max(0, ...moments.map(Math.abs));
  if (largest < 60) return moments.map((at) => valueText(Math.round(at * 1e12) / 1e3, "ns", 12));
  for (const [size, name] of [[86400, "d"], [3600, "h"], [60, "min"]])
    if (moments.every((at) => at % size === 0) && largest >= (size === 86400 ? 2 * size : size) && largest < 200 * size)
      return moments.map((at) => (at ? `${at / size} ${name}` : "0"));
  return moments.map((at) => (at ? `${at.toLocaleString("en-US", { maximumSignificantDigits: 12 })} s` : "0"));
}

export function durationText(seconds) {
  return valueText(seconds * 1e9, "ns");
}

// A moment that can be copied: all of its digits, in seconds.
export function secondsText(seconds) {
  return `${seconds} s`;
}

export function clockText(seconds, epoch) {
  return new Date((epoch + seconds) * 1000).toISOString().replace("T", " ").replace(/\.000Z$|Z$/, " UTC");
}

// A power of ten; from 100 s on, what is as round in min, h and d (as in latencykit/plot/axes.py).
function decade(k, second) {
  const value = 10 ** k, over = Math.round(Math.log10(value / second)) - 2;
  return over < 0 ? value : second * [120, 1200, 7200, 72000, 864000][Math.min(over, 4)] * 10 ** Math.max(over - 4, 0);
}

// Ticks of a logarithmic axis: decades, and 2 and 5 where there are few.
export function logTicks(low, high, second = Infinity) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const parts = Math.log10(high / low) <= 3 ? [1, 2, 5] : [1];
  const found = [];
  for (let k = first; k <= last; k++)
    for (const part of parts) {
      const value = part * decade(k, second);
      if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
    }
  return found;
}

export function linearTicks(low, high, most) {
  const span = Math.max(high - low, 1e-12), rough = span / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((size) => size >= rough);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at++) found.push(at * step);
  return found;
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

export function timeTicks(low, high, most) {
  const rough = (high - low) / most;
  if (rough < 1 || rough > 86400) return linearTicks(low, high, most);
  const step = TIME_STEPS.find((size) => size >= rough) || 86400;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high; at++) found.push(at * step);
  return found;
}
