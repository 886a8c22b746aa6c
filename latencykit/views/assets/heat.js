// Time × latency: the share of each slot's requests in rows of equal height on the logarithmic axis.

import { grouped, secondsText, valueText } from "./numbers.js";
import { distribution, isResolved, rowAt } from "./data.js";
import { clipped, drawRange, el, endLabels, extent, frame, heightOf, linear, logarithmic, setAll, svg, timeAxis, valueAxis } from "./draw.js";
import { lastInView, longestOf, slotAt, stepPath } from "./timeline.js";

const ROWS = 56;

export function drawHeat(page) {
  const host = page.hosts.heat, timed = page.series.filter((one) => one.data && !one.derived);
  const one = timed.find((series) => series.name === page.heat) || timed[0], data = one && one.data;
  if (!data || !data.low.length) return "No request was answered, so there is nothing to draw over time.";
  const { root, box } = frame(host, heightOf(host), "Heat map: the share of each time bin's requests by latency", longestOf(timed));
  const x = linear(...page.view(), box.left, box.right);
  const top = data.max.reduce((a, b) => Math.max(a, b), 0), [low, high] = extent([...data.low, ...data.high.map((edge) => Math.min(edge, top))]);
  const y = logarithmic(low / 1.02, high * 1.1, box.bottom, box.top);
  timeAxis(root, box, x, page);
  valueAxis(root, box, y, page.model.unit);
  clipped(root, box).append(svg("path", { class: "line worst thin", d: stepPath(data, data.max, x, y) }));
  const last = lastInView(data, data.max, x, timed.length > 1), labels = last < 0 || data.timeouts ? [] : [{ text: "max", y: y.to(data.max[last]), cls: "worst" }];
  const canvas = heatCanvas(page, data, box, x, y);
  const area = svg("rect", { class: "catch hover", x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top });
  const follow = (event) => tipHeat(page, event, data, x, y, box, root);
  drawRange(root, page.values, y, box);
  const mark = svg("rect", { class: "brush", visibility: "hidden" }), place = (event) => {
    const at = root.getBoundingClientRect();
    return [event.clientX - at.left, event.clientY - at.top];
  };
  const region = ([x0, y0], [x1, y1]) => {
    page.drop(x.back(x0), x.back(x1));
    page.choose([y.back(Math.max(y0, y1)), y.back(Math.min(y0, y1))]);
  };
  page.heatAt = { data, x, y, box, root, region, follow };
  let from = null;
  area.addEventListener("pointerdown", (event) => {
    follow(event);
    if (!event.isPrimary || event.button !== 0) return;
    from = place(event);
    area.setPointerCapture(event.pointerId);
  });
  area.addEventListener("pointermove", (event) => {
    if (from === null) return follow(event);
    const to = place(event);
    page.tip.hide();
    setAll(mark, { x: Math.min(from[0], to[0]), y: Math.min(from[1], to[1]), width: Math.abs(to[0] - from[0]), height: Math.abs(to[1] - from[1]), visibility: "visible" });
  });
  area.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const [[x0, y0], [x1, y1]] = [from, place(event)];
    from = null;
    mark.setAttribute("visibility", "hidden");
    if (Math.abs(x1 - x0) < 4 && Math.abs(y1 - y0) < 4) return page.values ? page.choose(null) : null;
    region([x0, y0], [x1, y1]);
  });
  area.addEventListener("pointercancel", () => ((from = null), mark.setAttribute("visibility", "hidden")));
  area.addEventListener("pointerleave", page.tip.hide);
  endLabels(root, labels, box);
  root.append(mark, area, svg("rect", { class: "cell", visibility: "hidden" }));
  host.replaceChildren(canvas, root);
}

// Arrow keys walk from cell to cell; with the shift key they choose a region of time and latency.
export function walkHeat(page, event) {
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  if (!step || !page.heatAt) return;
  event.preventDefault();
  const { data, x, box } = page.heatAt, first = Math.max(0, data.start.findIndex((_, s) => data.end[s] > x.low));
  const last = Math.max(first, data.start.findLastIndex((start) => start < x.high)), clamp = (at, low, high) => Math.min(high, Math.max(low, at));
  if (!page.cell) {
    // The median in the middle of what is shown, or in the next bin that has one.
    const own = Math.max(first, data.count.findIndex((count, k) => count && k >= (first + last) >> 1));
    page.cell = [own, data.count[own] ? rowOf(rowAt(distribution(data, own, own + 1), 50).value, page.heatAt.y, box) : ROWS >> 1];
  }
  const [s, row] = page.cell, cell = [clamp(s + step[0], first, last), clamp(row + step[1], 0, ROWS - 1)];
  const height = (box.bottom - box.top) / ROWS, pixels = ([at, r]) => [x.to((data.start[at] + data.end[at]) / 2), box.bottom - (r + 0.5) * height];
  page.corner = event.shiftKey ? page.corner || [s, row] : null;
  page.cell = cell;
  const own = pixels(cell);
  if (page.corner) {
    // To the outer edges of both cells.
    const other = pixels(page.corner), down = (at) => (at === Math.max(own[1], other[1]) ? 0.5 : -0.5) * height, alike = own[1] === other[1];
    page.heatAt.region([own[0], own[1] + (alike ? 0.5 * height : down(own[1]))], [other[0], other[1] + (alike ? -0.5 * height : down(other[1]))]);
  }
  const from = page.heatAt.root.getBoundingClientRect(), scale = from.width / box.width || 1; // as drawn now
  const words = page.heatAt.follow({ clientX: from.left + own[0] * scale, clientY: from.top + own[1] * scale });
  const left = x.to(data.start[cell[0]]), width = Math.max(3, x.to(data.end[cell[0]]) - left);
  setAll(page.heatAt.root.querySelector(".cell"), { x: left, y: own[1] - height / 2, width, height, visibility: "visible" });
  if (words && !page.corner) page.say(words);
}

