// What users meet who wait for the slowest of n calls; the numbers are the package's, the slider walks through them.

import { percentileText } from "./numbers.js";
import { rowText } from "./data.js";
import { axisBelow, el, endLabels, extent, frame, gridLine, heightOf, logarithmic, svg, tickBelow, valueAxis } from "./draw.js";

// The models that a series has: without time there is not a mixture.
function modelsOf(model) {
  return model.mixed ? [["independent", "thin faint"], ["mixture", ""]] : [["independent", ""]];
}

export function drawFanOut(page) {
  const model = page.model.fanOut[page.fanOutOf], host = page.hosts.fanOut, kinds = modelsOf(model);
  const { root, box } = frame(host, heightOf(host), "Latency of users who wait for the slowest of n calls; the table below has the numbers", 3);
  const rows = model.rows, at = page.fanOutAt, last = rows[rows.length - 1];
  const x = logarithmic(1, last.n, box.left, box.right);
  const every = kinds.flatMap(([kind]) => rows.flatMap((row) => row[kind]));
  const [low, high] = extent(every.flatMap((one) => [one.value, one.low]));
  const y = logarithmic(low / 1.4, high * 1.6, box.bottom, box.top);
  valueAxis(root, box, y, page.model.unit);
  for (const n of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].filter((n) => n <= last.n)) {
    gridLine(root, box, x.to(n));
    if (!box.narrow || /^1/.test(String(n))) tickBelow(root, box, x.to(n), String(n));
  }
  axisBelow(root, box, "calls that a user waits for");
  const labels = [];
  model.percentiles.forEach((percentile, k) => {
    const cls = ["half", "late", "worst"][k];
    for (const [kind, style] of kinds) drawModel(root, rows, rows.map((row) => row[kind][k]), x, y, cls, style);
    const end = last[kinds[kinds.length - 1][0]][k];
    labels.unshift({ text: percentileText(percentile), y: y.to(end.value), cls }); // of equal ones the highest comes first
  });
  endLabels(root, labels, box);
  const here = x.to(rows[at].n);
  root.append(svg("line", { class: "rule", x1: here, x2: here, y1: box.top, y2: box.bottom }));
  host.replaceChildren(root);
}

// A line, and where the source does not pin the values down the band that they lie in.
function drawModel(root, rows, cells, x, y, cls, style) {
  const place = (k, value) => `${x.to(rows[k].n).toFixed(1)} ${y.to(value).toFixed(1)}`;
  let path = "";
  for (let k = 0; k < rows.length; k++) {
    const sure = cells[k].resolved, joined = sure && k && cells[k - 1].resolved;
    if (sure) path += `${joined ? "L" : "M"}${place(k, cells[k].value)}`;
    if (k && cells[k].open) root.append(svg("path", { class: `line ${cls} dotted`, d: `M${place(k - 1, cells[k - 1].value)}L${place(k, cells[k].value)}` }));
    else if (k && !joined) {
      const corners = [place(k - 1, cells[k - 1].value), place(k, cells[k].value), place(k, cells[k].low), place(k - 1, cells[k - 1].low)];
      root.append(svg("path", { class: `range ${cls}`, d: `M${corners.join("L")}Z` }));
    }
  }
  if (path) root.append(svg("path", { class: `line ${cls} ${style}`, d: path }));
}

export function showFanOut(page) {
  const model = page.model.fanOut[page.fanOutOf], row = model.rows[page.fanOutAt], unit = page.model.unit;
  const table = page.find("fan-out-table"), kinds = table.tHead.rows[0].cells.length > 2 ? ["mixture", "independent"] : ["independent"];
  const cell = (one) => el("td", {}, one ? rowText(one, unit) : "");
  table.tBodies[0].replaceChildren(
    ...model.percentiles.map((percentile, k) =>
      el("tr", {}, el("th", { scope: "row" }, percentileText(percentile)), ...kinds.map((kind) => cell(row[kind][k]))),
    ),
  );
  page.find("fan-out-n").textContent = String(row.n);
  page.find("fan-out-words").textContent = row.words;
}
