// The percentile curve: nines to the right, values (logarithmic) upwards, the maximum at the end.

import { durationText, grouped, percentileAt, percentileText, valueText } from "./numbers.js";
import { distribution, isResolved, placeOf, rowAt, rowText } from "./data.js";
import { doubtsIn } from "./support.js";
import { axisBelow, boxPath, drawRange, el, endLabels, extent, frame, gridLine, heightOf, linear, setAll, svg, symbols, tickBelow, valueAxis, valueScale } from "./draw.js";

export function spreadOf(page, one) {
  const span = page.span;
  if (!span || !one.data) return one.whole;
  const data = dataWithin(page, one, span);
  if (!data) return null;
  const [first, last] = slotsWithin(data, span), spread = distribution(data, first, last);
  // Values of a correction follow from others, so that nothing bears them.
  spread.doubts = one.derived ? [[0, 100]] : doubtsIn(data, [[first, last]], spread);
  return spread;
}

// What resolves a span: the bins of the run, or finer ones, of which its ends are edges; null where there are none, as of a
// corrected series beside finer bins.
export function dataWithin(page, one, span) {
  const ends = (edges) => span.every((edge) => edges.includes(edge));
  if (ends(page.allEdges)) return one.coarse;
  const finer = page.details.find((detail) => ends(detail.edges));
  return finer?.series[page.series.indexOf(one)] || (one.derived || !finer ? null : { ...one.coarse, start: [], end: [] });
}

// The slots that begin within start ≤ t < end; of a grid that is coarser than the selection, the one that it begins in, too.
export function slotsWithin(data, span) {
  const before = (time) => {
    const at = data.start.findIndex((start) => start >= time);
    return at < 0 ? data.start.length : at;
  };
  const [first, last] = span.map(before);
  return [first - cuts(data, first - 1, span[0]), last];
}

// Whether a moment is inside of a slot's cell of the grid, neither at its start nor at its end.
function cuts(data, s, time) {
  if (!data.width || s < 0 || s >= data.start.length) return 0;
  const at = (time - cellOf(data, s)) / data.width;
  return Number(at > 0.01 && at < 0.99);
}

function cellOf(data, s) {
  return Number((Math.floor(data.start[s] / data.width + 1e-9) * data.width).toFixed(9));
}

// The time of the slots that a selection takes, where these are coarser than it; else null.
export function ownSpan(data, span) {
  const [first, last] = slotsWithin(data, span), from = cuts(data, first, span[0]), to = cuts(data, last - 1, span[1]);
  return from || to ? [from ? cellOf(data, first) : span[0], to ? Number((cellOf(data, last - 1) + data.width).toFixed(9)) : span[1]] : null;
}

export function ownTimes(data, span) {
  const own = data && ownSpan(data, span);
  return own ? [" ", el("small", {}, `its time bins from ${durationText(own[0])} to ${durationText(own[1])}`)] : [];
}

// As many nines as the largest sample supports, and one more to show what it does not.
function ninesOf(page) {
  const totals = page.series.map((one) => (one.whole ? (one.whole.count === null ? 1e5 : one.whole.total) : 0));
  const held = page.series.flatMap((one) => one.points.map((point) => 10 ** Math.ceil(placeOf(Math.min(point[0], 99.9999)))));
  return Math.min(9, Math.max(2, Math.ceil(Math.log10([...totals, ...held].reduce((a, b) => Math.max(a, b), 100)))));
}

