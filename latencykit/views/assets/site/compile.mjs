// node compile.mjs RUNTIME FOLDER: make packages start sooner. FOLDER/start/PACKAGE is loaded with the page, FOLDER/later/PACKAGE
// when a format needs it. What is imported to read a log becomes byte code; the rest of start only gets smaller.
const [runtime, folder] = process.argv.slice(2);
const { loadPyodide } = await import(`${runtime}/pyodide.mjs`);
const python = await loadPyodide({ indexURL: `${runtime}/`, args: ["-X", "no_debug_ranges"], packages: ["numpy", "click"] });
python.FS.mkdirTree("/packages");
python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, "/packages");
python.runPython(`
import ast, marshal, sys
from importlib.util import MAGIC_NUMBER
from pathlib import Path

folder = Path("/packages")
sys.dont_write_bytecode = True
sys.path.insert(0, str(folder / "start" / "latencykit.zip"))
from latencykit.cli.in_page import warm_up

warm_up()
imported = set(sys.modules)
unchecked = MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)  # byte code of no particular source

class Optimized(ast.NodeTransformer):
    """As python -OO: no docstrings, no assertions."""
    def visit(self, node):
        if isinstance(node, ast.Assert):
            return ast.Pass()
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node, False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)

for source in sorted(folder.rglob("*.py")):
    when, _, *parts = source.relative_to(folder).with_suffix("").parts
    module = ".".join(parts).removesuffix(".__init__")
    tree = ast.parse(source.read_bytes())
    if when == "start":
        tree = ast.fix_missing_locations(Optimized().visit(tree))
    if when == "later" or module in imported:
        name = "/".join(parts) + ".py"
        source.with_suffix(".pyc").write_bytes(unchecked + marshal.dumps(compile(tree, name, "exec", dont_inherit=True)))
        source.unlink()
    else:
        source.write_text(ast.unparse(tree), "utf-8")
`);
process.exit(0);
