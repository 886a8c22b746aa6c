// Plots as SVG elements; every text goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  return filled(made, attributes, children);
}

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  return filled(made, attributes, children);
}

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// An axis from data to pixels: `to` there, `back` again.
function linear(low, high, first, last) {
  const factor = (last - first) / (high - low || 1);
  return { low, high, to: (v) => first + (v - low) * factor, back: (x) => low + (x - first) / factor };
}

// Values that cannot be placed on a logarithm (zeros) stand on the lower end.
function logarithmic(low, high, first, last) {
  const inner = linear(Math.log10(low), Math.log10(high), first, last);
  return { low, high, to: (v) => inner.to(Math.log10(Math.max(v, low))), back: (y) => 10 ** inner.back(y) };
}

function frame(host, height, label) {
  const width = Math.max(260, Math.floor(host.clientWidth));
  const narrow = width < 560;
  const box = { left: narrow ? 50 : 62, right: width - (narrow ? 14 : 124), top: 14, bottom: height - 40, width, height, narrow };
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  return { root, box };
}

function valueAxis(root, box, scale, unit) {
  const ticks = logTicks(scale.low, scale.high), every = Math.ceil(ticks.length / Math.max(2, (box.bottom - box.top) / 26));
  ticks.forEach((value, k) => {
    if (k % every) return;
    const y = scale.to(value);
    root.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y, y2: y }));
    root.append(svg("text", { class: "tick", x: box.left - 6, y: y + 4, "text-anchor": "end" }, valueText(value, unit)));
  });
  root.append(svg("line", { class: "axis", x1: box.left, x2: box.left, y1: box.top, y2: box.bottom }));
}

function timeAxis(root, box, scale, name) {
  const [size, word] = timeUnit(scale.high - scale.low);
  for (const at of timeTicks(scale.low, scale.high, Math.max(3, (box.right - box.left) / 90))) {
    const x = scale.to(at);
    root.append(svg("line", { class: "grid", x1: x, x2: x, y1: box.top, y2: box.bottom }));
    root.append(svg("text", { class: "tick", x, y: box.bottom + 16, "text-anchor": "middle" }, plain(at / size, 6)));
  }
  root.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  const middle = (box.left + box.right) / 2;
  root.append(svg("text", { class: "name", x: middle, y: box.bottom + 33, "text-anchor": "middle" }, `${word} ${name}`));
}

// Labels at the right ends of lines, moved apart where they would overlap.
function endLabels(root, x, labels, box) {
  const sorted = labels.filter((one) => Number.isFinite(one.y)).sort((a, b) => a.y - b.y);
  let last = box.top - 10;
  for (const one of sorted) {
    one.at = Math.max(one.y + 4, last + 13);
    last = one.at;
  }
  let next = box.bottom + 8;
  for (const one of sorted.slice().reverse()) {
    one.at = Math.min(one.at, next);
    next = one.at - 13;
    root.append(svg("text", { class: `label ${one.cls}`, x, y: one.at }, one.text));
  }
}

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value === null || !(value > 0)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [1, 10];
}

// One tooltip for the page: a title and rows of swatch, name, value.
const tip = {
  node: el("div", { id: "tip", role: "presentation", hidden: "" }),
  show(event, title, rows) {
    tip.node.replaceChildren(el("b", {}, title));
    for (const row of rows) tip.node.append(el("div", {}, el("i", { class: `swatch ${row.cls || "none"}` }), row.text));
    tip.node.hidden = false;
    const box = tip.node.getBoundingClientRect(), room = document.documentElement.clientWidth;
    const x = event.clientX + 16 + box.width > room ? event.clientX - 16 - box.width : event.clientX + 16;
    tip.node.style.left = `${Math.max(4, x)}px`;
    tip.node.style.top = `${Math.max(4, event.clientY - box.height - 12)}px`;
  },
  hide() {
    tip.node.hidden = true;
  },
};

function say(text) {
  document.getElementById("spoken").textContent = text;
}
