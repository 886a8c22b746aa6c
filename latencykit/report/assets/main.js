// The page: what is selected, what is shown, and who draws.

const FAMILIAR = [50, 90, 99, 99.9, 99.99, 100];

async function main() {
  const model = JSON.parse(document.getElementById("model").textContent);
  const page = { model, span: null, hosts: {}, series: [], edges: [], spreads: [] };
  for (const one of model.series) page.series.push({ ...one, hidden: false, data: one.packed ? await unpack(one.packed) : null });
  const times = page.series.filter((one) => one.data).flatMap((one) => [...one.data.start]);
  const ends = page.series.filter((one) => one.data).flatMap((one) => one.data.end);
  page.edges = [...new Set(times)].sort((a, b) => a - b);
  if (ends.length) page.edges.push(ends.reduce((a, b) => Math.max(a, b)));
  for (const name of ["timeline", "curve", "heat", "fanOut"]) page.hosts[name] = document.getElementById(`plot-${name}`);
  document.body.append(tip.node);
  actions(page);
  wire(page);
  page.refresh();
  document.documentElement.dataset.ready = performance.now().toFixed(0);
  // For the console and for checks: what is shown, and the numbers behind it.
  window.latencykit = Object.freeze({
    select: (start, end) => page.drop(start, end),
    selection: () => page.span,
    extent: () => [page.edges[0], page.edges[page.edges.length - 1]],
    percentile: (name, p) => valueAt(page.spreads[page.series.findIndex((one) => one.name === name)], p),
    counts: () => Object.fromEntries(page.series.map((one, k) => [one.name, page.spreads[k] && page.spreads[k].total])),
  });
}

function actions(page) {
  page.refresh = () => {
    page.spreads = page.series.map((one) => spreadOf(one, page.span));
    if (page.edges.length) drawTimeline(page);
    if (page.hosts.curve) drawCurve(page);
    if (page.hosts.heat) drawHeat(page);
    if (page.hosts.fanOut) drawFanOut(page);
    tell(page);
  };
  page.select = (span) => {
    page.span = span;
    page.spreads = page.series.map((one) => spreadOf(one, span));
    drawBrush(page);
    drawCurve(page);
    tell(page);
  };
  // Snapped to the slots that the two moments fall into.
  const snapped = (a, b) => {
    const first = Math.max(0, page.edges.findLastIndex((edge) => edge <= Math.min(a, b)));
    const last = page.edges.findIndex((edge) => edge > Math.max(a, b));
    const end = last < 0 ? page.edges.length - 1 : Math.max(last, first + 1);
    return [page.edges[Math.min(first, page.edges.length - 2)], page.edges[end]];
  };
  page.preview = (a, b) => {
    const span = snapped(a, b);
    if (page.span && span[0] === page.span[0] && span[1] === page.span[1]) return;
    const { x, plot, root } = page.timeline;
    let ghost = root.querySelector(".brush");
    if (!ghost) root.insertBefore((ghost = svg("rect", { class: "brush", y: plot.top, height: plot.bottom - plot.top })), root.querySelector(".catch"));
    ghost.setAttribute("x", x.to(span[0]));
    ghost.setAttribute("width", Math.max(1.5, x.to(span[1]) - x.to(span[0])));
    page.span = span;
    page.spreads = page.series.map((one) => spreadOf(one, span));
    drawCurve(page);
    tell(page);
  };
  page.drop = (a, b) => page.select(snapped(a, b));
}