export function drawCurve(page) {
  const missing = page.series.filter((one) => one.reason && !one.hidden), named = (reason) => missing.filter((one) => one.reason === reason).map((one) => one.short).join(", ");
  const reasons = [...new Set(missing.map((one) => one.reason))].map((reason) => (page.series.length > 1 ? `${named(reason)}: ${reason}` : reason));
  const notes = reasons.map((text) => el("p", { class: "reason" }, text));
  const live = page.series.map((one, k) => ({ one, spread: page.spreads[k] })).filter(({ one }) => !one.hidden);
  const host = page.hosts.curve;
  if (!live.some(({ one }) => one.whole || one.points.length)) {
    host.replaceChildren(...notes, ...(notes.length ? [] : [el("p", { class: "reason" }, "All series are hidden.")]));
    return;
  }
  const ends = live.filter(({ spread }) => spread?.value.length).map(({ one, spread }) => {
    const top = rowAt(spread, 100), text = rowText(top, page.model.unit);
    return { text: live.length > 1 ? one.label : top.open ? text : `max ${text}`, top: top.value, cls: one.cls };
  });
  const { root, box } = frame(host, heightOf(host) + 110, "Percentile curve; the table below has its numbers", Math.max(11, ...ends.map(({ text }) => text.length)));
  if (!page.nines) {
    page.nines = ninesOf(page);
    page.limits = extentOfCurves(page);
  }
  const x = linear(0, page.nines + 0.5, box.left, box.right), y = valueScale(page, ...page.limits, box.bottom, box.top);
  const words = ground(root, box, x, live);
  valueAxis(root, box, y, page.model.unit);
  percentileAxis(root, box, x, page.nines);
  root.append(...words);
  if (!page.span && live.length <= 3) for (const { one } of live) if (one.band) drawBand(root, one, x, y);
  if (page.span) for (const { one } of live) if (one.data && one.whole) drawGhost(root, one, x, y);
  drawRange(root, page.values, y, box);
  drawSteps(root, page.model.slo, x, y, box, page.model.unit);
  const labels = ends.map(({ text, top, cls }) => ({ text, y: y.to(top), cls }));
  // On a narrow screen these stand inside the plot, where others keep away from them.
  const placed = box.narrow ? labels.map((own) => ({ from: box.right - 4 - 8 * own.text.length, until: box.right, y: own.y - 5 })) : [];
  for (const { one, spread } of live) {
    if (spread && spread.value.length) {
      const weak = drawLine(page, root, one, spread, x, y);
      if (weak && one.uncertain && !page.span && live.length === 1) labelCauses(root, one, x.to(placeOf(spread.doubts[0][0])), y.to(weak.value), box, placed);
    }
    if (!page.span || !one.data) drawPoints(root, one, x, y, page.model.unit, live.length === 1);
  }
  if (labels.length <= (box.narrow ? 4 : 24)) endLabels(root, labels, box);
  catchCurve(page, root, box, x, live);
  host.replaceChildren(root, ...notes);
}

function extentOfCurves(page) {
  const values = page.model.slo.map((step) => step.limit);
  for (const one of page.series) {
    if (one.whole) for (const side of [one.whole.value, one.whole.low]) for (const value of side) values.push(value);
    for (const point of one.points) values.push(point[1]);
    for (const row of one.band || []) values.push(row[1], row[2]);
  }
  const [low, high] = extent(values);
  return [low / 1.3, high * 1.6];
}

function percentileAxis(root, box, x, nines) {
  const places = [0, placeOf(50)];
  for (let k = 1; k <= nines; k++) places.push(k);
  let last = -Infinity;
  for (const place of places) {
    const at = x.to(place), text = percentileText(percentileAt(place)).slice(1);
    gridLine(root, box, at);
    const half = text.length * 3.4;
    if (at - half < last + (place < 1 ? 4 : 8) || at + half > Math.min(box.right, box.width - 18) - 26) continue;
    tickBelow(root, box, at, text);
    last = at + half;
  }
  gridLine(root, box, box.right);
  tickBelow(root, box, Math.min(box.right, box.width - 18), "100 %");
  axisBelow(root, box, "percentile of requests");
}

// Grey ground where no sample in view is large enough. Returns its words, for which lines of the grid make room.
function ground(root, box, x, live) {
  const spreads = live.map(({ spread }) => spread).filter((spread) => spread && spread.value.length);
  const limit = spreads.reduce((most, spread) => Math.max(most, spread.count === null ? Infinity : placeOf(spread.limit)), 0);
  const left = Math.max(x.to(Math.min(limit, x.high)), box.left);
  if (!spreads.length || left >= box.right) return [];
  root.append(svg("rect", { class: "ground", x: left, y: box.top, width: box.right - left, height: box.bottom - box.top }));
  if (box.right - left < 230) return [];
  const words = ["sample too small from here on:", "the curve is its maximum"];
  return words.map((text, k) => svg("text", { class: "tick halo", x: left + 8, y: box.bottom - 24 + 14 * k }, text));
}

