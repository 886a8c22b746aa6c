// The page and the widget: selection, drawing, and the numbers of what is selected.

import { durationText, grouped, secondsText, valueText } from "./numbers.js";
import { given, rowAt, rowText, unpack } from "./data.js";
import { el, measureAgain, setAll, tooltip } from "./draw.js";
import { countsOf, drawBrush, drawTimeline, wirePinch } from "./timeline.js";
import { dataWithin, drawCurve, ownSpan, ownTimes, slotsWithin, spreadOf, walkCurve } from "./curve.js";
import { drawHeat, walkHeat } from "./heat.js";
import { drawFanOut, showFanOut } from "./fanout.js";
import { wireControls } from "./controls.js";

const SECTIONS = { timeline: drawTimeline, curve: drawCurve, heat: drawHeat, fanOut: drawFanOut };

// Wires the elements under `root` (a document or a shadow root) to the model, and draws. Returns a handle for Python, the
// console and tests. `host` is the element that carries the theme; `onSelect` hears of every selection.
// `ask` requests finer time bins of a span where the page has none.
export async function mount(root, model, { host, ask = null, explain = null, onSelect = () => {}, onView = () => {} }) {
  const page = { model, root, host, onSelect, onView, ask, explain, span: null, zoomed: null, finer: null, details: [], allEdges: model.edges, clock: false, linear: false, edges: model.edges, hosts: {}, series: [], spreads: [], fanOutAt: 0, fanOutOf: 0 };
  page.find = (id) => root.getElementById(id);
  page.title = root.querySelector("h1")?.textContent ?? model.series.map((one) => one.short).join(", ");
  page.say = (text) => text !== page.find("spoken").textContent && (page.find("spoken").textContent = text);
  page.draw = (name) => drawSection(page, name);
  page.tip = tooltip();
  for (const one of model.series) page.series.push(await opened(one));
  for (const detail of model.details) page.details.push(await openedDetail(detail));
  for (const name of Object.keys(SECTIONS)) page.hosts[name] = page.find(`plot-${name}`);
  page.rows = [...page.find("numbers").rows];
  page.label = labelCells;
  page.label(root.querySelectorAll("#explore table, #stalls table, #comparison table, #slo table, #explain table"));
  (root.body || root).append(page.tip.node);
  wireSelection(page);
  wireZoom(page);
  for (const part of [wireSeries, wireSpans, wireControls, wireRanges, wireCurve, wireHeat, wireFanOut, wireWindow, wirePinch]) guarded(() => part(page));
  page.refresh();
  return Object.freeze({
    select: (start, end) => (start === undefined ? page.select(null) : page.drop(start, end)),
    // The same without an answer: two widgets that are linked have edges of their own.
    follow: (span) => page.quietly(() => (span ? page.drop(...span) : page.select(null))),
    selection: () => page.span,
    extent: () => [page.edges[0], page.edges[page.edges.length - 1]],
    percentile: (name, p) => rowAt(page.spreads[page.series.findIndex((one) => one.name === name)], p).value,
    counts: () => Object.fromEntries(page.series.map((one, k) => [one.name, page.spreads[k] && page.spreads[k].total])),
    redraw: () => page.refresh(),
    addFiner: async (detail) => {
      page.details = [await openedDetail(detail), ...page.details].slice(0, 24);
      page.zoom(page.zoomed);
    },
    explained: (html) => page.showExplained?.(html),
    page,
    close: () => page.observers.forEach((stop) => stop()),
  });
}

// Does a part of the work. An error goes to the console, and to anyone who says so in its place; the other parts go on.
function guarded(part, failed) {
  try {
    return part();
  } catch (error) {
    console.error(error);
    if (failed) failed(error);
    return null;
  }
}

// A series with its bytes unpacked; one whose bytes cannot be read still has the curve of the whole run.
async function opened(one) {
  const series = { ...one, hidden: false, data: null, whole: one.curve ? given(one.curve) : null };
  try {
    if (one.packed) series.data = series.coarse = await unpack(one.packed);
  } catch (error) {
    console.error(error);
    series.trouble = error.message;
  }
  return series;
}

