// What a reader does with the views: zoom, clock times, one series alone, copy a selection, save numbers and pictures, link to it.

import { el, setAll, svg } from "./draw.js";
import { ownSpan } from "./curve.js";
import { wireRest } from "./rest.js";

function button(text, title, act) {
  const made = el("button", { type: "button", title }, text);
  made.addEventListener("click", act);
  return made;
}

// One of several alike: its name says which.
const named = (text, title, act) => setAll(button(text, title, act), { "aria-label": title });

// A button that is on or off; `act` returns which.
function toggle(text, title, act) {
  const made = button(text, title, () => made.setAttribute("aria-pressed", String(act())));
  made.className = "toggle";
  made.setAttribute("aria-pressed", "false");
  return made;
}

export function wireControls(page) {
  const legend = page.find("legend");
  if (page.series.length > 1) legend.querySelectorAll("button[data-series]").forEach((own) => {
    const place = Number(own.dataset.series), name = page.series[place].name;
    const alone = named("only", `Show only ${name}, or all again`, () => solo(page, place)), pair = el("span", { class: "pick" });
    alone.className = "only";
    own.replaceWith(pair);
    pair.append(own, alone);
  });
  const tools = el("div", { class: "tools", role: "group", "aria-label": "Zoom, copy and save" });
  const drawn = page.series.some((one) => one.whole || one.points.length); // else there is only a reason why not
  if (page.edges.length) timeTools(page, tools);
  const linear = toggle("Linear values", "Values on a linear axis from zero, or on a logarithmic one", () => {
    page.linear = !page.linear;
    for (const name of ["timeline", "curve"]) page.draw(name);
    return page.linear;
  });
  if (drawn) tools.append(linear);
  tools.append(button("Numbers as CSV", "Save the table of what is selected", () => save(page, "numbers.csv", "text/csv", csvOf(page))));
  if (page.explain && page.model.explains) explainTool(page, tools);
  for (const [name, title] of [["timeline", "timeline"], ["heat", "heat map"], ["curve", "curve"]]) {
    if (!page.hosts[name] || !drawn) continue;
    const own = el("div", { class: "saves" });
    own.append(
      named("SVG", `Save the ${title} as SVG`, () => savePicture(page, name, "svg")),
      named("PNG", `Save the ${title} as PNG`, () => savePicture(page, name, "png")),
    );
    const heading = page.hosts[name].parentElement.querySelector("h2"), head = el("div", { class: "head" });
    heading.before(head);
    head.append(heading, own);
  }
  legend.after(tools);
  const chosen = el("p", { id: "chosen", class: "reason", hidden: "" }, el("span"));
  chosen.append(" ", button("Clear", "Key: Escape", () => page.choose(null)));
  page.find("numbers").closest("div").before(chosen); // below the pictures, which it must not move
}