// `placed` has the labels so far: further ones go below them.
function labelCauses(root, one, left, top, box, placed) {
  const causes = `dashed: uncertain (${one.uncertain})`, fits = 7 * causes.length < box.right - box.left;
  const words = fits ? causes : "dashed: uncertain", anchor = left > (box.left + box.right) / 2 ? "end" : "start";
  const width = 7 * words.length, x = anchor === "end" ? Math.max(left - 6, width + 2) : Math.min(left + 6, box.width - width - 2), from = anchor === "end" ? x - width : x;
  let y = anchor === "end" ? Math.max(12, top - 8) : x < left ? box.bottom - 12 : Math.min(top + 20, box.bottom - 4); // the curve rises to the right
  while (placed.some((other) => Math.abs(other.y - y) < 14 && other.from < from + width && from < other.until)) y += 15;
  placed.push({ from, until: from + width, y });
  root.append(svg("text", { class: `label small ${one.cls}`, x, y, "text-anchor": anchor }, words));
}

// A line where values are known within a tenth, and the band between the edges where they are not. Returns the first step
// that is uncertain.
function drawLine(page, root, one, spread, x, y) {
  const end = x.high, steps = [];
  const limit = spread.count === null ? end : Math.min(placeOf(spread.limit), end), dashes = spread.doubts.map((ends) => ends.map((p) => Math.min(placeOf(p), limit)));
  spread.value.forEach((value, k) => {
    const from = k ? steps[k - 1].to : 0, to = Math.min(placeOf(spread.percentile[k]), end);
    steps.push({ from, to, value, low: spread.low[k], open: k >= spread.known, sure: isResolved(spread.low[k], value) });
  });
  // What knows no time stays as it is, and steps back behind what was selected.
  const back = page.span && !one.data ? "faint" : "";
  const many = page.series.filter((other) => other.whole && !other.hidden).length > 2 ? "many" : "";
  const draw = (some, first, until, style) => {
    const path = stairs(some, first, until, x, y);
    if (path) root.append(svg("path", { class: `line ${one.cls} ${style} ${back}`, d: path }));
  };
  const ranges = steps.filter((step) => !step.open && !step.sure && step.to > step.from);
  const boxes = ranges.map((step) => boxPath(x.to(step.from), x.to(step.to), y.to(step.low), y.to(step.value)));
  if (boxes.length) root.append(svg("path", { class: `range ${one.cls} ${back} ${many}`, d: boxes.join("") }));
  const known = steps.filter((step) => !step.open && step.sure);
  // What the run supports, what is uncertain, and what the sample is too small for.
  let at = 0;
  for (const [first, last] of dashes) {
    draw(known, at, first, "");
    draw(known, first, last, "few");
    at = last;
  }
  draw(known, at, limit, "");
  draw(known, limit, end, "dotted");
  draw(steps.filter((step) => step.open), 0, end, "dotted");
  const onLine = (place) => steps.find((step) => step.to > place && (step.open || step.sure));
  symbols(root, one, page.series.indexOf(one), x, (place) => (onLine(place)?.from <= place ? y.to(onLine(place).value) : null));
  return dashes.length && steps.find((step) => step.to > dashes[0][0]);
}

// The part of a step function between two places, joined to what stands before it; broken where steps are missing.
function stairs(steps, first, last, x, y) {
  let path = "", before = null, rise = null;
  const pixel = (at) => Math.round(10 * at) / 10;
  for (const step of steps) {
    if (step.from >= last) break;
    if (step.to > first) {
      const left = pixel(x.to(Math.max(step.from, first))), height = pixel(y.to(step.value));
      const right = pixel(x.to(Math.min(step.to, last))), joined = before !== null && before.to === step.from;
      if (!path || !joined) path += `${rise ?? ""}M${left} ${joined && step.from === first ? pixel(y.to(before.value)) : height}`;
      // Steps within one pixel are one rise.
      rise = `V${height}`;
      if (right !== left) [path, rise] = [`${path}${rise}H${right}`, null];
    }
    before = step;
  }
  return path && rise ? path + rise : path;
}