// Finer bins of a part of the run.
async function openedDetail(detail) {
  return { ...detail, series: await Promise.all(detail.series.map((packed) => packed && unpack(packed))) };
}

// Draws the finest bins that are known of what the timeline shows.
function focus(page) {
  const view = page.zoomed, covers = (detail) => detail.edges.length > 1 && detail.span[0] <= view[0] && view[1] <= detail.span[1];
  const finer = view && page.details.filter(covers).sort((a, b) => a.bin - b.bin)[0];
  page.finer = finer && finer.bin < page.model.bin ? finer : null;
  page.edges = page.finer ? page.finer.edges : page.allEdges;
  page.cell = page.corner = null; // of the bins that were drawn before
  page.series.forEach((one, k) => one.data && (one.data = page.finer?.series[k] || one.coarse));
  if (page.ranges) for (const range of page.ranges) range.max = String(page.edges.length - 1);
  const bin = page.finer ? page.finer.bin : page.model.bin;
  clearTimeout(page.asking);
  if (!page.ask || !view || bin <= 1.01 * page.model.finest || (view[1] - view[0]) / bin > 100) return;
  const margin = (view[1] - view[0]) / 2;
  page.asking = setTimeout(() => page.ask([Math.max(0, view[0] - margin), view[1] + margin]), 120);
}

// Draws one section. What it cannot draw it says in its place: the reason that it returns, or the error that it met.
function drawSection(page, name) {
  const host = page.hosts[name];
  if (!host) return;
  const said = (cls, text) => host.replaceChildren(el("p", { class: cls }, text));
  const failed = (error) => said("trouble", `This chart could not be drawn (${error.message}); its numbers are in the tables.`);
  guarded(() => {
    const unread = name === "timeline" || name === "heat" ? page.series.filter((one) => one.trouble) : [];
    if (unread.length) throw new Error(`${unread[0].name}: ${unread[0].trouble}`);
    const reason = SECTIONS[name](page);
    if (reason) said("reason", reason);
  }, failed);
}

function wireSelection(page) {
  const count = () => (page.spreads = page.series.map((one) => guarded(() => spreadOf(page, one))));
  page.refresh = () => {
    measureAgain(Object.values(page.hosts).filter(Boolean));
    for (const one of page.root.querySelectorAll(".scroll")) one.tabIndex = one.scrollWidth > one.clientWidth ? 0 : -1; // else it is but a stop
    count();
    for (const name of Object.keys(SECTIONS)) drawSection(page, name);
    showNumbers(page);
    page.showCompared?.();
  };
  page.select = (span) => {
    const whole = span && span[0] <= page.allEdges[0] && span[1] >= page.allEdges.at(-1);
    page.span = whole ? null : span;
    count();
    drawBrush(page);
    drawSection(page, "curve");
    showNumbers(page);
    showChosen(page);
    page.showTools?.();
    clearTimeout(page.comparing);
    page.comparing = setTimeout(() => page.showCompared?.(), 60); // not at each move of a drag
    if (!page.quiet) page.onSelect(page.span);
  };
  // A range of latencies: when did these happen?
  page.choose = (values) => {
    page.values = values && values[0] < values[1] ? values : null;
    for (const name of ["timeline", "heat", "curve"]) drawSection(page, name);
    showChosen(page);
  };
  // Snapped to the edges around two moments, unless they are edges of finer bins, as those of a link are.
  const snapped = (a, b) => {
    if (a < b && page.details.some(({ edges }) => edges.includes(a) && edges.includes(b))) return [a, b];
    const first = Math.max(0, page.edges.findLastIndex((edge) => edge <= Math.min(a, b)));
    const last = page.edges.findIndex((edge) => edge >= Math.max(a, b));
    const end = last < 0 ? page.edges.length - 1 : Math.max(last, first + 1);
    return [page.edges[Math.max(0, Math.min(first, page.edges.length - 2))], page.edges[end]];
  };
  page.quietly = (act) => {
    page.quiet = true;
    act();
    page.quiet = false;
  };
  page.preview = (a, b) => {
    const span = snapped(a, b);
    if (!page.span || span[0] !== page.span[0] || span[1] !== page.span[1]) page.select(span);
  };
  page.drop = (a, b) => page.select(snapped(a, b));
  // Finer bins are those around what is shown: a longer selection moves by the run's own.
  page.edgesOf = (span) => (span[0] >= page.edges[0] && span[1] <= page.edges.at(-1) ? page.edges : page.allEdges);
  // A selection moved by some seconds keeps its number of bins.
  page.slide = (span, by) => {
    const edges = page.edgesOf(span);
    const first = Math.max(0, edges.findLastIndex((edge) => edge <= span[0])), end = edges.findIndex((edge) => edge >= span[1]), last = end < 0 ? edges.length - 1 : end;
    const most = edges.length - 1 - (last - first);
    const at = Math.min(most, Math.max(0, edges.findLastIndex((edge) => edge <= span[0] + by)));
    const moved = [edges[at], edges[at + last - first]];
    if (moved[0] !== page.span?.[0] || moved[1] !== page.span?.[1]) page.select(moved);
  };
}

