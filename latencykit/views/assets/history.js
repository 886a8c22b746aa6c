// The page of a history: trends whose points open a run, and the curves of up to two runs.

import { linearTicks, logTicks, percentileText, valueText } from "./numbers.js";

function mountHistory() {
  const trendsPlace = document.getElementById("history-trends"), WIDTH = Math.min(1000, Math.max(420, trendsPlace.clientWidth));
  const SVG = "http://www.w3.org/2000/svg", HEIGHT = 240, LEFT = 70, RIGHT = 150, TOP = 12, BOTTOM = 26;
  const { runs, trends, curves, percentiles } = JSON.parse(document.getElementById("model").textContent).history;
  const chosen = []; // at most two runs; the first is compared with the second

  function element(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function cell(name, text) {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  }

  // Positions on a logarithmic axis that covers the values.
  function heights(values) {
    const known = values.filter((value) => value > 0), low = Math.log(Math.min(...known)), high = Math.log(Math.max(...known));
    const room = Math.max(0.06 * (high - low), 0.02);
    return (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (Math.log(value) - low + room) / (high - low + 2 * room));
  }

  function valueAxis(picture, values, at, unit) {
    const known = values.filter((value) => value > 0), low = Math.min(...known), high = Math.max(...known);
    const wide = logTicks(low, high, unit === "ns" ? 1e9 : Infinity), ticks = wide.length > 2 ? wide : linearTicks(low, high, 5), digits = Math.max(3, 2 + Math.ceil(Math.log10(high / (high - low || high))));
    for (const value of ticks) {
      const y = at(value);
      picture.append(element("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y, stroke: "var(--grid)" }));
      picture.append(element("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end", "font-size": 12, fill: "var(--muted)" }, valueText(value, unit, digits)));
    }
  }

  function path(points) {
    return points.filter((point) => point.every(Number.isFinite)).map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  }

  function labelsText(labels) {
    return Object.entries(labels).map(([key, value]) => `${key}=${value}`).join(", ");
  }

  function runText(k) {
    const run = runs[k], when = new Date(run.time * 1000).toISOString().slice(0, 16).replace("T", " ");
    return [...new Set([run.label, when, run.branch, labelsText(run.labels)])].filter(Boolean).join(" · ");
  }

  // One picture per series: a line per statistic and set of labels.
  function trendPicture(series) {
    const own = trends.filter((trend) => trend.series === series && trend.unit === trends.find((one) => one.series === series).unit);
    const values = own.flatMap((trend) => trend.values), at = heights(values);
    const picture = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: "100%", role: "group", "aria-label": `${series} over the runs` });
    const x = (run) => LEFT + (WIDTH - LEFT - RIGHT) * (runs.length > 1 ? run / (runs.length - 1) : 0.5);
    const under = element("g", {}), over = element("g", {}); // points can be clicked wherever bands overlap
    valueAxis(picture, values, at, own[0].unit);
    own.forEach((trend, number) => {
      const colour = `var(--c${number % 6})`, level = (ends) => trend.runs.map((run, k) => [x(run), ends[k] > 0 ? at(ends[k]) : NaN]);
      under.append(element("path", { d: `${path([...level(trend.low), ...level(trend.high).reverse()])}Z`, fill: colour, opacity: 0.13 }));
      under.append(element("path", { d: path(level(trend.level)), fill: "none", stroke: colour, "stroke-width": 1.6 }));
      for (const [first, last, change] of trend.changes) {
        const mark = element("rect", { x: x(first), y: TOP, width: Math.max(x(last) - x(first), 2), height: HEIGHT - TOP - BOTTOM, fill: change > 0 ? "var(--red)" : "var(--c2)", opacity: 0.16 });
        mark.append(element("title", {}, `${trend.statistic} ${(100 * change).toFixed(1)} % between ${runs[first].label} and ${runs[last].label}`));
        under.append(mark);
      }
      trend.runs.forEach((run, k) => {
        const point = element("circle", { cx: x(run), cy: at(trend.values[k]), r: runs.length > 150 ? 2.2 : 4, fill: colour, "data-run": run, tabindex: k === trend.runs.length - 1 ? 0 : -1, role: "button" });
        point.append(element("title", {}, `${runText(run)}: ${trend.statistic} ${valueText(trend.values[k], trend.unit)}`));
        over.append(point);
      });
      const name = [trend.statistic, ...Object.values(trend.labels)].join(" ").slice(0, 22), end = trend.values.length - 1;
      picture.append(element("text", { x: WIDTH - RIGHT + 8, y: at(trend.values[end]) + 4, "font-size": 12, fill: colour }, name));
    });
    picture.append(under, over);
    const both = 14 * runs[0].label.length < WIDTH - LEFT - RIGHT ? [[0, "start"]] : []; // where there is space for two names
    for (const [k, anchor] of [...both, [runs.length - 1, "end"]])
      picture.append(element("text", { x: x(k), y: HEIGHT - 8, "text-anchor": anchor, "font-size": 12, fill: "var(--muted)" }, runs[k].label));
    return picture;
  }

  // The percentile curves of the chosen runs, one picture per series.
  function curvePicture(series) {
    const own = chosen.map((run) => curves[run]?.[series]).map((values) => values || []), all = own.flat().filter((value) => value > 0);
    const unit = trends.find((trend) => trend.series === series).unit, at = heights(all);
    const picture = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: "100%", role: "img", "aria-label": `${series}: latency by percentile` });
    const x = (k) => LEFT + ((WIDTH - LEFT - RIGHT) * k) / (percentiles.length - 1);
    valueAxis(picture, all, at, unit);
    const ends = own.map((values) => at(values[values.length - 1]));
    own.forEach((values, number) => {
      picture.append(element("path", { d: path(values.map((value, k) => [x(k), at(value)])), fill: "none", stroke: `var(--c${number})`, "stroke-width": 2 }));
      // Of two names that would meet, that of the lower curve stands below.
      const below = ends[number] - ends[1 - number], down = below > 0 || (below === 0 && number) ? Math.max(14 - below, 0) : 0;
      if (values.length) picture.append(element("text", { x: WIDTH - RIGHT + 8, y: ends[number] + 4 + down, "font-size": 12, fill: `var(--c${number})` }, runs[chosen[number]].label));
    });
    const nines = (p) => -Math.log10(1 - Math.min(p, 99.9999) / 100);
    for (const p of [50, 90, 99, 99.9, 99.99]) {
      const far = percentiles.map((one) => Math.abs(nines(one) - nines(p))), k = far.indexOf(Math.min(...far));
      picture.append(element("text", { x: x(k), y: HEIGHT - 8, "text-anchor": "middle", "font-size": 12, fill: "var(--muted)" }, percentileText(p)));
    }
    return picture;
  }

  function table() {
    const made = document.createElement("table"), head = made.createTHead().insertRow(), body = made.createTBody();
    const columns = ["series", "statistic", ...chosen.map((run) => runs[run].label), ...(chosen.length > 1 ? ["change"] : [])];
    columns.forEach((text) => head.append(cell("th", text)));
    const rows = new Map();
    for (const trend of trends) {
      const key = `${trend.series}\0${trend.statistic}`, values = rows.get(key) || { trend, values: [] };
      chosen.forEach((run, k) => { const at = trend.runs.indexOf(run); if (at >= 0) values.values[k] = trend.values[at]; });
      rows.set(key, values);
    }
    for (const { trend, values } of rows.values()) {
      if (!values.some((value) => value > 0)) continue;
      const texts = [trend.series, trend.statistic, ...chosen.map((_, k) => (values[k] > 0 ? valueText(values[k], trend.unit) : ""))];
      if (chosen.length > 1) texts.push(values[0] > 0 && values[1] > 0 ? `${values[1] >= values[0] ? "+" : ""}${(100 * (values[1] / values[0] - 1)).toFixed(1)} %` : "");
      const row = body.insertRow();
      texts.forEach((text) => row.append(cell("td", text)));
    }
    return made;
  }

  function show() {
    const [line, pictures, numbers] = ["chosen", "curves", "table"].map((name) => document.getElementById(`history-${name}`));
    line.textContent = chosen.length ? chosen.map(runText).join("  →  ") : "No run is chosen.";
    const names = [...new Set(chosen.flatMap((run) => Object.keys(curves[run] || {})))].filter((name) => trends.some((trend) => trend.series === name));
    pictures.replaceChildren(...names.flatMap((name) => [cell("h3", name), curvePicture(name)]));
    if (chosen.length && !names.length) pictures.replaceChildren(cell("p", "The page has no distribution of this run: it is too old, or has statistics only."));
    numbers.replaceChildren(...(chosen.length ? [table()] : []));
    document.querySelectorAll("circle").forEach((point) => {
      const place = chosen.indexOf(Number(point.dataset.run));
      point.setAttribute("stroke", place < 0 ? "none" : "var(--ink)");
      point.setAttribute("stroke-width", place < 0 ? 0 : 2.5);
    });
  }

  function choose(run) {
    const at = chosen.indexOf(run);
    if (at >= 0) chosen.splice(at, 1);
    else chosen.push(run);
    if (chosen.length > 2) chosen.shift();
    show();
  }

  for (const series of new Set(trends.map((trend) => trend.series))) trendsPlace.append(cell("h3", series), trendPicture(series));
  trendsPlace.addEventListener("click", (event) => event.target.dataset.run !== undefined && choose(Number(event.target.dataset.run)));
  trendsPlace.addEventListener("keydown", (event) => {
    const point = event.target.closest("circle"), step = { ArrowRight: "nextElementSibling", ArrowLeft: "previousElementSibling" }[event.key];
    if (!point) return;
    if (event.key === "Enter" || event.key === " ") choose(Number(point.dataset.run));
    else if (step && point[step]?.matches("circle")) point[step].focus();
    else return;
    event.preventDefault();
  });
  document.documentElement.dataset.ready = "1";
}

mountHistory();
