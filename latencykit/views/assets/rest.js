// A selection compared with the rest of the run, or with one that was pinned before (A and B).

import { grouped, percentileText, valueText } from "./numbers.js";
import { distributionOf, rowAt, rowText } from "./data.js";
import { eventsAbove, independentEvents, LEAST_EVENTS, Z } from "./events.js";
import { doubtsIn } from "./support.js";
import { dataWithin, slotsWithin } from "./curve.js";
import { el, svg } from "./draw.js";

const MOST_SERIES = 4;

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
function partRows(data, ranges, percentiles, sure) {
  const spread = distributionOf(data, ranges);
  if (!spread.value.length) return { count: 0, rows: percentiles.map(() => null) };
  spread.doubts = doubtsIn(data, ranges, spread);
  const asked = [50, ...percentiles.filter((p) => p > 0 && p < 100 && p !== 50)], events = new Map();
  if (sure) for (const [percentile, apart, tail, load] of eventsAbove(data, ranges, spread, asked)) events.set(percentile, Math.min(apart, independentEvents(tail, load)));
  if (!events.get(50)) events.clear(); // a drift shows most clearly at the median
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
  if (!difference) return ["unknown"];
  const known = apart && difference.from !== null;
  return [signed(difference.by), el("small", {}, known ? `${signed(difference.from)} to ${signed(difference.until)}` : "interval unknown")];
}

export function wirePin(page, tools, button) {
  if (!page.edges.length) return;
  const own = button("Pin selection", "Key: p; compare it with further selections", () => page.pin(page.pinned ? null : page.span));
  const place = el("div", { id: "compared", hidden: "" });
  page.root.querySelector(".views").after(place);
  tools.append(own);
  page.pin = (span) => {
    page.pinned = span;
    page.showCompared();
    page.onView();
  };
  page.showCompared = () => {
    own.textContent = page.pinned ? "Unpin" : "Pin selection";
    own.disabled = !page.pinned && !page.span;
    place.hidden = !page.pinned && !page.span;
    drawPinned(page);
    if (!place.hidden) place.replaceChildren(...compared(page));
  };
  page.showCompared();
}

// The pinned span in the timeline, and the letters of both.
export function drawPinned(page) {
  if (!page.timeline) return;
  const { x, plot, inside } = page.timeline;
  inside.querySelectorAll(".pinned, .letter").forEach((before) => before.remove());
  if (!page.pinned) return;
  const left = x.to(page.pinned[0]), width = Math.max(1.5, x.to(page.pinned[1]) - left), group = svg("g", { class: "pinned" });
  group.append(svg("rect", { x: left, y: plot.top, width, height: plot.bottom - plot.top }), svg("text", { class: "label", x: left + 4, y: plot.top + 13 }, "A"));
  inside.append(group);
  const own = secondOf(page);
  if (own) inside.append(svg("text", { class: "label letter", x: x.to(own[0]) + 4, y: plot.top + (Math.abs(x.to(own[0]) - left) < 14 ? 28 : 13) }, "B"));
}

// What is selected, unless it is what is pinned.
function secondOf(page) {
  return page.span && String(page.span) !== String(page.pinned) ? page.span : null;
}

function compared(page) {
  const seconds = (span) => `${span[0]} s to ${span[1]} s`, own = secondOf(page);
  const series = page.series.filter((one) => one.coarse && !one.shadow && !one.hidden);
  const spans = (page.pinned ? [page.pinned, own] : [page.span]).filter(Boolean);
  const notes = ["In brackets: uncertain. Small, below a difference: its 95 % interval, from 20 independent events and 20 time bins on."];
  if (page.pinned) notes.unshift(`A, pinned: ${seconds(page.pinned)}. B, selected: ${own ? seconds(own) : "nothing yet"}.`);
  if (!spans.flat().every((edge) => page.allEdges.includes(edge))) notes.push("The rest is without the time bins that a selection cuts.");
  if (series.length > MOST_SERIES) notes.push(`The first ${MOST_SERIES} of ${series.length} series that are shown.`);
  const title = page.pinned ? "A and B" : "Selection and the rest of the run";
  const tables = series.slice(0, MOST_SERIES).map((one) => el("div", { class: "scroll", tabindex: 0 }, tableOf(page, one, spans)));
  return [el("h3", {}, title), el("p", { class: "quiet" }, notes.join(" ")), el("div", { class: "tables" }, ...tables)];
}

function tableOf(page, one, spans) {
  const { percentiles, unit } = page.model, sure = Boolean(one.band), unknown = { count: null, rows: percentiles.map(() => null) };
  const selected = spans.map((span) => {
    const data = dataWithin(page, one, span);
    return data ? partRows(data, [slotsWithin(data, span)], percentiles, sure) : unknown;
  });
  // To the edges of the run's own time bins.
  const cut = spans.map(([a, b]) => [page.allEdges.findLast((edge) => edge <= a) ?? a, page.allEdges.find((edge) => edge >= b) ?? b]);
  const rest = partRows(one.coarse, outside(one.coarse, cut), percentiles, sure), [a, b] = page.pinned ? selected : [rest, ...selected];
  const apart = spans.length < 2 || spans[1][1] <= spans[0][0] || spans[1][0] >= spans[0][1];
  const columns = page.pinned ? [["A", a], ["B", b ?? unknown], ["rest of the run", rest]] : [["selection", b], ["rest of the run", rest]];
  const text = (row) => (row ? rowText(row, unit) : "\u2013"), count = (part) => (part.count === null ? "\u2013" : grouped(part.count));
  const line = (name, ...cells) => el("tr", {}, el("th", { scope: "row" }, name), ...cells.map((cell) => el("td", {}, ...[cell].flat())));
  const lines = percentiles.map((percentile, k) => {
    const difference = !b ? ["\u2013"] : percentile >= 100 ? ["not judged"] : differenceText(differenceOf(a.rows[k], b.rows[k]), apart, unit);
    return line(percentileText(percentile), ...columns.map(([, part]) => text(part.rows[k])), difference);
  });
  const names = [...columns.map(([name]) => name), page.pinned ? "B \u2212 A" : "selection \u2212 rest"];
  const head = el("tr", {}, el("td"), ...names.map((name) => el("th", { scope: "col" }, name)));
  const swatch = el("i", { class: `swatch ${one.cls} ${one.mark}` });
  const requests = line("requests", ...columns.map(([, part]) => count(part)), "");
  return el("table", { class: "compared" }, el("caption", {}, swatch, one.short), el("thead", {}, head), el("tbody", {}, requests, ...lines));
}
