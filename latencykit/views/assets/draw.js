// Plots as SVG elements; every text goes in as text, never as markup.

import { linearTicks, logTicks, timeTexts, timeTicks, valueText } from "./numbers.js";

const SVG = "http://www.w3.org/2000/svg";

export function el(name, attributes = {}, ...children) {
  const made = setAll(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

export function svg(name, attributes = {}, ...children) {
  const made = setAll(document.createElementNS(SVG, name), attributes);
  made.append(...children);
  return made;
}

export function setAll(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) node.setAttribute(key, value);
  return node;
}

// An axis from data to pixels: `to` there, `back` again.
export function linear(low, high, first, last) {
  const factor = (last - first) / (high - low || 1);
  return { low, high, to: (v) => first + (v - low) * factor, back: (x) => low + (x - first) / factor };
}

// Values that cannot be placed on a logarithm (zeros) stand on the lower end.
export function logarithmic(low, high, first, last) {
  const inner = linear(Math.log10(low), Math.log10(high), first, last);
  return { low, high, to: (v) => inner.to(Math.log10(Math.max(v, low))), back: (y) => 10 ** inner.back(y) };
}

// `longest` is the number of letters of the labels that stand to the right of it.
export function frame(host, height, label, longest) {
  const width = Math.max(260, Math.floor(widthOf(host)));
  const narrow = width < 500;
  const box = { left: narrow ? 56 : 62, right: width - (narrow ? 14 : 16 + 8 * longest), top: 14, bottom: height - 40, width, height, narrow };
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  return { root, box };
}

// Widths are read once until the layout changes: reading them after each change would lay the page out each time.
const widths = new WeakMap();

export function measureAgain(hosts) {
  for (const host of hosts) widths.delete(host);
}

function widthOf(host) {
  if (!widths.has(host)) widths.set(host, host.clientWidth);
  return widths.get(host);
}

export function heightOf(host) {
  return host.closest("[data-paper]") ? 215 : widthOf(host) < 500 ? 250 : 300; // on paper two fit below the heading
}

export function boxPath(left, right, bottom, top) {
  return `M${left.toFixed(1)} ${bottom.toFixed(1)}V${top.toFixed(1)}H${right.toFixed(1)}V${bottom.toFixed(1)}Z`;
}

// The axis of values: logarithmic, or linear from zero.
export function valueScale(page, low, high, first, last) {
  return page.linear ? { ...linear(0, high, first, last), linear: true } : logarithmic(low, high, first, last);
}

export function valueAxis(root, box, scale, unit) {
  const second = unit === "ns" ? 1e9 : Infinity, long = scale.high > 120 * second;
  const even = () => (long ? timeTicks(0, scale.high / second, 8).map((at) => at * second) : linearTicks(0, scale.high, 8));
  const ticks = scale.linear ? even() : logTicks(scale.low, scale.high, second), height = box.bottom - box.top, every = Math.ceil(ticks.length / Math.max(height / 26, Math.min(2, height / 13)));
  ticks.forEach((value, k) => {
    if (k % every) return;
    const y = scale.to(value);
    root.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y, y2: y }));
    root.append(svg("text", { class: "tick", x: box.left - 6, y: y + 4, "text-anchor": "end" }, valueText(value, unit)));
  });
  root.append(svg("line", { class: "axis", x1: box.left, x2: box.left, y1: box.top, y2: box.bottom }));
}

// A group that shows nothing beyond the axes; ids are of their own document or shadow root.
let clips = 0;

export function clipped(root, box) {
  const id = `clip-${(clips += 1)}`, { left: x, top: y } = box;
  root.append(svg("clipPath", { id }, svg("rect", { x, y: y - 2, width: box.right - x, height: box.bottom - y + 4 })));
  const group = svg("g", { "clip-path": `url(#${id})` });
  root.append(group);
  return group;
}

// A line of the grid from top to bottom, and the axis at the bottom with its name.
export function gridLine(root, box, x) {
  root.append(svg("line", { class: "grid", x1: x, x2: x, y1: box.top, y2: box.bottom }));
}

export function tickBelow(root, box, x, text) {
  root.append(svg("text", { class: "tick", x, y: box.bottom + 16, "text-anchor": "middle" }, text));
}

export function axisBelow(root, box, name) {
  root.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  root.append(svg("text", { class: "name", x: (box.left + box.right) / 2, y: box.bottom + 33, "text-anchor": "middle" }, name));
}

