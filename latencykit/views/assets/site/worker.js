// Runs latencykit's own commands in Python compiled to WebAssembly. BASE: the folder of the page.
const tell = (what, rest = {}) => postMessage({ what, ...rest });

async function start() {
  const { loadPyodide } = await import(`${BASE}pyodide/pyodide.mjs`);
  tell("progress", { text: "Python is starting … (10 MB, once)", share: 0.1 });
  const python = await loadPyodide({
    indexURL: `${BASE}pyodide/`,
    lockFileURL: `${BASE}python/lock.json`,
    stdLibURL: `${BASE}python/python_stdlib.zip`,
    packages: ["latencykit"],
  });
  tell("progress", { text: "latencykit is starting …", share: 0.7 });
  const { answer, warm_up } = python.pyimport("latencykit.cli.in_page");
  tell("ready");
  setTimeout(warm_up); // a file that is dropped meanwhile needs the same imports
  return { python, answer };
}

const started = start();
started.catch((error) => tell("failed", { text: `Python did not start: ${error.message}` }));

let mounted = false;
function mount({ FS }, files) {
  if (mounted) FS.unmount("/files");
  else FS.mkdirTree("/files");
  FS.mount(FS.filesystems.WORKERFS, { blobs: files.map((file) => ({ name: file.name, data: file })) }, "/files");
  mounted = true;
}

onmessage = async ({ data }) => {
  const { python, answer } = await started;
  try {
    mount(python, data.files);
    for (const tried = new Set(); ;) {
      const result = answer.callKwargs(JSON.stringify({ ...data, files: data.files.map((file) => file.name) }), {});
      const reply = JSON.parse(result);
      const needed = (reply.needs ?? []).filter((name) => !tried.has(name)), named = reply.needs?.join(" and ");
      if (!needed.length || reply.html) tell("answer", { status: 2, notes: `${named} could not be loaded`, ...reply, number: data.number });
      if (!needed.length) return;
      for (const name of needed) tried.add(name);
      tell("loading", { text: `Loading ${named}, ${reply.html ? "to explain slow requests" : "which this format needs"} (once) …` });
      await python.loadPackage(needed);
    }
  } catch (error) {
    tell("failed", { text: String(error.message ?? error).trim().split("\n").pop(), number: data.number });
  }
};
