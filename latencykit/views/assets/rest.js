// A selection compared with the rest of the run.

import { grouped, percentileText, valueText } from "./numbers.js";
import { distributionOf, rowAt, rowText } from "./data.js";
import { doubtsIn, jackknifeOf } from "./support.js";
import { dataWithin, ownTimes, slotsWithin } from "./curve.js";
import { el } from "./draw.js";

const MOST_SERIES = 4, WIDEST = Math.log(100);

// The parts of a run before and after a span.
function outside(data, span) {
  const [first, last] = slotsWithin(data, span), size = data.start.length;
  return [[0, first], [last, size]].filter(([from, to]) => from < to);
}

// Value and 95 % interval of each percentile, by what differs between blocks of time.
function partRows(data, ranges, percentiles, sure) {
  const spread = distributionOf(data, ranges);
  if (!spread.value.length) return { count: 0, rows: percentiles.map(() => null) };
  const parts = jackknifeOf(data, ranges, spread), reach = sure && parts.full ? parts.reach(percentiles.map((p) => 1 - p / 100)) : [];
  spread.doubts = doubtsIn(data, ranges, spread, parts);
  const rows = percentiles.map((percentile, k) => {
    const row = rowAt(spread, percentile), known = percentile < 100 && row.resolved && reach[k] < WIDEST;
    return { ...row, from: known ? row.low * Math.exp(-reach[k]) : null, until: known ? row.value * Math.exp(reach[k]) : null };
  });
  return { count: spread.count, rows };
}

// The difference of two independent percentiles; its interval combines theirs (Zou and Donner 2008).
export function differenceOf(a, b) {
  if (!a?.resolved || !b?.resolved) return null;
  const by = b.value - a.value;
  if ([a.from, b.from].includes(null)) return { by, from: null, until: null };
  return { by, from: by - Math.hypot(b.value - b.from, a.until - a.value), until: by + Math.hypot(b.until - b.value, a.value - a.from) };
}

function differenceText(difference, unit) {
  const signed = (value) => (value > 0 ? "+" : value < 0 ? "\u2212" : "") + valueText(Math.abs(value), unit);
  if (!difference) return ["unknown"];
  return [signed(difference.by), el("small", {}, difference.from !== null ? `${signed(difference.from)} to ${signed(difference.until)}` : "interval unknown")];
}

export function wireRest(page) {
  if (!page.edges.length) return;
  const place = el("div", { id: "compared", hidden: "" });
  page.root.querySelector(".views").after(place);
  page.showCompared = () => {
    place.hidden = !page.span;
    if (page.span) place.replaceChildren(...compared(page));
  };
  page.showCompared();
}

function compared(page) {
  const series = page.series.filter((one) => one.coarse && !one.derived && !one.hidden);
  const notes = ["In brackets: uncertain. Small, below a difference: its 95 % interval, from 12 time bins on."];
  if (!page.span.every((edge) => page.allEdges.includes(edge))) notes.push("The rest is without the time bins that a selection cuts.");
  if (series.length > MOST_SERIES) notes.push(`The first ${MOST_SERIES} of ${series.length} series that are shown.`);
  const tables = series.slice(0, MOST_SERIES).map((one) => el("div", { class: "scroll" }, tableOf(page, one)));
  return [el("h3", {}, "Selection and the rest of the run"), el("p", { class: "quiet" }, notes.join(" ")), el("div", { class: "tables" }, ...tables)];
}

function tableOf(page, one) {
  const { percentiles, unit } = page.model, sure = Boolean(one.band), data = dataWithin(page, one, page.span);
  const selected = data ? partRows(data, [slotsWithin(data, page.span)], percentiles, sure) : { count: null, rows: percentiles.map(() => null) };
  // To the edges of the run's own time bins.
  const [a, b] = page.span, cut = [page.allEdges.findLast((edge) => edge <= a) ?? a, page.allEdges.find((edge) => edge >= b) ?? b];
  const rest = partRows(one.coarse, outside(one.coarse, cut), percentiles, sure);
  const text = (row) => (row ? rowText(row, unit) : "\u2013"), count = (part) => (part.count === null ? "\u2013" : grouped(part.count));
  const line = (name, ...cells) => el("tr", {}, el("th", { scope: "row" }, name), ...cells.map((cell) => el("td", {}, ...[cell].flat())));
  const lines = percentiles.map((percentile, k) => {
    const difference = percentile >= 100 ? ["not judged"] : differenceText(differenceOf(rest.rows[k], selected.rows[k]), unit);
    return line(percentileText(percentile), text(selected.rows[k]), text(rest.rows[k]), difference);
  });
  const names = ["selection", "rest of the run", "selection \u2212 rest"];
  const head = el("tr", {}, el("td"), ...names.map((name) => el("th", { scope: "col" }, name)));
  const swatch = el("i", { class: `swatch ${one.cls} ${one.mark}` });
  const requests = line("requests", count(selected), count(rest), "");
  return el("table", { class: "compared" }, el("caption", {}, swatch, one.short, ...ownTimes(data, page.span)), el("thead", {}, head), el("tbody", {}, requests, ...lines));
}
