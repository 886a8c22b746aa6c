// What users meet who wait for the slowest of n calls; the numbers are the package's, the slider walks through them.

function drawFanOut(page) {
  const model = page.model.fanOut[page.fanOutOf], host = page.hosts.fanOut;
  const { root, box } = frame(host, box0(host), page.model.words.fanOut);
  const rows = model.rows, at = page.fanOutAt;
  const x = logarithmic(1, rows[rows.length - 1].n, box.left, box.right);
  const [low, high] = extent(rows.flatMap((row) => [...row.mixture, ...row.independent].map((one) => one.value)));
  const y = logarithmic(low / 1.4, high * 1.6, box.bottom, box.top);
  valueAxis(root, box, y, page.model.unit);
  for (const n of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].filter((n) => n <= rows[rows.length - 1].n)) {
    const left = x.to(n);
    root.append(svg("line", { class: "grid", x1: left, x2: left, y1: box.top, y2: box.bottom }));
    if (!box.narrow || /^1/.test(String(n)))
      root.append(svg("text", { class: "tick", x: left, y: box.bottom + 16, "text-anchor": "middle" }, String(n)));
  }
  const middle = (box.left + box.right) / 2;
  root.append(svg("text", { class: "name", x: middle, y: box.bottom + 33, "text-anchor": "middle" }, "calls that a user waits for"));
  const labels = [];
  model.percentiles.forEach((percentile, k) => {
    const cls = ["half", "late", "worst"][k];
    for (const [kind, style] of [["independent", "dashed faint"], ["mixture", ""]]) {
      const path = rows.map((row, j) => `${j ? "L" : "M"}${x.to(row.n).toFixed(1)} ${y.to(row[kind][k].value).toFixed(1)}`).join("");
      if (kind === "mixture" && !model.mixed) continue;
      root.append(svg("path", { class: `line ${cls} ${model.mixed ? style : ""}`, d: path }));
    }
    const last = rows[rows.length - 1][model.mixed ? "mixture" : "independent"][k].value;
    labels.push({ text: percentileText(percentile), y: y.to(last), cls });
  });
  if (!box.narrow) endLabels(root, box.right + 6, labels, box);
  const here = x.to(rows[at].n);
  root.append(svg("line", { class: "rule", x1: here, x2: here, y1: box.top, y2: box.bottom }));
  host.replaceChildren(root);
}

function tellFanOut(page) {
  const { rows, percentiles, mixed } = page.model.fanOut[page.fanOutOf], row = rows[page.fanOutAt], unit = page.model.unit;
  const table = document.getElementById("fan-out-table").tBodies[0];
  const cell = (one) => (one.supported ? valueText(one.value, unit) : `(${valueText(one.value, unit)})`);
  table.replaceChildren(
    ...percentiles.map((percentile, k) => {
      const both = [mixed ? cell(row.mixture[k]) : "", cell(row.independent[k])];
      const cells = table.parentNode.tHead.rows[0].cells.length > 2 ? both : both.slice(1);
      return el("tr", {}, el("th", { scope: "row" }, percentileText(percentile)), ...cells.map((text) => el("td", {}, text)));
    }),
  );
  document.getElementById("fan-out-n").textContent = String(row.n);
  document.getElementById("fan-out-words").textContent = row.words;
}
