// The course over time: maximum, p99 and median of each slot as steps, gaps as gaps, the rate underneath; and the brush.

const ONE = [[100, "max", "worst"], [99, "p99", "late"], [50, "p50", "half"]];

function course(data) {
  if (data.course) return data.course;
  const found = { 50: [], 99: [], 100: data.max };
  for (let s = 0; s < data.start.length; s++) {
    const first = data.from[s], last = data.from[s + 1];
    for (const percentile of [50, 99]) {
      const rank = rankOf(percentile, data.count[s]);
      let below = 0, value = null;
      for (let k = first; k < last && value === null; k++) {
        below += data.counts[k];
        if (below >= rank) value = Math.min(data.high[data.index[k]], data.max[s]);
      }
      found[percentile].push(value);
    }
  }
  data.course = found;
  return found;
}

function gaps(data) {
  const lengths = data.start.map((start, s) => data.end[s] - start).sort((a, b) => a - b);
  const slack = 0.05 * (lengths[lengths.length >> 1] || 0) + 2e-3;
  return data.start.map((_, s) => s + 1 < data.start.length && data.start[s + 1] - data.end[s] > slack);
}

function stepPath(data, values, x, y) {
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

function rates(data) {
  return data.start.map((start, s) => (data.end[s] > start ? data.count[s] / (data.end[s] - start) : null));
}

function drawTimeline(page) {
  const host = page.hosts.timeline, timed = page.series.filter((one) => one.data && !one.shadow);
  const shown = timed.filter((one) => !one.hidden), single = timed.length === 1;
  const { root, box } = frame(host, box0(host) + 76, page.model.words.timeline);
  const plot = { ...box, bottom: box.bottom - 76 }, strip = { ...box, top: plot.bottom + 30, bottom: box.bottom };
  const x = linear(page.edges[0], page.edges[page.edges.length - 1], box.left, box.right);
  const [low, high] = extent(timed.flatMap((one) => [...one.data.max, ...course(one.data)[50]]));
  const y = logarithmic(low / 1.3, high * 1.8, plot.bottom, plot.top);
  valueAxis(root, plot, y, page.model.unit);
  timeAxis(root, strip, x, page.model.words.clock);
  let free = plot.left;
  for (const stall of page.model.stalls) free = shade(root, plot, strip, x, stall, free);
  const labels = [];
  for (const one of shown) {
    const found = course(one.data);
    const lines = single ? ONE : [[100, "", `${one.cls} faint`], [99, one.name, one.cls]];
    for (const [percentile, text, cls] of lines) {
      root.append(svg("path", { class: `line ${cls} ${single ? "" : one.dash}`, d: stepPath(one.data, found[percentile], x, y) }));
      const last = found[percentile].findLast((value) => value !== null);
      if (text && last !== undefined) labels.push({ text: cut(text, 13), y: y.to(last), cls });
    }
  }
  if (!box.narrow && labels.length <= 6) endLabels(root, box.right + 6, labels, plot);
  drawRates(root, strip, x, shown, timed);
  page.timeline = { x, plot: { ...plot, bottom: strip.bottom }, root };
  drawBrush(page);
  host.replaceChildren(root);
}

function box0(host) {
  return host.clientWidth < 560 ? 250 : 300;
}

function cut(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

// A stall in grey; its label where the one before leaves room.
function shade(root, plot, strip, x, stall, free) {
  const left = x.to(stall.start), right = Math.max(x.to(stall.end), left + 1);
  root.append(svg("rect", { class: "stall", x: left, y: plot.top, width: right - left, height: strip.bottom - plot.top }));
  const half = stall.label.length * 3.2, middle = Math.min(Math.max((left + right) / 2, plot.left + half), plot.right - half);
  if (!stall.label || middle - half < free) return free;
  root.append(svg("text", { class: "tick", x: middle, y: plot.top - 3, "text-anchor": "middle" }, stall.label));
  return middle + half + 8;
}

function drawRates(root, strip, x, shown, timed) {
  const top = Math.max(1e-9, ...timed.flatMap((one) => rates(one.data)).filter((rate) => rate !== null));
  const y = linear(0, top, strip.bottom, strip.top);
  root.append(svg("text", { class: "tick", x: strip.left - 6, y: strip.top + 8, "text-anchor": "end" }, `${Number(top.toPrecision(2)).toLocaleString("en-US")}/s`));
  root.append(svg("text", { class: "tick", x: strip.left - 6, y: strip.bottom + 3, "text-anchor": "end" }, "0"));
  for (const one of shown) {
    const values = rates(one.data), cls = timed.length === 1 ? "rate" : `faint ${one.cls}`;
    root.append(svg("path", { class: `line thin ${cls}`, d: stepPath(one.data, values, x, { to: y.to }) }));
    if (!one.data.failed) continue;
    const failed = one.data.failed.map((n, s) => (n ? n / Math.max(1e-9, one.data.end[s] - one.data.start[s]) : null));
    root.append(svg("path", { class: "line thin worst", d: stepPath(one.data, failed, x, { to: (v) => y.to(Math.min(v, top)) }) }));
  }
}

// ---------------------------------------------------------------- the brush

function drawBrush(page) {
  const { x, plot, root } = page.timeline;
  root.querySelectorAll(".brush,.catch").forEach((node) => node.remove());
  if (page.span) {
    const left = x.to(page.span[0]), right = x.to(page.span[1]);
    const size = { y: plot.top, height: plot.bottom - plot.top };
    root.append(svg("rect", { class: "brush", x: left, width: Math.max(1.5, right - left), ...size }));
  }
  const area = svg("rect", { class: "catch", x: plot.left, y: plot.top, width: plot.right - plot.left, height: plot.bottom - plot.top });
  root.append(area);
  catchBrush(page, area);
}

function catchBrush(page, area) {
  const time = (event) => page.timeline.x.back(event.clientX - page.timeline.root.getBoundingClientRect().left);
  area.addEventListener("pointerdown", (event) => {
    const began = time(event), pixel = event.clientX;
    tip.hide();
    area.setPointerCapture(event.pointerId);
    const move = (now) => {
      if (Math.abs(now.clientX - pixel) > 3) page.preview(began, time(now));
    };
    const done = (now) => {
      area.removeEventListener("pointermove", move);
      if (now.type === "pointercancel") page.select(null);
      else page.drop(began, Math.abs(now.clientX - pixel) > 3 ? time(now) : began);
    };
    area.addEventListener("pointermove", move);
    area.addEventListener("pointerup", done, { once: true });
    area.addEventListener("pointercancel", done, { once: true });
  });
  area.addEventListener("dblclick", () => page.select(null));
  area.addEventListener("pointermove", (event) => {
    if (!event.buttons) tipTime(page, event, time(event));
  });
  area.addEventListener("pointerleave", tip.hide);
}

function slotAt(data, time) {
  const s = data.start.findLastIndex((start) => start <= time);
  return s >= 0 && time <= data.end[s] ? s : -1;
}

function tipTime(page, event, time) {
  const rows = [];
  for (const one of page.series) {
    const s = one.data && !one.shadow && !one.hidden ? slotAt(one.data, time) : -1;
    if (s < 0 || !one.data.count[s]) continue;
    const found = course(one.data), write = (p) => valueText(found[p][s], page.model.unit);
    rows.push({ cls: one.cls, text: `${one.name}: ${grouped(one.data.count[s])} requests` });
    rows.push({ text: `p50 ${write(50)} · p99 ${write(99)} · max ${write(100)}` });
  }
  const epoch = page.model.epoch;
  const title = `${durationText(Math.round(time * 1000) / 1000)}${epoch ? ` · ${clockText(Math.floor(time), epoch)}` : ""}`;
  tip.show(event, title, rows.length ? rows : [{ text: "nothing was counted here" }]);
}