function rowOf(value, y, box) {
  return Math.min(ROWS - 1, Math.max(0, Math.floor(((box.bottom - y.to(value)) / (box.bottom - box.top)) * ROWS)));
}

// The first and the last row that each bucket reaches into: a narrow one lies in one, by its middle.
function rowsOf(data, box, y) {
  return Array.from(data.low, (low, k) => {
    if (!isResolved(low, data.high[k])) return [rowOf(low, y, box), rowOf(data.high[k], y, box)];
    const row = rowOf(Math.sqrt(Math.max(low, 1e-9) * data.high[k]), y, box);
    return [row, row];
  });
}

function heatCells(data, rows) {
  const cells = new Float64Array(data.start.length * ROWS);
  for (let s = 0; s < data.start.length; s++)
    for (let k = data.from[s]; k < data.from[s + 1]; k++) {
      const [first, last] = rows[data.index[k]], share = data.counts[k] / data.count[s] / (last - first + 1);
      for (let r = first; r <= last; r++) cells[s * ROWS + r] += share;
    }
  return cells;
}

function heatCanvas(page, data, box, x, y) {
  const ratio = Math.min(3, window.devicePixelRatio || 1), canvas = el("canvas", { "aria-hidden": "true" });
  canvas.width = box.width * ratio;
  canvas.height = box.height * ratio;
  const context = canvas.getContext("2d"), legend = page.root.querySelector(".ramp"), cells = heatCells(data, rowsOf(data, box, y));
  const ramp = getComputedStyle(page.host).getPropertyValue("--heat").split(",").map((part) => part.trim().split(" "));
  if (legend) legend.style.background = `linear-gradient(90deg, ${ramp.map((rgb) => `rgb(${rgb.join(" ")})`)})`;
  const positive = cells.filter((share) => share > 0), top = positive.reduce((a, b) => Math.max(a, b), 0);
  const bottom = Math.max(top * 1e-6, positive.reduce((a, b) => Math.min(a, b), top));
  const height = (box.bottom - box.top) / ROWS;
  context.scale(ratio, ratio);
  for (let s = 0; s < data.start.length; s++) {
    const left = Math.max(box.left, x.to(data.start[s])), right = Math.min(box.right, Math.max(left + 1, x.to(data.end[s])));
    if (right <= left) continue;
    for (let r = 0; r < ROWS; r++) {
      const share = cells[s * ROWS + r];
      if (!share) continue;
      context.fillStyle = mixed(ramp, Math.log(Math.max(share, bottom) / bottom) / (Math.log(top / bottom) || 1));
      context.fillRect(left, box.bottom - (r + 1) * height, right - left + 0.3, height + 0.3);
    }
  }
  return canvas;
}

function mixed(ramp, share) {
  const at = Math.min(share, 0.9999) * (ramp.length - 1), k = Math.floor(at), rest = at - k;
  const part = (c) => Math.round(Number(ramp[k][c]) * (1 - rest) + Number(ramp[k + 1][c]) * rest);
  return `rgb(${part(0)} ${part(1)} ${part(2)})`;
}

function tipHeat(page, event, data, x, y, box, root) {
  const place = root.getBoundingClientRect(), time = x.back(event.clientX - place.left), s = slotAt(data, time);
  if (s < 0 || !data.count[s]) {
    page.tip.show(event, secondsText(Number(time.toFixed(3))), [{ text: "no requests here" }]);
    return "no requests here";
  }
  const middle = y.back(event.clientY - place.top), at = rowOf(middle, y, box), rows = rowsOf(data, box, y);
  let inside = 0, spread = false;
  for (let k = data.from[s]; k < data.from[s + 1]; k++) {
    const [first, last] = rows[data.index[k]];
    if (at < first || at > last) continue;
    inside += data.counts[k] / (last - first + 1);
    spread ||= last > first;
  }
  const text = `${spread ? "about " : ""}${grouped(inside)} of ${grouped(data.count[s])} requests near ${valueText(middle, page.model.unit, 2)}`;
  const title = `${secondsText(Number(data.start[s].toFixed(6)))} to ${secondsText(Number(data.end[s].toFixed(6)))}`;
  page.tip.show(event, title, [{ text }]);
  return `${title}: ${text}`;
}
