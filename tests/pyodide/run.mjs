// node run.mjs RUNTIME CHECKOUT PACKAGES PYTEST-ARGUMENTS…: pytest in Pyodide over a checkout.
const [runtime, checkout, packages, ...words] = process.argv.slice(2);
// What Pyodide throws at the end has its whole source in the stack.
process.on("uncaughtException", (error) => {
  console.error(String(error.message ?? error).slice(-2000));
  process.exit(4);
});
const { loadPyodide } = await import(`${runtime}/pyodide.mjs`);
const python = await loadPyodide({ indexURL: `${runtime}/`, packages: packages.split(",") });
const { FS } = python;
for (const [name, root] of [["/checkout", checkout], ["/pure", `${runtime}/pure`]]) {
  FS.mkdirTree(name);
  FS.mount(FS.filesystems.NODEFS, { root }, name);
}
python.globals.set("words", python.toPy(words));
const status = python.runPython(`
import os, sys
sys.path[:0] = ["/checkout", "/pure"]
sys.dont_write_bytecode = True
os.chdir("/checkout")
os.environ["LATENCYKIT_KERNEL"] = "no"
import pytest, socket
def no_server(*_):  # node's own would end Python
    raise OSError("emscripten does not support servers")
socket.socket.listen = no_server
int(pytest.main(list(words)))
`);
process.exit(status);