function wireZoom(page) {
  const whole = () => [page.allEdges[0], page.allEdges.at(-1)];
  page.view = () => page.zoomed || whole();
  page.zoom = (view) => {
    const [first, last] = whole(), close = page.ask || page.details.length;
    const least = close ? page.model.finest : (last - first) / (page.allEdges.length - 1);
    if (view && view[1] - view[0] < least) view = [(view[0] + view[1] - least) / 2, (view[0] + view[1] + least) / 2];
    page.zoomed = view && (view[0] > first || view[1] < last) ? [Math.max(first, view[0]), Math.min(last, view[1])] : null;
    focus(page);
    for (const name of ["timeline", "heat"]) drawSection(page, name);
    showNumbers(page);
    showBins(page);
    page.showTools?.();
    page.say(`The axis of time shows ${page.view().map(durationText).join(" to ")}.`);
    page.onView();
  };
  page.zoomAround = (time, factor) => page.zoom(page.view().map((edge) => time + (edge - time) * factor));
}

function wireSeries(page) {
  page.root.querySelectorAll("#legend button[data-series]").forEach((button) => {
    const one = page.series[Number(button.dataset.series)];
    button.addEventListener("click", () => {
      one.hidden = !one.hidden;
      page.showSeries();
      page.refresh();
    });
  });
  page.showSeries = () => {
    for (const button of page.root.querySelectorAll("#legend button[data-series]"))
      button.setAttribute("aria-pressed", String(!page.series[Number(button.dataset.series)].hidden));
    page.onView();
  };
}

function wireSpans(page) {
  page.root.querySelectorAll("button[data-from]").forEach((button) => {
    button.addEventListener("click", () => {
      const [from, to] = [Number(button.dataset.from), Number(button.dataset.to)], margin = 3 * (to - from) + 10 * page.model.finest;
      page.zoom([from - margin, to + margin]);
      page.drop(from, to);
      page.find("explore").scrollIntoView({ block: "start" });
    });
  });
  page.find("whole")?.addEventListener("click", () => (page.choose(null), page.select(null)));
  page.root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    page.tip.hide();
    if (page.values) page.choose(null);
    if (page.span) page.select(null);
  });
}

// The brush for the keyboard: two sliders over the edges.
function wireRanges(page) {
  const from = page.find("from"), to = page.find("to");
  if (!from) return;
  page.ranges = [from, to];
  for (const range of page.ranges) {
    range.max = String(page.edges.length - 1);
    range.addEventListener("input", () => {
      let a = Number(from.value), b = Number(to.value);
      if (a >= b) [a, b] = range === from ? [a, Math.min(a + 1, page.edges.length - 1)] : [Math.max(b - 1, 0), b];
      if (a >= b) a = b - 1;
      page.select([page.edges[a], page.edges[b]]);
    });
  }
}