function timeTools(page, tools) {
  const middle = () => page.view().reduce((a, b) => a + b) / 2;
  const zoom = button("Zoom to selection", "The axis of time shows the selection alone; key: z", () => page.zoom(page.span));
  const all = button("All", "The axis of time shows the whole run; key: 0", () => page.zoom(null));
  tools.append(
    zoom,
    button("+", "Zoom in; key: +; with the control key the mouse wheel zooms, too", () => page.zoomAround(middle(), 0.5)),
    button("\u2212", "Zoom out; key: -", () => page.zoomAround(middle(), 2)),
    all,
  );
  wireRest(page);
  tools.append(
    button("Copy as command", "latencykit summary of the selection", (event) => copy(page, event.target, commandOf(page))),
    button("Copy as Python", "The selection as code", (event) => copy(page, event.target, pythonOf(page))),
  );
  if (page.model.epoch) {
    const clock = toggle("Clock times", "Times as UTC, or from the start", () => {
      page.clock = !page.clock;
      for (const name of ["timeline", "heat"]) page.draw(name);
      return page.clock;
    });
    tools.append(clock);
  }
  setAll(page.hosts.timeline, { tabindex: 0, role: "group", "aria-label": "Timeline; arrow keys move the selection, with the shift key its end; + and - zoom, z zooms to the selection, 0 shows all" });
  page.hosts.timeline.addEventListener("keydown", (event) => {
    const step = page.edges[1] - page.edges[0], [from] = page.view();
    // Without a selection, the first time bin that is shown; with the shift key, the end moves.
    const move = (by) => {
      if (!page.span) return page.drop(from, from);
      if (!event.shiftKey) return page.slide(page.span, by);
      const edges = page.edgesOf(page.span), at = edges.findIndex((edge) => edge >= page.span[1] - 1e-9), end = edges[at + Math.sign(by)];
      const start = edges.findLast((edge) => edge <= page.span[0]); // it may be that of a finer bin
      if (end > start) page.select([start, end]);
    };
    const act = {
      "+": () => page.zoomAround(middle(), 0.5), "-": () => page.zoomAround(middle(), 2), 0: () => page.zoom(null),
      z: () => page.zoom(page.span), ArrowLeft: () => move(-step), ArrowRight: () => move(1.5 * step),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act();
  });
  page.showTools = () => {
    zoom.disabled = !page.span;
    all.disabled = !page.zoomed;
  };
  page.showTools();
}

// Only where a kernel can be asked: what the slow requests of the selection have in common.
function explainTool(page, tools) {
  const place = el("div", { id: "explained", role: "status" }), words = "What do slow requests have in common?";
  let asked = "";
  const own = button(words, "Of the selection; compared with all other requests", () => {
    own.disabled = true;
    asked = page.find("selected")?.textContent ?? "the whole run";
    place.replaceChildren(el("p", { class: "quiet" }, "Comparing \u2026"));
    page.explain(page.span);
  });
  tools.append(own);
  page.root.querySelector(".views").after(place);
  page.showExplained = (html) => {
    own.disabled = false;
    place.scrollIntoView({ block: "nearest" });
    const found = document.createRange().createContextualFragment(html || "<p>Nothing that chance does not explain.</p>");
    place.replaceChildren(el("h3", {}, `Slow requests of ${asked}`), found);
    page.label(place.querySelectorAll("table"));
    place.scrollIntoView({ block: "start" });
  };
}

function solo(page, place) {
  const alone = page.series.every((one, k) => one.hidden === (k !== place));
  page.series.forEach((one, k) => (one.hidden = !alone && k !== place));
  page.showSeries();
  page.refresh();
}

const quoted = (text) => (/^[\w./=:@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

const OPTIONS = { format: "--format-in", series: "--series", tag: "--tag", measure: "--measure", unit: "--unit", column: "--column", start_column: "--start-column", by: "--by" };

// Where the series that are shown come from: each file, and what chooses the series in it.
function origins(page) {
  return page.series.filter((one) => !one.hidden && !one.derived).map(({ origin, data }) => {
    const { path, lenient, from, to, part, ...chosen } = origin, [start, end] = (data && spanOf(page, data)) || [];
    return { path, lenient, part, chosen, from: start ?? from, to: end ?? to };
  });
}

// What is selected of a series: of one with coarser time bins, these.
function spanOf(page, data) {
  return page.span && (ownSpan(data, page.span) || page.span);
}

// Files that are read alike share a command, and so do the tags of one file. A total beside its tags is what a file read whole has.
function commandOf(page) {
  const seconds = (moment) => quoted(typeof moment === "number" ? `${moment}s` : moment), files = new Map(), commands = new Map();
  const option = ([key, value]) => ` ${OPTIONS[key]} ${quoted(value)}`, whole = page.series.every((one) => !one.hidden);
  for (const { path, lenient, chosen: { series, tag, ...others }, from, to } of origins(page)) {
    let options = Object.entries(others).map(option).join("");
    if (lenient) options += " --lenient";
    if (from !== undefined) options += ` --from ${seconds(from)}`;
    if (to !== undefined) options += ` --to ${seconds(to)}`;
    const file = files.get(path + options) || { path, options, tags: [], series: [] };
    if (tag !== undefined) file.tags.push(option(["tag", tag]));
    if (series !== undefined) file.series.push(option(["series", series]));
    files.set(path + options, file);
  }
  for (const { path, options, tags, series } of files.values()) {
    const all = whole && tags.length && series.length;
    for (const names of all ? [[]] : [tags, series].filter((some, k) => some.length || (k === 0 && !series.length))) {
      const key = names.join("") + options;
      commands.set(key, [...(commands.get(key) || []), path]);
    }
  }
  return [...commands].map(([options, paths]) => `latencykit summary ${paths.map(quoted).join(" ")}${options}`).join("\n");
}

function pythonOf(page) {
  const text = JSON.stringify;
  const reads = origins(page).map(({ path, lenient, part, chosen: { by, ...chosen }, from, to }) => {
    const options = Object.entries(chosen).map(([key, value]) => `, ${key}=${text(value)}`).join("") + (lenient ? ", lenient=True" : "");
    const ends = [from === undefined ? "" : text(from), to === undefined ? "" : `${from === undefined ? "end=" : ""}${text(to)}`].filter(Boolean);
    const where = part === undefined ? "" : `.where(**{${text(by)}: ${text(part)}})`;
    return `lk.read(${text(path)}${options})${where}${ends.length ? `.between(${ends.join(", ")})` : ""}`;
  });
  return `import latencykit as lk\n\n${[...new Set(reads)].map((read) => `print(${read}.summary())`).join("\n")}\n`;
}

async function copy(page, own, text) {
  const label = own.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages from a file or in a frame may not write to the clipboard; a selection can be copied anywhere.
    const area = el("textarea", { readonly: "" });
    area.value = text;
    own.after(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) return page.say(text);
  }
  own.textContent = "Copied";
  page.say(`Copied: ${text}`);
  setTimeout(() => (own.textContent = label), 1200);
}

function save(page, name, type, content) {
  const link = el("a", { href: URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type })), download: name });
  page.find("explore").append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function csvOf(page) {
  const cell = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const unit = page.model.unit === "none" ? "" : `_${page.model.unit}`;
  const header = ["series", "from_s", "to_s", "requests", ...page.model.percentiles.map((p) => (p === 100 ? `max${unit}` : `p${p}${unit}`))];
  const spanOfRow = ({ data }) => (data && spanOf(page, data)) || page.span || [page.edges[0] ?? "", page.edges[page.edges.length - 1] ?? ""];
  const rows = [...page.find("numbers").rows].map((row) => [
    page.series[Number(row.dataset.series)].name, ...spanOfRow(page.series[Number(row.dataset.series)]), row.querySelector("[data-count]")?.dataset.count ?? "",
    ...[...row.querySelectorAll("[data-percentile]")].map((own) => own.dataset.value ?? ""),
  ]);
  return [header, ...rows].map((row) => row.map(String).map(cell).join(",")).join("\n") + "\n";
}

