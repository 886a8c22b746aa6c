// Time × latency: the share of each slot's requests in rows of equal height on the logarithmic axis.

const ROWS = 56;

function drawHeat(page) {
  const host = page.hosts.heat, timed = page.series.filter((one) => one.data && !one.shadow);
  const one = timed.find((series) => series.name === page.heat) || timed[0], data = one.data;
  const { root, box } = frame(host, box0(host), page.model.words.heat);
  const x = linear(page.edges[0], page.edges[page.edges.length - 1], box.left, box.right);
  const [low, high] = extent([...data.low, ...data.max]);
  const y = logarithmic(low / 1.02, high * 1.1, box.bottom, box.top);
  timeAxis(root, box, x, page.model.words.clock);
  valueAxis(root, box, y, page.model.unit);
  root.append(svg("path", { class: "line worst thin", d: stepPath(data, data.max, x, y) }));
  if (!box.narrow) {
    const last = data.max.findLast((value) => value !== null);
    endLabels(root, box.right + 6, [{ text: "max", y: y.to(last), cls: "worst" }], box);
  }
  const canvas = heatCanvas(data, box, x, y);
  const area = svg("rect", { class: "catch hover", x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top });
  const row = (py) => Math.floor(((box.bottom - py) / (box.bottom - box.top)) * ROWS);
  area.addEventListener("pointermove", (event) => tipHeat(page, event, data, x, y, row, root));
  area.addEventListener("pointerleave", tip.hide);
  root.append(area);
  host.replaceChildren(canvas, root);
}

function rowOf(value, y, box) {
  return Math.min(ROWS - 1, Math.max(0, Math.floor(((box.bottom - y.to(value)) / (box.bottom - box.top)) * ROWS)));
}

function heatCells(data, box, y) {
  const cells = new Float64Array(data.start.length * ROWS);
  const rows = Array.from(data.low, (low, k) => rowOf(Math.sqrt(Math.max(low, 1e-9) * data.high[k]), y, box));
  for (let s = 0; s < data.start.length; s++)
    for (let k = data.from[s]; k < data.from[s + 1]; k++) cells[s * ROWS + rows[data.index[k]]] += data.counts[k] / data.count[s];
  return cells;
}

function heatCanvas(data, box, x, y) {
  const ratio = Math.min(3, window.devicePixelRatio || 1), canvas = el("canvas", { "aria-hidden": "true" });
  canvas.width = box.width * ratio;
  canvas.height = box.height * ratio;
  canvas.style.width = `${box.width}px`;
  canvas.style.height = `${box.height}px`;
  const context = canvas.getContext("2d"), cells = heatCells(data, box, y);
  const ramp = getComputedStyle(document.documentElement).getPropertyValue("--heat").split(",").map((part) => part.trim().split(" "));
  const positive = cells.filter((share) => share > 0), top = Math.max(...positive), bottom = Math.max(top * 1e-6, Math.min(...positive));
  const height = (box.bottom - box.top) / ROWS;
  context.scale(ratio, ratio);
  for (let s = 0; s < data.start.length; s++) {
    const left = x.to(data.start[s]), right = Math.max(left + 1, x.to(data.end[s]));
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

function tipHeat(page, event, data, x, y, row, root) {
  const place = root.getBoundingClientRect(), s = slotAt(data, x.back(event.clientX - place.left));
  if (s < 0 || !data.count[s]) return tip.hide();
  const middle = y.back(event.clientY - place.top), at = row(event.clientY - place.top);
  let inside = 0;
  for (let k = data.from[s]; k < data.from[s + 1]; k++) {
    const value = Math.sqrt(Math.max(data.low[data.index[k]], 1e-9) * data.high[data.index[k]]);
    if (row(y.to(value)) === at) inside += data.counts[k];
  }
  const text = `${grouped(inside)} of ${grouped(data.count[s])} requests near ${valueText(middle, page.model.unit, 2)}`;
  tip.show(event, `${durationText(data.start[s])} to ${durationText(data.end[s])}`, [{ text }]);
}