function wireCurve(page) {
  page.hosts.curve.addEventListener("keydown", (event) => walkCurve(page, event));
  page.hosts.curve.addEventListener("blur", page.tip.hide);
}

function wireHeat(page) {
  const host = page.hosts.heat;
  if (host) {
    setAll(host, { tabindex: 0, role: "group", "aria-label": "Heat map; arrow keys walk from cell to cell, with the shift key they select a region of time and latency" });
    host.addEventListener("keydown", (event) => walkHeat(page, event));
    host.addEventListener("blur", () => (page.tip.hide(), host.querySelector(".cell")?.setAttribute("visibility", "hidden")));
  }
  const chosen = page.find("heat-series");
  chosen?.addEventListener("change", () => ((page.heat = chosen.value), (page.cell = page.corner = null), drawSection(page, "heat")));
}

function wireFanOut(page) {
  const slider = page.find("fan-out-slider"), whose = page.find("fan-out-series");
  if (!slider) return;
  const move = () => {
    page.fanOutAt = Number(slider.value);
    page.fanOutOf = whose ? Number(whose.value) : 0;
    slider.setAttribute("aria-valuetext", `${page.model.fanOut[page.fanOutOf].rows[page.fanOutAt].n} calls`);
    drawSection(page, "fanOut");
    showFanOut(page);
  };
  slider.addEventListener("input", move);
  whose?.addEventListener("change", move);
  move();
}

function wireWindow(page) {
  const place = page.find("explore");
  let width = place.clientWidth, due = 0;
  const again = () => ((width = place.clientWidth), cancelAnimationFrame(due), (due = requestAnimationFrame(page.refresh)));
  const sized = new ResizeObserver(() => place.clientWidth !== width && again());
  sized.observe(place);
  page.observers = [() => sized.disconnect()];
  const paper = (print) => () => setPaper(page, print), events = [[window, "beforeprint", paper(true)], [window, "afterprint", paper(false)]];
  for (const name of ["(prefers-color-scheme: dark)", "print"]) events.push([matchMedia(name), "change", again]);
  for (const [source, name, act] of events) {
    source.addEventListener(name, act);
    page.observers.push(() => source.removeEventListener(name, act));
  }
}

// On paper the charts are as wide as a page, and what is folded is open.
function setPaper(page, print) {
  page.host.toggleAttribute("data-paper", print);
  page.root.querySelectorAll(print ? "details:not([open])" : "details[data-folded]").forEach((one) => {
    one.open = print;
    one.toggleAttribute("data-folded", print);
  });
  page.refresh();
}

// The span as text that --from, --to and `between` take: seconds, all digits; beside it, for people, longer units.
function spanWords(page) {
  if (!page.span) return "the whole run";
  const exact = page.span.map(secondsText), short = page.span.map(durationText);
  return `${exact[0]} to ${exact[1]}${page.span[1] < 1000 ? "" : ` (${short[0]} to ${short[1]})`}`;
}

// The selection on the edges of the bins that are drawn: what the sliders show.
function snappedSpan(page) {
  const [first, last] = [page.edges[0], page.edges.at(-1)], [a, b] = page.span || [first, last];
  return [page.edges.findLast((edge) => edge <= a) ?? first, page.edges.find((edge) => edge >= b) ?? last];
}

// What the time bins that are drawn are: those of the run, or finer ones.
function showBins(page) {
  const place = page.find("bins");
  if (!place) return;
  place.whole ??= [...place.childNodes];
  if (page.finer) place.textContent = `Zoomed in: time bins of ${durationText(page.finer.bin)}; those of the whole run are ${durationText(page.model.bin)} long.`;
  else place.replaceChildren(...place.whole);
}