// The whole run, behind what is selected of it.
function drawGhost(root, one, x, y) {
  const key = [x.high, x.to(1), y.low, y.high, y.to(y.low)].join(" ");
  if (one.ghost?.key === key) return root.append(svg("path", { class: `line ghost ${one.cls}`, d: one.ghost.path }));
  const steps = one.whole.value.map((value, k) => ({ from: k ? placeOf(one.whole.percentile[k - 1]) : 0, to: placeOf(one.whole.percentile[k]), value }));
  one.ghost = { key, path: stairs(steps, 0, x.high, x, y) };
  root.append(svg("path", { class: `line ghost ${one.cls}`, d: one.ghost.path }));
}

function drawBand(root, one, x, y) {
  const rows = one.band.filter((row) => row[1] !== null && row[2] !== null);
  if (rows.length < 2) return;
  const at = (k) => x.to(Math.min(placeOf(rows[k][0]), x.high)).toFixed(1);
  let up = `M${at(0)} ${y.to(rows[0][2]).toFixed(1)}`, down = "";
  for (let k = 1; k < rows.length; k++) up += `V${y.to(rows[k][2]).toFixed(1)}H${at(k)}`;
  for (let k = rows.length - 1; k > 0; k--) down += `V${y.to(rows[k][1]).toFixed(1)}H${at(k - 1)}`;
  root.append(svg("path", { class: `band ${one.cls}`, d: `${up}${down}Z` }));
}

// Percentiles that the tool itself reports: exact points.
function drawPoints(root, one, x, y, unit, labelled) {
  let free = -Infinity;
  for (const [percentile, value] of one.points) {
    const left = x.to(Math.min(placeOf(percentile), x.high)), top = y.to(value), text = valueText(value, unit), half = 3.7 * text.length;
    root.append(svg("circle", { class: `point ${one.cls}`, cx: left, cy: top, r: one.whole ? 3 : 4 }));
    if (!labelled || left - half < free) continue;
    root.append(svg("text", { class: `label ${one.cls}`, x: left, y: top - 9, "text-anchor": "middle" }, text));
    free = left + half + 4;
  }
}

// An SLO as a staircase: up to each percentile its limit.
function drawSteps(root, steps, x, y, box, unit) {
  let from = 0;
  for (const step of steps) {
    const to = Math.min(placeOf(step.percentile), x.high), height = y.to(step.limit);
    root.append(svg("path", { class: `slo ${step.outcome}`, d: `M${x.to(from)} ${height}H${x.to(to)}` }));
    const words = `${percentileText(step.percentile)} ≤ ${valueText(step.limit, unit)}: ${step.outcome}`;
    const fits = x.to(to) - x.to(from) > words.length * 6;
    if (fits) root.append(svg("text", { class: `label ${step.outcome}`, x: x.to(from) + 4, y: height - 5 }, words));
    from = to;
  }
}

// ---------------------------------------------------------------- the pointer on the curve

function catchCurve(page, root, box, x, live) {
  const rule = svg("line", { class: "rule", y1: box.top, y2: box.bottom, visibility: "hidden" });
  const size = { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top };
  const area = svg("rect", { class: "catch hover", ...size });
  root.append(rule, area);
  const point = (place) => {
    for (const side of ["x1", "x2"]) rule.setAttribute(side, x.to(place));
    rule.setAttribute("visibility", "visible");
  };
  const placeAt = (event) => Math.max(0, x.back(event.clientX - root.getBoundingClientRect().left));
  const follow = (event) => {
    const place = placeAt(event), percentile = atMaximum(page, place) ? 100 : writtenPercentile(place);
    point(place);
    page.tip.show(event, percentileText(percentile), rowsAt(page, live, percentile));
  };
  const mark = svg("rect", { class: "brush", y: box.top, height: box.bottom - box.top, visibility: "hidden" });
  root.insertBefore(mark, area);
  let from = null;
  area.addEventListener("pointerdown", (event) => {
    follow(event);
    if (!event.isPrimary || event.button !== 0 || !page.hosts.timeline) return;
    from = placeAt(event);
    area.setPointerCapture(event.pointerId);
  });
  area.addEventListener("pointermove", (event) => {
    follow(event);
    if (from === null) return;
    const [left, right] = [from, placeAt(event)].sort((a, b) => a - b);
    const width = x.to(right) - x.to(left);
    setAll(mark, { x: x.to(left), width, visibility: width > 4 ? "visible" : "hidden" });
  });
  area.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const [left, right] = [from, placeAt(event)].sort((a, b) => a - b);
    from = null;
    mark.setAttribute("visibility", "hidden");
    if (x.to(right) - x.to(left) <= 4) return page.values ? page.choose(null) : null;
    chooseBetween(page, left, right);
  });
  area.addEventListener("pointercancel", () => ((from = null), mark.setAttribute("visibility", "hidden")));
  area.addEventListener("pointerleave", () => {
    page.tip.hide();
    rule.setAttribute("visibility", "hidden");
  });
  page.point = point;
  page.pixel = x.to;
}

