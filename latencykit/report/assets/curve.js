// The percentile curve: nines to the right, values (logarithmic) upwards, the maximum at the end.

function spreadOf(one, span) {
  if (!one.data) return one.given || (one.given = one.curve && given(one.curve));
  const [first, last] = span ? slotsWithin(one.data, span) : [0, one.data.start.length];
  return distribution(one.data, first, last);
}

function slotsWithin(data, span) {
  const before = (time) => {
    const at = data.start.findIndex((start) => start >= time - 1e-9);
    return at < 0 ? data.start.length : at;
  };
  return [before(span[0]), before(span[1])];
}

// As many nines as the largest sample supports, and one more to show what it does not.
function ninesOf(page) {
  const totals = page.spreads.map((spread) => (spread ? (spread.count === null ? 1e5 : spread.total) : 0));
  const held = page.series.flatMap((one) => (one.points || []).map((point) => 10 ** Math.ceil(placeOf(Math.min(point[0], 99.9999)))));
  return Math.min(9, Math.max(2, Math.ceil(Math.log10(Math.max(100, ...totals, ...held)))));
}

function drawCurve(page) {
  const host = page.hosts.curve, { root, box } = frame(host, box0(host) + 110, page.model.words.curve);
  if (!page.nines) {
    page.nines = ninesOf(page);
    page.limits = extentOfCurves(page);
  }
  const x = linear(0, page.nines + 0.5, box.left, box.right), y = logarithmic(...page.limits, box.bottom, box.top);
  const live = page.series.map((one, k) => ({ one, spread: page.spreads[k] })).filter(({ one }) => !one.hidden);
  ground(root, box, x, live);
  valueAxis(root, box, y, page.model.unit);
  percentileAxis(root, box, x, page.nines);
  if (!page.span && live.length <= 3) for (const { one } of live) if (one.band) drawBand(root, one, x, y);
  drawSteps(root, page.model.slo, x, y, box, page.model.unit);
  const labels = [], told = [];
  for (const { one, spread } of live) {
    if (one.points) drawPoints(root, one, x, y, page.model.unit);
    if (!spread || !spread.value.length) continue;
    const weak = drawLine(page, root, one, spread, x, y);
    if (weak && one.rests && !page.span && live.length <= 3) tellRests(root, one, x.to(placeOf(one.solid)), y.to(weak[2]), box, told);
    const top = valueText(spread.top, page.model.unit);
    labels.push({ text: spread.bound === null ? `max ${top}` : `≥ ${top}`, y: y.to(spread.top), cls: one.cls });
  }
  if (!box.narrow) endLabels(root, box.right + 6, merged(labels), box);
  catchCurve(page, root, box, x, live);
  host.replaceChildren(root);
}

function merged(labels) {
  const seen = new Map();
  for (const one of labels) seen.set(one.text, seen.has(one.text) ? { ...one, cls: "" } : one);
  return [...seen.values()];
}

function extentOfCurves(page) {
  const values = page.spreads.flatMap((spread) => (spread ? [...spread.value, spread.top] : []));
  for (const one of page.series) {
    values.push(...(one.points || []).map((point) => point[1]));
    values.push(...(one.band || []).flatMap((row) => [row[1], row[2]]));
  }
  values.push(...page.model.slo.map((step) => step.limit));
  const [low, high] = extent(values);
  return [low / 1.3, high * 1.6];
}

function percentileAxis(root, box, x, nines) {
  const places = [0, placeOf(50)];
  for (let k = 1; k <= nines; k++) places.push(k);
  let last = -Infinity;
  for (const place of places) {
    const at = x.to(place), text = percentileText(percentileAt(place)).slice(1);
    root.append(svg("line", { class: "grid", x1: at, x2: at, y1: box.top, y2: box.bottom }));
    const half = text.length * 3.4;
    if (at - half < last + (place < 1 ? 4 : 8) || at + half > box.right - 24) continue;
    root.append(svg("text", { class: "tick", x: at, y: box.bottom + 16, "text-anchor": "middle" }, text));
    last = at + half;
  }
  root.append(svg("line", { class: "grid", x1: box.right, x2: box.right, y1: box.top, y2: box.bottom }));
  root.append(svg("text", { class: "tick", x: Math.min(box.right, box.width - 18), y: box.bottom + 16, "text-anchor": "middle" }, "100 %"));
  root.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  const middle = (box.left + box.right) / 2;
  root.append(svg("text", { class: "name", x: middle, y: box.bottom + 33, "text-anchor": "middle" }, "percentile of requests"));
}

function limitOf(one, spread) {
  return spread.count === null ? Infinity : supportedPlace(spread.total);
}

// Grey ground where no sample in view is large enough.
function ground(root, box, x, live) {
  const limit = Math.max(...live.map(({ one, spread }) => (spread ? limitOf(one, spread) : 0)), 0);
  const left = Math.max(x.to(limit), box.left);
  if (!live.some(({ spread }) => spread) || left >= box.right) return;
  root.append(svg("rect", { class: "ground", x: left, y: box.top, width: box.right - left, height: box.bottom - box.top }));
  if (box.right - left < 230) return;
  const words = ["beyond here the sample is too small:", "the curve is its maximum"];
  words.forEach((text, k) => root.append(svg("text", { class: "tick halo", x: left + 8, y: box.bottom - 24 + 14 * k }, text)));
}

