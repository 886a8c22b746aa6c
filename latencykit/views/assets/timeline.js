// The time series: maximum, p99 and median of each slot as steps, gaps as gaps, the rate underneath; and the brush.

import { clockText, durationText, grouped } from "./numbers.js";
import { countWithin, distribution, rowAt, rowText } from "./data.js";
import { boxPath, clipped, endLabels, extent, frame, heightOf, linear, setAll, svg, symbols, timeAxis, valueAxis, valueScale } from "./draw.js";

const ONE = [[100, "max", "worst"], [99, "p99", "late"], [50, "p50", "half"]];

// Percentiles of each slot as rows, null where nothing was counted. One that slots have too few requests for is that of some
// together, and null where these have too few, too: p99 of five requests is their maximum by another name.
function overTime(data) {
  if (data.overTime) return data.overTime;
  const size = data.start.length, held = [...data.count].filter((n) => n > 0).sort((a, b) => a - b), usual = held[held.length >> 1] || 1;
  const found = {};
  for (const percentile of [50, 99, 100]) {
    const enough = percentile < 100 ? (1 / (1 - percentile / 100)) * (1 - 1e-9) : 0, together = Math.max(1, Math.ceil(enough / usual));
    const rows = (found[percentile] = []);
    for (let s = 0; s < size; s += together) {
      const last = Math.min(s + together, size), spread = distribution(data, s, last);
      const row = spread.count && spread.count >= enough ? rowAt(spread, percentile) : null;
      for (let k = s; k < last; k++) rows.push(data.count[k] ? row : null);
    }
    const [before, end] = rows.slice(-2), less = end && before && end.value < before.value;
    if (data.count[size - 1] < usual / 2 && (percentile < 100 || less)) rows[size - 1] = null; // the measurement may have ended in it
  }
  return (data.overTime = found);
}

function gaps(data) {
  const lengths = data.start.map((start, s) => data.end[s] - start).sort((a, b) => a - b);
  const slack = 0.05 * (lengths[lengths.length >> 1] || 0) + 2e-3;
  return data.start.map((_, s) => s + 1 < data.start.length && data.start[s + 1] - data.end[s] > slack);
}

export function stepPath(data, values, x, y) {
  const broken = data.gaps || (data.gaps = gaps(data));
  let path = "", open = false;
  for (let s = 0; s < values.length; s++) {
    if (values[s] === null) {
      open = false;
      continue;
    }
    const end = broken[s] || s + 1 === values.length ? data.end[s] : data.start[s + 1];
    path += `${open ? "L" : "M"}${x.to(data.start[s]).toFixed(1)} ${y.to(values[s]).toFixed(1)}H${x.to(end).toFixed(1)}`;
    open = !broken[s];
  }
  return path;
}

// The place of the last time bin with a value that is in view; a line that ends well before the edge of the plot has none, if
// others may be mistaken for it.
export function lastInView(data, values, x, several) {
  const at = values.findLastIndex((value, s) => value !== null && data.start[s] < x.high && data.end[s] > x.low);
  return at < 0 || (several && data.end[at] < x.high - 0.1 * (x.high - x.low)) ? -1 : at;
}

// Boxes from the lower to the upper edge, where the source does not pin a slot's value down.
function rangePath(data, rows, x, y) {
  const boxes = rows.map((row, s) => (row && !row.resolved && !row.open ? boxPath(x.to(data.start[s]), x.to(data.end[s]), y.to(row.low), y.to(row.value)) : ""));
  return boxes.join("");
}

function rates(data) {
  return data.start.map((start, s) => (data.end[s] > start ? data.count[s] / (data.end[s] - start) : null));
}

// Letters of the labels beside the timeline; the heat map below it has the same axis of time.
export function longestOf(timed) {
  return Math.max(3, ...(timed.length > 1 ? timed.map((one) => one.label.length) : []));
}

// Where each of several series is drawn: of more than four, each on a lane of its own (as in latencykit/plot/timeline_chart.py).
const FEW = 4;

function laneOf(plot, k, of) {
  const height = (plot.bottom - plot.top) / of;
  return of > FEW ? { ...plot, top: plot.top + k * height + 2, bottom: plot.top + (k + 1) * height } : plot;
}