function wire(page) {
  document.querySelectorAll("#legend button[data-series]").forEach((button) => {
    const one = page.series[Number(button.dataset.series)];
    button.addEventListener("click", () => {
      one.hidden = !one.hidden;
      button.setAttribute("aria-pressed", String(!one.hidden));
      page.refresh();
    });
  });
  document.querySelectorAll("button[data-from]").forEach((button) => {
    button.addEventListener("click", () => {
      page.drop(Number(button.dataset.from), Number(button.dataset.to));
      document.getElementById("explore").scrollIntoView({ block: "start" });
    });
  });
  const whole = document.getElementById("whole");
  if (whole) whole.addEventListener("click", () => page.select(null));
  wireRanges(page);
  page.hosts.curve?.addEventListener("keydown", (event) => walkCurve(page, event));
  const chosen = document.getElementById("heat-series");
  if (chosen) chosen.addEventListener("change", () => ((page.heat = chosen.value), drawHeat(page)));
  const slider = document.getElementById("fan-out-slider"), whose = document.getElementById("fan-out-series");
  if (slider) {
    const move = () => {
      page.fanOutAt = Number(slider.value);
      page.fanOutOf = whose ? Number(whose.value) : 0;
      slider.setAttribute("aria-valuetext", `${page.model.fanOut[0].rows[page.fanOutAt].n} calls`);
      drawFanOut(page);
      tellFanOut(page);
    };
    slider.addEventListener("input", move);
    if (whose) whose.addEventListener("change", move);
    move();
  }
  document.addEventListener("keydown", (event) => event.key === "Escape" && page.span && page.select(null));
  let width = document.documentElement.clientWidth, due = 0;
  const again = () => ((width = document.documentElement.clientWidth), cancelAnimationFrame(due), (due = requestAnimationFrame(page.refresh)));
  window.addEventListener("resize", () => document.documentElement.clientWidth !== width && again());
  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", again);
}

// The brush for the keyboard: two sliders over the slots' edges.
function wireRanges(page) {
  const from = document.getElementById("from"), to = document.getElementById("to");
  if (!from) return;
  page.ranges = [from, to];
  for (const range of page.ranges) {
    range.max = String(page.edges.length - 1);
    range.addEventListener("input", () => {
      let a = Number(from.value), b = Number(to.value);
      if (a >= b) [a, b] = range === from ? [a, Math.min(a + 1, page.edges.length - 1)] : [Math.max(b - 1, 0), b];
      if (a >= b) a = b - 1;
      page.select(a === 0 && b === page.edges.length - 1 ? null : [page.edges[a], page.edges[b]]);
    });
  }
}

function spanWords(page) {
  if (!page.span) return page.model.words.whole;
  return `${durationText(page.span[0])} to ${durationText(page.span[1])}`;
}

// Numbers of what is selected: beside the curve, and spoken.
function tell(page) {
  const place = document.getElementById("selected");
  if (place) place.textContent = spanWords(page);
  const whole = document.getElementById("whole");
  if (whole) whole.disabled = !page.span;
  if (page.ranges) {
    const [a, b] = page.span || [page.edges[0], page.edges[page.edges.length - 1]];
    page.ranges[0].value = String(page.edges.indexOf(a));
    page.ranges[1].value = String(page.edges.indexOf(b));
    page.ranges[0].setAttribute("aria-valuetext", durationText(a));
    page.ranges[1].setAttribute("aria-valuetext", durationText(b));
  }
  const body = document.getElementById("numbers");
  if (body) body.replaceChildren(...page.series.flatMap((one, k) => (one.hidden ? [] : [numbersOf(one, page.spreads[k], page)])));
  if (page.span) say(`${spanWords(page)}. ${[...body.rows].map((row) => [...row.cells].map((cell) => cell.textContent).join(", ")).join(". ")}`);
}

function numbersOf(one, spread, page) {
  const unit = page.model.unit, fixed = page.span && !one.data ? " (of the whole run)" : "";
  const name = el("th", { scope: "row" }, el("i", { class: `swatch ${one.cls}` }), one.name + fixed);
  if (!spread || !spread.total) return el("tr", {}, name, el("td", {}, "0"), ...FAMILIAR.map(() => el("td", {}, "")), el("td", {}, ""));
  const cells = FAMILIAR.map((percentile) => {
    const value = valueAt(spread, percentile), text = valueText(value, unit);
    const beyond = spread.bound !== null && positionAt(spread, percentile) >= spread.value.length;
    const weak = percentile < 100 && spread.count !== null && placeOf(percentile) > supportedPlace(spread.total);
    return el("td", { "data-value": value, "data-percentile": percentile }, weak ? `(${text})` : beyond ? `≥ ${text}` : text);
  });
  const count = spread.count === null ? "model" : grouped(spread.count);
  const mean = spread.mean === null || spread.mean === undefined ? "" : valueText(spread.mean, unit);
  return el("tr", {}, name, el("td", { "data-count": spread.count }, count), ...cells, el("td", {}, mean));
}

main().catch((error) => {
  const note = document.getElementById("trouble");
  note.hidden = false;
  note.textContent = `This browser could not draw the charts (${error.message}); the tables below hold the numbers.`;
  throw error;
});
