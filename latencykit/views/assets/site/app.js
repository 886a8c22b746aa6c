// The page: files in, answers out. latencykit itself runs in a worker, so the page stays responsive.
const LARGEST = 2 ** 31; // bytes: more than an array of the browser holds
const OTHERS = ["diagnose", "explain", "compare"];
const $ = (id) => document.getElementById(id);
const base = new URL(".", location.href).href;
let worker, files = [], tab = "report", shown = null, running = 0, ready;
const isReady = new Promise((resolve) => { ready = resolve; });

// A worker from a blob is bound by this page's policy; one from an address would not be.
async function start() {
  const source = await (await fetch("worker.js")).text();
  const blob = new Blob([`const BASE = ${JSON.stringify(base)};\n`, source], { type: "text/javascript" });
  worker = new Worker(URL.createObjectURL(blob), { type: "module" });
  worker.onerror = (event) => say(`Python did not start: ${event.message}`, true);
  worker.onmessage = ({ data }) => hear[data.what]?.(data);
}

const hear = {
  progress: ({ text, share }) => { $("progress").hidden = false; $("progress").value = share; if (!files.length) say(text); },
  ready: () => { $("progress").hidden = true; ready(); if (!files.length) say("Ready. Works offline from now on."); },
  loading: ({ text }) => say(text),
  answer: (data) => { if (data.number === running) show(data); },
  failed: ({ text, number }) => { if (number === undefined || number === running) say(text, true); },
};

function say(text, wrong = false) {
  $("state").textContent = text;
  $("state").classList.toggle("wrong", wrong);
}

function show({ command, status, text, html, notes, series }) {
  $("results").hidden = false;
  $("command").textContent = command;
  $("tab-compare").hidden = files.length < 2;
  if (series && files.length < 2 && !$("series").value) fill($("series"), ["", ...series], "", "all");
  $("series").parentElement.hidden = $("series").options.length < 3;
  if (html !== undefined) {
    if (shown) URL.revokeObjectURL(shown);
    shown = URL.createObjectURL(new Blob([html], { type: "text/html" }));
    // A frame that is used again now and then stays blank in Chromium: each report gets its own.
    const frame = $("report").cloneNode();
    frame.src = $("save").href = shown;
    $("report").replaceWith(frame);
  } else $("answer").textContent = text || notes;
  const failed = status > 1;
  $("save").hidden = tab !== "report" || failed;
  $("report").hidden = tab !== "report" || failed;
  $("answer").hidden = tab === "report" || failed;
  say(failed ? notes : notes || "Done.", failed);
}

function fill(select, values, chosen, empty) {
  select.replaceChildren(...values.map((value) => new Option(value || empty, value, false, value === chosen)));
}

async function ask() {
  if (!files.length) return;
  const large = files.find((file) => file.size > LARGEST);
  if (large) return say(`${large.name} is too large for a browser (${(large.size / 1e9).toFixed(1)} GB). The command line reads it: latencykit report ${quoted(large.name)}`, true);
  const number = ++running;
  say(`Reading ${files.map((file) => file.name).join(", ")} …`);
  await isReady;
  if (number !== running) return;
  worker.postMessage({ number, command: tab, files, unit: $("unit").value, slo: $("slo").value.trim(),
    column: $("column").value.trim(), series: $("series").value, base: $("base").value, columns: Math.max(60, Math.floor($("state").clientWidth / 8.2)) });
}

const quoted = (name) => (/^[\w.\/-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`);

function open(list) {
  const names = new Set();
  files = [...list].map((file) => {
    let name = (file.name || "pasted.txt").replace(/[\/\\\0]/g, "_").replace(/^-/, "_");
    for (let k = 2; names.has(name); k++) name = name.replace(/^(\d+ )?/, `${k} `);
    names.add(name);
    return new File([file], name);
  });
  if (!files.length) return;
  fill($("series"), [""], "", "all");
  fill($("base"), files.map((file) => file.name), files[0].name);
  $("base").parentElement.hidden = files.length < 2;
  choose("report");
}

function choose(name) {
  tab = name;
  for (const one of ["report", ...OTHERS]) {
    const on = one === name, button = $(`tab-${one}`);
    button.setAttribute("aria-selected", on);
    button.tabIndex = on ? 0 : -1;
    if (on && one !== "report") $("answer").setAttribute("aria-labelledby", button.id);
  }
  ask();
}

async function openAddress(address) {
  say(`Fetching ${address} …`);
  try {
    const url = new URL(address);
    if (url.protocol !== "https:" && url.origin !== location.origin) throw new Error("only https addresses are opened");
    const reply = await fetch(url, { credentials: "omit", referrerPolicy: "no-referrer" });
    if (!reply.ok) throw new Error(`the server answers ${reply.status}`);
    open([new File([await reply.blob()], url.pathname.split("/").pop() || "data")]);
  } catch (error) {
    say(`${address}: ${error.message}. A browser only reads from servers that allow it (CORS); the command line reads any: latencykit report ${quoted(address)}`, true);
  }
}

$("files").onclick = () => { $("files").value = ""; }; // the same file may have changed
$("files").onchange = () => open($("files").files);
$("paste").onclick = () => open([new File([$("text").value], "pasted.txt")]);
for (const id of ["unit", "slo", "column", "series", "base"]) $(id).onchange = ask;
$("options").onsubmit = (event) => event.preventDefault();
$("copy").onclick = async () => { await navigator.clipboard.writeText($("command").textContent); say("The command is copied."); };
$("examples").onclick = async (event) => {
  if (event.target.dataset.file) open([new File([await (await fetch(event.target.dataset.file)).blob()], event.target.textContent)]);
};
for (const name of ["report", ...OTHERS]) $(`tab-${name}`).onclick = () => choose(name);
$("tabs").onkeydown = (event) => {
  const shownTabs = [...$("tabs").children].filter((one) => !one.hidden);
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const next = shownTabs[(shownTabs.indexOf(document.activeElement) + step + shownTabs.length) % shownTabs.length];
  next.focus();
  next.click();
};
addEventListener("dragover", (event) => { event.preventDefault(); $("drop").classList.add("over"); });
addEventListener("dragleave", () => $("drop").classList.remove("over"));
addEventListener("drop", (event) => { event.preventDefault(); $("drop").classList.remove("over"); open(event.dataTransfer.files); });
// Other pages hand files over: "PING" is answered by "PONG" once this page listens.
addEventListener("message", ({ data, source }) => {
  if (data === "PING") source?.postMessage("PONG", "*");
  const given = data?.latencykit?.files;
  if (Array.isArray(given)) open(given.map(({ name, buffer }) => new File([buffer], String(name ?? "data"))));
});
const address = new URLSearchParams(location.hash.slice(1)).get("url");
if (address && !location.pathname.endsWith("/open.html")) location.replace(`open.html${location.hash}`); // its policy allows other servers
else {
  start().catch((error) => say(`Python did not start: ${error.message}`, true));
  if (address) openAddress(address);
  navigator.serviceWorker?.register("offline.js").catch(() => {});
}