export function drawTimeline(page) {
  const host = page.hosts.timeline, timed = page.series.filter((one) => one.data && !one.derived);
  const shown = timed.filter((one) => !one.hidden), single = timed.length === 1;
  const values = timed.flatMap((one) => [50, 99, 100].flatMap((p) => [...new Set([one.coarse, one.data])].flatMap((data) => overTime(data)[p].flatMap((row) => (row ? [row.value] : [])))));
  if (!values.length) return "No request was answered, so there is nothing to draw over time.";
  const lanes = shown.length > FEW ? 29 * shown.length : 0;
  const { root, box } = frame(host, Math.max(heightOf(host), lanes) + 76, "Time series: maximum, p99 and median of each time bin; the table below has the numbers of a selection", longestOf(timed));
  root.classList.add("brushed");
  const plot = { ...box, bottom: box.bottom - 76 }, strip = { ...box, top: plot.bottom + 30, bottom: box.bottom };
  const x = linear(...page.view(), box.left, box.right), inside = clipped(root, box);
  const [low, high] = extent(values);
  const above = lanes || page.linear ? 1.1 : 1.8, scaleOf = (lane) => valueScale(page, low / 1.3, high * above, lane.bottom, lane.top);
  shown.forEach((_, k) => {
    const lane = laneOf(plot, k, shown.length);
    if (!k) valueAxis(root, lane, scaleOf(lane), page.model.unit);
    else if (lanes) root.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: lane.top - 2, y2: lane.top - 2 }));
  });
  timeAxis(root, strip, x, page);
  let free = plot.left;
  for (const stall of page.model.stalls) if (stall.end >= x.low && stall.start <= x.high) free = shade(inside, root, plot, strip, x, stall, free);
  page.find("stall-key").hidden = !page.model.stalls.length;
  const labels = [];
  shown.forEach((one, k) => {
    const found = overTime(one.data), lane = laneOf(plot, k, shown.length), y = scaleOf(lane);
    const lines = single ? ONE : [[100, "", `${one.cls} faint`], [99, one.label, one.cls]];
    for (const [percentile, text, cls] of lines) {
      const rows = found[percentile], sure = rows.map((row) => (row && (row.resolved || row.open) ? row.value : null));
      const ranges = rangePath(one.data, rows, x, y);
      if (ranges) inside.append(svg("path", { class: `range ${cls}`, d: ranges }));
      inside.append(svg("path", { class: `line ${cls}`, d: stepPath(one.data, sure, x, y) }));
      if (percentile === 99 && !single && !lanes)
        symbols(inside, one, page.series.indexOf(one), x, (time) => {
          const value = sure[slotAt(one.data, time)];
          return Number.isFinite(value) ? y.to(value) : null;
        });
      const last = lanes ? -1 : lastInView(one.data, rows, x, timed.length > 1);
      if (text && lanes) labels.push({ text, y: (lane.top + lane.bottom) / 2, cls }); // a shorter run has its name, too
      else if (text && last >= 0) labels.push({ text, y: y.to(rows[last].value), cls });
    }
  });
  if (lanes || labels.length <= (box.narrow ? 4 : 16)) endLabels(root, labels, plot);
  drawRates(root, inside, strip, x, shown, timed);
  if (page.values) drawWhen(page, inside, plot, x, shown);
  page.timeline = { x, plot: { ...plot, bottom: strip.bottom }, root, inside, brush: svg("rect", { class: "brush", y: plot.top, height: strip.bottom - plot.top }) };
  inside.append(page.timeline.brush);
  root.append(catchBrush(page));
  drawBrush(page);
  host.replaceChildren(root);
}

// A stall in grey; its label where the one before leaves room.
function shade(inside, root, plot, strip, x, stall, free) {
  const left = x.to(stall.start), right = Math.max(x.to(stall.end), left + 1);
  inside.append(svg("rect", { class: "stall", x: left, y: plot.top, width: right - left, height: strip.bottom - plot.top }));
  const half = stall.label.length * 3.2, middle = Math.min(Math.max((left + right) / 2, plot.left + half), plot.right - half);
  if (!stall.label || middle - half < free) return free;
  root.append(svg("text", { class: "tick", x: middle, y: plot.top - 3, "text-anchor": "middle" }, stall.label));
  return middle + half + 8;
}