// `told` holds the places that are taken: further words go below them.
function tellRests(root, one, left, top, box, told) {
  const words = `dashed: rests on ${one.rests}`, anchor = left > (box.left + box.right) / 2 ? "end" : "start";
  const x = left + (anchor === "end" ? -6 : 6), width = 6.4 * words.length, from = anchor === "end" ? x - width : x;
  let y = top - box.top < 40 ? top + 18 : top - 8;
  while (told.some((other) => Math.abs(other.y - y) < 14 && other.from < from + width && from < other.until)) y += 15;
  told.push({ from, until: from + width, y });
  root.append(svg("text", { class: `label small ${one.cls}`, x, y, "text-anchor": anchor }, words));
}

function drawLine(page, root, one, spread, x, y) {
  const places = placesOf(spread), end = x.high, limit = Math.min(limitOf(one, spread), end);
  const solid = (page.span && !one.shadow) || one.solid === undefined ? limit : Math.min(placeOf(one.solid), limit);
  const steps = [];
  for (let k = 0, from = 0; k < spread.value.length; from = Math.min(places[k], end), k++) steps.push([from, Math.min(places[k], end), spread.value[k]]);
  const last = steps.length ? steps[steps.length - 1][1] : 0;
  if (last < end) steps.push([last, end, spread.top]);
  // What enough events bear, what rests on a few, and what the sample cannot support.
  const parts = [[0, solid, one.dash], [solid, limit, "few"], [limit, end, "dotted"]];
  for (const [first, until, style] of parts) {
    const path = stairs(steps, first, until, x, y);
    // What knows no time stays as it is, and steps back behind what was selected.
    if (path) root.append(svg("path", { class: `line ${one.cls} ${style} ${page.span && !one.data ? "faint" : ""}`, d: path }));
  }
  return steps.find((step) => step[1] > solid);
}

// The part of a step function between two places, joined to what stands before it.
function stairs(steps, first, last, x, y) {
  let path = "", before = null;
  for (const [from, to, value] of steps) {
    if (to > first && from < last) {
      const height = y.to(value).toFixed(1), start = before !== null && from === first ? y.to(before).toFixed(1) : height;
      path += `${path ? "" : `M${x.to(Math.max(from, first)).toFixed(1)} ${start}`}V${height}H${x.to(Math.min(to, last)).toFixed(1)}`;
    }
    before = value;
  }
  return path;
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

function drawPoints(root, one, x, y, unit) {
  for (const [percentile, value] of one.points) {
    const left = x.to(Math.min(placeOf(percentile), x.high)), top = y.to(value);
    root.append(svg("circle", { class: `point ${one.cls}`, cx: left, cy: top, r: 4 }));
    root.append(svg("text", { class: `label ${one.cls}`, x: left, y: top - 8, "text-anchor": "middle" }, valueText(value, unit)));
  }
}

// An SLO as a staircase: up to each percentile its limit.
function drawSteps(root, steps, x, y, box, unit) {
  let from = 0;
  for (const step of steps) {
    const to = Math.min(placeOf(step.percentile), x.high), height = y.to(step.limit);
    root.append(svg("path", { class: `slo ${step.outcome}`, d: `M${x.to(from)} ${height}H${x.to(to)}` }));
    const words = `${percentileText(step.percentile)} ≤ ${valueText(step.limit, unit)}: ${step.outcome}`;
    const room = x.to(to) - x.to(from) > words.length * 6;
    if (room) root.append(svg("text", { class: `label ${step.outcome}`, x: x.to(from) + 4, y: height - 5 }, words));
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
  area.addEventListener("pointermove", (event) => {
    const place = Math.max(0, x.back(event.clientX - root.getBoundingClientRect().left));
    point(place);
    const percentile = place >= page.nines + 0.35 ? 100 : percentileAt(place);
    tip.show(event, percentileText(percentile), live.flatMap((row) => curveRows(row, percentile, page.model.unit)));
  });
  area.addEventListener("pointerleave", () => {
    tip.hide();
    rule.setAttribute("visibility", "hidden");
  });
  page.point = point;
}

function curveRows({ one, spread }, percentile, unit) {
  if (!spread || (!spread.value.length && !spread.late)) return [];
  const at = positionAt(spread, percentile), value = valueText(valueAt(spread, percentile), unit);
  const beyond = at < 0 || at >= spread.value.length;
  const text = `${one.name}: ${beyond && spread.bound !== null ? "≥ " : ""}${value}`;
  if (spread.count === null) return [{ cls: one.cls, text }];
  const slower = spread.total - (beyond ? spread.count : spread.cumulative[at]);
  const weak = placeOf(percentile) > supportedPlace(spread.total) && percentile < 100 ? " · more than the sample supports" : "";
  return [{ cls: one.cls, text: `${text} · ${grouped(slower)} of ${grouped(spread.total)} took longer${weak}` }];
}

// Arrow keys walk along the axis, and what stands there is spoken.
function walkCurve(page, event) {
  const step = { ArrowLeft: -0.1, ArrowRight: 0.1, Home: -99, End: 99 }[event.key];
  if (!step) return;
  event.preventDefault();
  page.place = Math.min(page.nines + 0.5, Math.max(0, (page.place ?? 0.3) + step));
  page.point(page.place);
  const percentile = page.place >= page.nines + 0.45 ? 100 : percentileAt(page.place);
  const rows = page.series.map((one, k) => ({ one, spread: page.spreads[k] })).filter(({ one }) => !one.hidden);
  const words = rows.flatMap((row) => curveRows(row, percentile, page.model.unit)).map((row) => row.text);
  say(`${percentileText(percentile)}. ${words.join(". ")}`);
}
