// Two selections compared: the one that was pinned (A), the present one (B), and the rest of the run.

import { grouped, percentileText, valueText } from "./numbers.js";
import { distributionOf, rowAt, rowText } from "./data.js";
import { eventsAbove, LEAST_EVENTS, supportedIn } from "./events.js";
import { dataWithin, slotsWithin } from "./curve.js";
import { el, svg } from "./draw.js";

const Z = 1.959963984540054, MOST_SERIES = 4;

// The parts of a run that lie in none of some spans.
function outside(data, spans) {
  const within = spans.map((span) => slotsWithin(data, span)).sort((a, b) => a[0] - b[0]), ranges = [];
  let at = 0;
  for (const [first, last] of within) {
    if (first > at) ranges.push([at, first]);
    at = Math.max(at, last);
  }
  return at < data.start.length ? [...ranges, [at, data.start.length]] : ranges;
}

// Value and 95 % interval of each percentile, from the order statistics of as many independent events as lie above it.
function partRows(data, ranges, percentiles) {
  const spread = distributionOf(data, ranges);
  if (!spread.value.length) return { count: 0, rows: percentiles.map(() => null) };
  spread.solid = supportedIn(data, ranges, spread, percentiles);
  const events = new Map(eventsAbove(data, ranges, spread, percentiles.filter((p) => p > 0 && p < 100)));
  const rows = percentiles.map((percentile) => ({ ...rowAt(spread, percentile), ...intervalAt(spread, percentile, events.get(percentile)) }));
  return { count: spread.count, rows };
}

export function intervalAt(spread, percentile, events) {
  if (!(events >= LEAST_EVENTS) || percentile >= 100) return { from: null, until: null };
  const tail = 1 - percentile / 100, reach = (Z * Math.sqrt(events * (1 - tail)) + 1) / events;
  const ends = [tail * (1 + reach), tail * (1 - reach)].map((share) => rowAt(spread, Math.max(1e-9, 100 * (1 - share))));
  return ends.every((end) => end.resolved) && tail * (1 + reach) < 1 ? { from: ends[0].value, until: ends[1].value } : { from: null, until: null };
}

// The difference of two independent percentiles; its interval combines theirs (Zou and Donner 2008).
export function differenceOf(a, b) {
  if (!a?.resolved || !b?.resolved) return null;
  const by = b.value - a.value;
  if ([a.from, b.from].includes(null)) return { by, from: null, until: null };
  return { by, from: by - Math.hypot(b.value - b.from, a.until - a.value), until: by + Math.hypot(b.until - b.value, a.value - a.from) };
}

function differenceText(difference, apart, unit) {
  const signed = (value) => (value > 0 ? "+" : value < 0 ? "\u2212" : "") + valueText(Math.abs(value), unit);
  if (!difference) return "unknown";
  const known = apart && difference.from !== null;
  return `${signed(difference.by)} (${known ? `${signed(difference.from)} to ${signed(difference.until)}` : "interval unknown"})`;
}

export function wirePin(page, tools, button) {
  if (!page.edges.length) return;
  const own = button("Pin selection", "Key: p; compare it with further selections", () => page.pin(page.pinned ? null : page.span));
  const place = el("div", { id: "pinned", hidden: "" });
  page.find("numbers").closest(".scroll").after(place);
  tools.append(own);
  page.pin = (span) => {
    page.pinned = span;
    page.showPinned();
    page.onView();
  };
  page.showPinned = () => {
    own.textContent = page.pinned ? "Unpin" : "Pin selection";
    own.disabled = !page.pinned && !page.span;
    place.hidden = !page.pinned;
    drawPinned(page);
    if (page.pinned) place.replaceChildren(...compared(page));
  };
  page.showPinned();
}

// The pinned span in the timeline.
export function drawPinned(page) {
  if (!page.timeline) return;
  const { x, plot, inside } = page.timeline, before = inside.querySelector(".pinned");
  before?.remove();
  if (!page.pinned) return;
  const left = x.to(page.pinned[0]), width = Math.max(1.5, x.to(page.pinned[1]) - left), group = svg("g", { class: "pinned" });
  group.append(svg("rect", { x: left, y: plot.top, width, height: plot.bottom - plot.top }), svg("text", { class: "label", x: left + 4, y: plot.top + 13 }, "A"));
  inside.append(group);
}

function compared(page) {
  const seconds = (span) => `${span[0]} s to ${span[1]} s`, own = page.span && String(page.span) !== String(page.pinned) ? page.span : null;
  const series = page.series.filter((one) => one.coarse && !one.shadow && !one.hidden);
  const parts = [el("h3", {}, "A and B"), el("p", { class: "quiet" }, `A, pinned: ${seconds(page.pinned)}. B, selected: ${own ? seconds(own) : "nothing yet"}. Difference: B \u2212 A, with its 95 % interval from independent events.`)];
  if (series.length > MOST_SERIES) parts.push(el("p", { class: "quiet" }, `The first ${MOST_SERIES} of ${series.length} series that are shown.`));
  for (const one of series.slice(0, MOST_SERIES)) parts.push(tableOf(page, one, own));
  return parts;
}

function tableOf(page, one, own) {
  const { percentiles, unit } = page.model, blank = { count: null, rows: percentiles.map(() => null) };
  const of = (span) => {
    const data = span && dataWithin(page, one, span);
    return data ? partRows(data, [slotsWithin(data, span)], percentiles) : blank;
  };
  const spans = own ? [page.pinned, own] : [page.pinned];
  // Bins of the run that a span cuts belong to neither side.
  const entire = spans.flat().every((edge) => page.allEdges.includes(edge));
  const a = of(page.pinned), b = of(own), rest = entire ? partRows(one.coarse, outside(one.coarse, spans), percentiles) : blank;
  const apart = own && (own[1] <= page.pinned[0] || own[0] >= page.pinned[1]);
  const text = (row) => (row ? rowText(row, unit) : "\u2013"), count = (part) => (part.count === null ? "\u2013" : grouped(part.count));
  const line = (name, ...cells) => el("tr", {}, el("th", { scope: "row" }, name), ...cells.map((cell) => el("td", {}, cell)));
  const lines = percentiles.map((percentile, k) => {
    const difference = own ? differenceText(differenceOf(a.rows[k], b.rows[k]), apart, unit) : "\u2013";
    return line(percentileText(percentile), text(a.rows[k]), text(b.rows[k]), text(rest.rows[k]), difference);
  });
  const head = el("tr", {}, el("td"), ...["A", "B", "rest of the run", "B \u2212 A"].map((name) => el("th", { scope: "col" }, name)));
  const swatch = el("i", { class: `swatch ${one.cls} ${one.dash}` });
  return el("table", { class: "compared" }, el("caption", {}, swatch, one.short), el("thead", {}, head), el("tbody", {}, line("requests", count(a), count(b), count(rest), ""), ...lines));
}