function drawRates(root, inside, strip, x, shown, timed) {
  const top = timed.flatMap((one) => rates(one.data)).reduce((most, rate) => Math.max(most, rate), 1e-9);
  const y = linear(0, top, strip.bottom, strip.top);
  root.append(svg("text", { class: "tick", x: strip.left - 6, y: strip.top + 8, "text-anchor": "end" }, `${Number(top.toPrecision(2)).toLocaleString("en-US", { notation: top < 1e4 ? "standard" : "compact" })}/s`));
  root.append(svg("text", { class: "tick", x: strip.left - 6, y: strip.bottom + 3, "text-anchor": "end" }, "0"));
  for (const one of shown) {
    const values = rates(one.data), cls = timed.length === 1 ? "rate" : `faint ${one.cls}`;
    inside.append(svg("path", { class: `line thin ${cls}`, d: stepPath(one.data, values, x, { to: y.to }) }));
    if (!one.data.failed) continue;
    const failed = one.data.failed.map((n, s) => (n ? n / Math.max(1e-9, one.data.end[s] - one.data.start[s]) : null));
    inside.append(svg("path", { class: "line thin late", d: stepPath(one.data, failed, x, { to: (v) => y.to(Math.min(v, top)) }) }));
  }
}

// Requests of each bin in a range of latencies.
export function countsOf(data, [low, high]) {
  return data.start.map((_, s) => countWithin(data, s, low, high));
}

// When the chosen latencies happened: bins that have some, the stronger the more.
function drawWhen(page, inside, plot, x, shown) {
  shown.forEach((one, k) => {
    const lane = laneOf(plot, k, shown.length), height = lane.bottom - lane.top;
    const counts = countsOf(one.data, page.values), top = counts.reduce((a, b) => Math.max(a, b), 1);
    counts.forEach((count, s) => {
      if (!count) return;
      const left = x.to(one.data.start[s]), width = Math.max(1.5, x.to(one.data.end[s]) - left), opacity = 0.15 + 0.35 * (count / top);
      inside.append(svg("rect", { class: `when ${one.cls}`, x: left, y: lane.top, width, height, "fill-opacity": opacity.toFixed(2) }));
    });
  });
}

// ---------------------------------------------------------------- the brush

export function drawBrush(page) {
  if (!page.timeline) return;
  const { x, brush } = page.timeline;
  if (!page.span) return brush.setAttribute("visibility", "hidden");
  setAll(brush, { x: x.to(page.span[0]), width: Math.max(1.5, x.to(page.span[1]) - x.to(page.span[0])), visibility: "visible" });
}

// What a drag would do: resize at an end of the selection, move it, or begin another.
function grip(page, event) {
  if (!page.span) return { cursor: "crosshair" };
  const { x, plot, root } = page.timeline, at = event.clientX - root.getBoundingClientRect().left, [left, right] = page.span.map(x.to);
  const near = event.pointerType === "mouse" ? 6 : 18;
  if (Math.abs(at - right) <= near) return { fixed: page.span[0], cursor: "ew-resize" };
  if (Math.abs(at - left) <= near) return { fixed: page.span[1], cursor: "ew-resize" };
  // One that fills what is shown has nowhere to go: a drag selects within it.
  const fills = left <= plot.left + 1 && right >= plot.right - 1;
  if (at > left && at < right && !fills) return { moving: page.span, cursor: "grab" };
  return { cursor: "crosshair" };
}