// The latencies between two places, of the first series that is shown over time.
function chooseBetween(page, left, right) {
  const spread = page.spreads.find((found, k) => page.series[k].data && !page.series[k].hidden && found?.value.length);
  if (!spread) return;
  const at = (place) => rowAt(spread, atMaximum(page, place) ? 100 : Math.max(1e-9, percentileAt(place))).value;
  page.choose([left < 0.02 ? 0 : at(left), at(right)]);
}

// At the right end of the axis stands the maximum.
function atMaximum(page, place) {
  return place >= page.nines + 0.35;
}

// A percentile as it is written, so that what is shown for it is what every table says of it.
function writtenPercentile(place) {
  return Math.min(100, Number(percentileText(percentileAt(place)).slice(1)));
}

function curveRows({ one, spread }, percentile, unit) {
  const reported = one.points.find((point) => point[0] === percentile);
  if (!spread || !spread.value.length) return reported ? [{ cls: one.cls, text: `${one.name}: ${valueText(reported[1], unit)}` }] : [];
  const found = rowAt(spread, percentile);
  const row = reported && spread === one.whole ? { ...found, value: reported[1], low: reported[1], resolved: true, open: false } : found;
  const text = `${one.short}: ${rowText(row, unit)}`;
  if (spread.count === null) return [{ cls: one.cls, mark: one.mark, text }];
  const slower = row.open ? spread.late : spread.total * (1 - spread.percentile[row.at] / 100);
  const weak = row.supported ? null : row.open ? one.beyond : percentile > spread.limit ? "few requests" : (spread === one.whole && one.uncertain) || "uncertain";
  return [{ cls: one.cls, mark: one.mark, weak, text: `${text} · ${grouped(slower)} of ${grouped(spread.total)} took ${row.open ? "that long or longer" : "longer"}` }];
}

// The series at a percentile; why some are in brackets is said once.
function rowsAt(page, live, percentile) {
  const rows = live.flatMap((one) => curveRows(one, percentile, page.model.unit)), why = [...new Set(rows.flatMap((row) => row.weak || []))];
  return why.length ? [...rows, { text: `in brackets: ${why.join(", ")}` }] : rows;
}

// Arrow keys walk along the axis, and what stands there is shown and spoken; with the shift key they choose a range.
export function walkCurve(page, event) {
  const step = { ArrowLeft: -0.1, ArrowRight: 0.1, Home: -99, End: 99 }[event.key];
  if (!step) return;
  event.preventDefault();
  const before = page.place ?? 0.3;
  page.place = Math.min(page.nines + 0.5, Math.max(0, before + step));
  if (!page.point) return;
  page.anchor = event.shiftKey ? (page.anchor ?? before) : null;
  if (page.anchor !== null && page.hosts.timeline) chooseBetween(page, ...[page.anchor, page.place].sort((a, b) => a - b));
  page.point(page.place);
  const percentile = page.place >= page.nines + 0.45 ? 100 : writtenPercentile(page.place);
  const rows = page.series.map((one, k) => ({ one, spread: page.spreads[k] })).filter(({ one }) => !one.hidden);
  const found = rowsAt(page, rows, percentile);
  if (page.anchor === null) page.say(`${percentileText(percentile)}. ${found.map((row) => row.text).join(". ")}`);
  const box = page.hosts.curve.getBoundingClientRect();
  page.tip.show({ clientX: box.left + page.pixel(page.place), clientY: box.top + 120 }, percentileText(percentile), found);
}