// Numbers of what is selected: beside the curve, and spoken.
function showNumbers(page) {
  const place = page.find("selected"), whole = page.find("whole");
  if (place) place.textContent = spanWords(page);
  if (whole) whole.disabled = !page.span;
  if (page.ranges) {
    const [a, b] = snappedSpan(page);
    page.ranges[0].value = String(page.edges.indexOf(a));
    page.ranges[1].value = String(page.edges.indexOf(b));
    page.ranges[0].setAttribute("aria-valuetext", secondsText(a));
    page.ranges[1].setAttribute("aria-valuetext", secondsText(b));
  }
  const body = page.find("numbers"), causes = page.find("causes");
  if (causes) causes.hidden = Boolean(page.span); // they are those of the whole run
  // The rows of the whole run are the package's own.
  const rowOf = (one, k) => (page.span ? guarded(() => numbersOf(one, page.spreads[k], page, k)) : null) || page.rows[k];
  body.replaceChildren(...page.series.flatMap((one, k) => (one.hidden ? [] : [rowOf(one, k)])));
  if (page.span || page.find("spoken").textContent) page.say(`${spanWords(page)}. ${[...body.rows].map((row) => [...row.cells].filter((cell) => cell.textContent).map((cell) => `${cell.dataset.label || ""} ${cell.textContent}`.trim()).join(", ")).join(". ")}`);
}

// How many requests of what is selected lie in the chosen range of latencies, and in how many bins.
function showChosen(page) {
  const place = page.find("chosen");
  if (!place) return;
  place.hidden = !page.values;
  if (!page.values) return;
  const [low, high] = page.values.map((value) => valueText(value, page.model.unit));
  const words = page.series.filter((one) => one.data && !one.hidden && !one.derived).map((one) => {
    const data = page.span ? dataWithin(page, one, page.span) : one.coarse;
    if (!data) return `${one.short}: unknown`;
    const [first, last] = page.span ? slotsWithin(data, page.span) : [0, data.start.length];
    const counts = countsOf(data, page.values).slice(first, last), filled = counts.filter((count) => count > 0);
    const all = data.count.slice(first, last).reduce((a, b) => a + b, 0), sum = counts.reduce((a, b) => a + b, 0);
    return `${one.short}: ${grouped(sum)} of ${grouped(all)} requests, in ${grouped(filled.length)} of ${grouped(counts.length)} time bins`;
  });
  const text = `Latency above ${low}, up to ${high}. ${words.join("; ")}.`;
  if (place.firstChild.textContent === text) return;
  place.firstChild.textContent = text;
  page.say(text);
}

// In a narrow column each row of a table becomes a grid, in which the cells carry the names of their columns.
function labelCells(tables) {
  for (const table of tables) {
    const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
    table.classList.add("fluid");
    table.style.setProperty("--columns", names.length - 1);
    for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, k) => k && (cell.dataset.label = names[k]));
  }
}

function numbersOf(one, spread, page, position) {
  if (!one.data) {
    const row = page.rows[position].cloneNode(true);
    row.cells[0].append(" (of the whole run)");
    return row;
  }
  const unit = page.model.unit, name = el("th", { scope: "row" }, el("i", { class: `swatch ${one.cls} ${one.mark}` }), one.short);
  const data = dataWithin(page, one, page.span), unknown = !data, blank = unknown || !spread || !spread.value.length;
  const own = unknown ? null : ownSpan(data, page.span);
  name.append(...ownTimes(data, page.span));
  const cells = page.model.percentiles.map((percentile) => {
    if (blank) return el("td", { "data-percentile": percentile });
    const row = rowAt(spread, percentile);
    return el("td", { "data-value": row.value, "data-percentile": percentile }, rowText(row, unit));
  });
  const count = spread ? spread.count : 0, requests = unknown ? el("td", {}, "unknown") : el("td", { "data-count": count }, grouped(count)), mean = blank || !spread.mean ? "" : rowText(spread.mean, unit);
  const row = el("tr", { "data-series": position, "data-from": own?.[0], "data-to": own?.[1] }, name, requests, ...cells, el("td", {}, mean));
  [...row.cells].forEach((cell, k) => k && (cell.dataset.label = page.rows[position].cells[k].dataset.label));
  return row;
}