// What takes the pointer; it stays the same element while a selection is made, so that two clicks are a double click.
function catchBrush(page) {
  const { x, plot, root } = page.timeline;
  const area = svg("rect", { class: "catch", x: plot.left, y: plot.top, width: plot.right - plot.left, height: plot.bottom - plot.top });
  const time = (event) => x.back(event.clientX - root.getBoundingClientRect().left);
  let drag = null;
  area.addEventListener("pointerdown", (event) => {
    if (drag || !event.isPrimary || event.button !== 0) return;
    drag = { began: time(event), pixel: event.clientX, moved: false, before: page.span, ...grip(page, event) };
    page.tip.hide();
    area.setPointerCapture(event.pointerId);
  });
  area.addEventListener("pointermove", (event) => {
    if (!drag) {
      if (event.buttons) return;
      area.style.cursor = grip(page, event).cursor;
      tipTime(page, event, time(event));
      return;
    }
    if (!event.isPrimary) return;
    drag.moved ||= Math.abs(event.clientX - drag.pixel) > 3;
    if (!drag.moved) return;
    if (drag.moving) page.slide(drag.moving, time(event) - drag.began);
    else page.preview(drag.fixed ?? drag.began, time(event));
  });
  area.addEventListener("pointerup", (event) => {
    if (!drag || !event.isPrimary) return;
    const { began, moved, fixed, moving } = drag;
    drag = null;
    if (!moved) page.drop(began, began);
    else if (moving) page.slide(moving, time(event) - began);
    else page.drop(fixed ?? began, time(event));
  });
  // The browser took the touch for itself, to scroll: what was selected before still is.
  area.addEventListener("pointercancel", (event) => {
    if (!drag || !event.isPrimary) return;
    const { before } = drag;
    drag = null;
    page.select(before);
  });
  // A second finger: both zoom.
  page.letGo = () => {
    const before = drag && { span: drag.before };
    drag = null;
    if (before) page.select(before.span);
  };
  area.addEventListener("dblclick", () => (page.select(null), page.zoom(null)));
  // With the control key, as a pinch on a touchpad sends it; without, the page scrolls.
  area.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    page.zoomAround(time(event), Math.exp(Math.min(100, Math.max(-100, event.deltaY)) / 150));
  });
  area.addEventListener("pointerleave", page.tip.hide);
  return area;
}

// Two fingers zoom: the moments that they touched stay under them.
export function wirePinch(page) {
  const host = page.hosts.timeline, fingers = new Map();
  if (!host) return;
  let held = null, due = 0;
  const zoom = () => {
    if (!held || !page.timeline) return;
    const [[a, first], [b, second]] = held, { plot, root } = page.timeline, left = root.getBoundingClientRect().left;
    const rate = (second - first) / (fingers.get(b) - fingers.get(a));
    if (rate > 0 && Number.isFinite(rate)) page.zoom([plot.left, plot.right].map((at) => first + (at + left - fingers.get(a)) * rate));
  };
  host.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch" || fingers.size === 2 || !page.timeline) return;
    fingers.set(event.pointerId, event.clientX);
    if (fingers.size < 2) return;
    page.letGo();
    const { x, root } = page.timeline, left = root.getBoundingClientRect().left;
    held = [...fingers].map(([id, at]) => [id, x.back(at - left)]);
  });
  const move = (event) => {
    if (!fingers.has(event.pointerId)) return;
    fingers.set(event.pointerId, event.clientX);
    cancelAnimationFrame(due);
    due = requestAnimationFrame(zoom);
  };
  const end = (event) => fingers.delete(event.pointerId) && (held = null);
  // The picture is drawn anew as it zooms, so that a finger's events may end at another element.
  for (const [name, act] of [["pointermove", move], ["pointerup", end], ["pointercancel", end]]) {
    document.addEventListener(name, act);
    page.observers.push(() => document.removeEventListener(name, act));
  }
}

export function slotAt(data, time) {
  const s = data.start.findLastIndex((start) => start <= time);
  return s >= 0 && time <= data.end[s] ? s : -1;
}

function tipTime(page, event, time) {
  const rows = [];
  for (const one of page.series) {
    const s = one.data && !one.derived && !one.hidden ? slotAt(one.data, time) : -1;
    if (s < 0 || !one.data.count[s]) continue;
    const found = overTime(one.data), write = (p) => (found[p][s] ? rowText(found[p][s], page.model.unit) : "too few");
    rows.push({ cls: one.cls, mark: one.mark, text: `${one.short}: ${grouped(one.data.count[s])} requests` });
    rows.push({ text: `p50 ${write(50)} · p99 ${write(99)} · max ${write(100)}` });
  }
  const epoch = page.model.epoch;
  const title = `${durationText(Math.round(time * 1000) / 1000)}${epoch ? ` · ${clockText(Math.floor(time), epoch)}` : ""}`;
  page.tip.show(event, title, rows.length ? rows : [{ text: "no requests here" }]);
}