export function timeAxis(root, box, scale, page) {
  if (page.clock) return clockAxis(root, box, scale, page.model.epoch);
  const ticks = timeTicks(scale.low, scale.high, Math.max(3, (box.right - box.left) / 90)), texts = timeTexts(ticks);
  ticks.forEach((at, k) => {
    gridLine(root, box, scale.to(at));
    tickBelow(root, box, Math.min(scale.to(at), box.width - 3.4 * texts[k].length), texts[k]);
  });
  axisBelow(root, box, "time from the start");
}

// The same in universal time.
function clockAxis(root, box, scale, epoch) {
  const long = scale.high - scale.low > 86400 * 2, day = new Date((epoch + scale.low) * 1000).toISOString().slice(0, 10);
  for (const at of timeTicks(epoch + scale.low, epoch + scale.high, Math.max(2, (box.right - box.left) / 110))) {
    const x = scale.to(at - epoch), text = new Date(at * 1000).toISOString();
    gridLine(root, box, x);
    tickBelow(root, box, x, long ? text.slice(5, 16).replace("T", " ") : text.slice(11, 19));
  }
  axisBelow(root, box, `UTC, from ${day}`);
}

// A chosen range of latencies as a band across a picture.
export function drawRange(root, values, y, box) {
  if (!values) return;
  const [top, bottom] = [y.to(values[1]), y.to(Math.max(values[0], y.low))].map((at) => Math.min(box.bottom, Math.max(box.top, at)));
  root.append(svg("rect", { class: "chosen", x: box.left, y: top, width: box.right - box.left, height: Math.max(1.5, bottom - top) }));
}

// Labels at the right ends of lines, moved apart where they would overlap.
// On a narrow screen they stand inside the plot, above their lines.
export function endLabels(root, labels, box) {
  const x = box.narrow ? box.right - 4 : box.right + 6, anchor = box.narrow ? "end" : "start", rise = box.narrow ? -5 : 4;
  const sorted = labels.filter((one) => Number.isFinite(one.y)).sort((a, b) => a.y - b.y);
  let last = box.top - 10;
  for (const one of sorted) {
    one.at = Math.max(one.y + rise, last + 13);
    last = one.at;
  }
  let next = box.bottom + 8;
  for (const one of sorted.slice().reverse()) {
    one.at = Math.min(one.at, next);
    next = one.at - 13;
    root.append(svg("text", { class: `label ${one.cls}`, x, y: one.at, "text-anchor": anchor }, one.text));
  }
}

// A series beyond the colours has a symbol here and there along its line, at other places than the series before it. `at`
// returns the height of the line at a place of the axis, or null.
export function symbols(root, one, order, x, at) {
  const shape = SYMBOLS[one.mark], last = x.to(x.high);
  if (!shape) return;
  let path = "";
  for (let left = x.to(x.low) + 10 + 13 * (order % 6); left < last; left += 78) {
    const y = at(x.back(left));
    if (y !== null) path += `M${left.toFixed(1)} ${y.toFixed(1)}${shape}`;
  }
  root.append(svg("path", { class: `point ${one.cls}`, d: path }));
}

// A circle, a square and a triangle, each around where the pen is.
const SYMBOLS = { mark1: "m-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0 -6.8 0z", mark2: "m-3.1 -3.1h6.2v6.2h-6.2z", mark3: "m0 -4.2l4 7h-8z" };

export function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value === null || !(value > 0)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [1, 10];
}

// A tooltip: a title and rows of swatch, name, value.
export function tooltip() {
  const node = el("div", { id: "tip", role: "presentation", hidden: "" });
  const show = (event, title, rows) => {
    node.replaceChildren(el("b", {}, title));
    for (const row of rows) node.append(el("div", {}, el("i", { class: `swatch ${row.cls || "none"} ${row.mark || ""}` }), row.text));
    node.hidden = false;
    const box = node.getBoundingClientRect(), width = document.documentElement.clientWidth;
    const x = event.clientX + 16 + box.width > width ? event.clientX - 16 - box.width : event.clientX + 16;
    node.style.left = `${Math.max(4, x)}px`;
    node.style.top = `${Math.max(4, event.clientY - box.height - 12)}px`;
  };
  return { node, show, hide: () => (node.hidden = true) };
}