const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity", "font", "paint-order", "visibility"];

const HEAD = 46; // pixels of a saved picture's title

// A picture by itself: styles written into the elements, the heat map's pixels beneath, a title above.
function pictureOf(page, name) {
  const host = page.hosts[name], shown = host.querySelector("svg"), copied = shown.cloneNode(true);
  const from = [...shown.querySelectorAll("*")];
  [...copied.querySelectorAll("*")].forEach((own, k) => {
    const style = getComputedStyle(from[k]);
    for (const key of STYLES) own.style.setProperty(key, style.getPropertyValue(key));
  });
  copied.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const { width, height } = shown.viewBox.baseVal, canvas = host.querySelector("canvas");
  if (canvas) copied.prepend(svg("image", { href: canvas.toDataURL(), width, height }));
  const colours = getComputedStyle(page.find("explore")), colour = (key) => colours.getPropertyValue(key).trim();
  const heading = host.parentElement.querySelector("h2").textContent, chosen = name === "heat" ? page.find("heat-series")?.selectedOptions[0].text : "";
  const about = [heading, chosen, name === "curve" && page.span ? page.find("selected").textContent : ""].filter(Boolean).join(" \u00b7 ");
  const fit = (text, size) => (text.length * size * 0.56 > width - 16 ? `${text.slice(0, Math.max(8, Math.floor((width - 16) / size / 0.56)))}\u2026` : text);
  const line = (text, size, y, fill, weight) => svg("text", { x: 8, y, fill, "font-size": size, "font-weight": weight, "font-family": colours.fontFamily }, fit(text, size));
  const inner = svg("g", { transform: `translate(0 ${HEAD})` });
  inner.append(...copied.childNodes);
  copied.append(
    svg("title", {}, `${page.title} \u00b7 ${about}`),
    svg("rect", { width, height: height + HEAD, fill: colour("--ground") }),
    line(page.title, 15, 20, colour("--ink"), 700), line(about, 12.5, 38, colour("--muted"), 400),
    inner,
  );
  setAll(copied, { viewBox: `0 0 ${width} ${height + HEAD}`, width, height: height + HEAD });
  return { text: new XMLSerializer().serializeToString(copied), width, height: height + HEAD };
}

function savePicture(page, name, kind) {
  const { text, width, height } = pictureOf(page, name), blob = new Blob([text], { type: "image/svg+xml" });
  if (kind === "svg") return save(page, `${name}.svg`, blob.type, blob);
  const image = new Image(), url = URL.createObjectURL(blob);
  image.addEventListener("load", () => {
    const canvas = el("canvas", { width: 2 * width, height: 2 * height }), context = canvas.getContext("2d");
    context.scale(2, 2);
    context.drawImage(image, 0, 0, width, height);
    URL.revokeObjectURL(url);
    canvas.toBlob((png) => save(page, `${name}.png`, "image/png", png));
  });
  image.src = url;
}

// ---------------------------------------------------------------- the view in the address

// Reads the view from an address's fragment, and returns how to write it back.
export function wireAddress(page, handle) {
  const given = new URLSearchParams(location.hash.slice(1)), span = (text) => text?.split("-").map(Number).filter(Number.isFinite);
  const hidden = new Set((given.get("hide") || "").split(",").filter(Boolean).map(Number));
  page.series.forEach((one, k) => (one.hidden = hidden.has(k)));
  page.showSeries();
  const [chosen, zoomed] = ["span", "zoom"].map((name) => span(given.get(name)));
  if (hidden.size) page.refresh();
  if (zoomed?.length === 2) page.zoom(zoomed);
  if (chosen?.length === 2) handle.select(...chosen);
  const write = () => {
    const parts = [];
    if (page.span) parts.push(`span=${page.span.join("-")}`);
    if (page.zoomed) parts.push(`zoom=${page.zoomed.join("-")}`);
    const hide = page.series.flatMap((one, k) => (one.hidden ? [k] : []));
    if (hide.length) parts.push(`hide=${hide.join(",")}`);
    try {
      history.replaceState(null, "", parts.length ? `#${parts.join("&")}` : location.pathname + location.search);
    } catch {
      // A frame without an origin of its own has no address to write.
    }
  };
  let due = 0; // browsers limit how often an address may change, and each change takes milliseconds
  return () => (clearTimeout(due), (due = setTimeout(write, 150)));
}
