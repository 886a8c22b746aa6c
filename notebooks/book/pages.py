"""The pages of the site that are made from what is elsewhere: lessons, gallery, reference, commands, load generators."""

from __future__ import annotations

import contextlib
import html
import importlib
import inspect
import json
import os
import re
import shutil
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import latencykit as lk
from latencykit import cli
from latencykit._files import whole
from latencykit.views.site import write_site

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parents[2]
MADE = ("lessons", "reference", "commands", "load-generators")
"""Folders that are written anew for each build."""

INTERACTIVE = {
    "ctrlz": (
        "One server, one freeze of six seconds, two clients",
        {"one reply at a time": "ctrlz-uncorrected.hlog", "on schedule": "ctrlz-scheduled.hlog"},
    ),
    "gc": ("A minute of a JVM's pauses", {"jHiccup": "jhiccup-gc.hlog"}),
}
"""Name of an interactive page → its title and its logs in ``data``."""

_LIVE_OUTPUT = "application/vnd.latencykit.live+html"
_LIVE = """<figure class="live">
<iframe src="{up}interactive/{name}.html" title="{title}, interactive" loading="lazy"></iframe>
<figcaption>{caption} <a href="{up}interactive/{name}.html">Open it on a page of its own.</a></figcaption>
</figure>
"""
_CAPTIONS = {
    "ctrlz": "This is <code>latencykit report</code>, live: drag over the six seconds in the timeline, and the curves and "
    "the numbers are those of that span. Click a name to hide its curve.",
    "gc": "Drag over a pause: which percentiles does it own?",
}
_IN_LESSONS = {"05-ctrl-z": "ctrlz", "02-reading-the-nines-axis": "gc"}
"""Lesson → the interactive page at its end."""


def write(book: Path) -> None:
    """Write all made pages into the folder of the book."""
    for name in MADE:
        shutil.rmtree(book / name, ignore_errors=True)
    _lessons(book / "lessons")
    _gallery(book / "gallery")
    _reference(book / "reference")
    _commands(book / "commands")
    _load_generators(book / "load-generators")
    for name, source in (
        ("formats", ROOT / "notebooks/formats.md"),
        ("benchmarks", ROOT / "tests/benchmarks/README.md"),
        ("changes", ROOT / "CHANGELOG.md"),
        ("contributing", ROOT / "CONTRIBUTING.md"),
    ):
        _write(book / f"{name}.md", _in_order(source.read_text("utf-8")))


def _write(path: Path, text: str) -> None:
    """Write a page if it differs: Sphinx reads again what is newer."""
    if not path.exists() or path.read_text("utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def _toctree(entries: Iterable[str], **options: str) -> str:
    lines = [f":{name}: {value}".rstrip() for name, value in options.items()]
    return "\n".join(["```{toctree}", *lines, "", *entries, "```", ""])


def _in_order(text: str) -> str:
    """Headings increase by one level at a time, as a page's outline must."""
    lines, level, fenced = [], 1, False
    shift: dict[int, int] = {}
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        heading = None if fenced else re.match(r"(#+) ", line)
        if heading:
            depth = len(heading[1])
            now = shift.get(depth, min(depth, level + 1))
            shift = {old: new for old, new in shift.items() if old < depth} | {depth: now}
            level, line = now, "#" * now + line[depth:]
        lines.append(line)
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------- lessons
def _lessons(folder: Path) -> None:
    """The notebooks with their outputs, and the README of the lessons as their first page."""
    source = ROOT / "notebooks"
    text = (source / "README.md").read_text("utf-8")
    for old, new in (
        ("(formats.md)", "(../formats.md)"),
        ("(load-generators.md)", "(../load-generators/index.md)"),
        ("(solutions)", "(solutions/index.md)"),
    ):
        text = text.replace(old, new)
    _write(folder / "glossary.md", (source / "glossary.md").read_text("utf-8"))
    _write(folder / "teaching.md", (source / "teaching.md").read_text("utf-8").replace("(README.md)", "(index.md)"))
    lessons = sorted(source.glob("*.ipynb"))  # the numbered ones first
    text += "\n" + _toctree([*(path.stem for path in lessons), "teaching", "glossary", "solutions/index"], hidden="")
    _write(folder / "index.md", text)
    for path in lessons:
        notebook = json.loads(path.read_text("utf-8"))
        _tidy(notebook)
        if path.stem in _IN_LESSONS:
            notebook["cells"].append(_cell(live(_IN_LESSONS[path.stem], "../")))
        _write(folder / path.name, json.dumps(notebook))
    solutions = sorted((source / "solutions").glob("*.ipynb"))
    for path in solutions:
        notebook = json.loads(path.read_text("utf-8"))
        _tidy(notebook)
        _write(folder / "solutions" / path.name, json.dumps(notebook))
    _write(
        folder / "solutions" / "index.md",
        "# Solutions\n\nOne way to solve every exercise. Try first: each lesson gives hints before its solution.\n\n"
        + _toctree([path.stem for path in solutions]),
    )


def _cell(markdown: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": markdown, "id": "live"}


def _tidy(notebook: dict[str, Any]) -> None:
    """Links of a lesson as they are on the site; outputs that need a kernel go, their pictures stay.

    Descriptions of pictures go, for the pictures have them as alternative text.
    """
    described = "<details><summary>Description of the picture"
    notebook["cells"] = [cell for cell in notebook["cells"] if not "".join(cell["source"]).startswith(described)]
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            source = "".join(cell["source"])
            source = source.replace("](README.md", "](index.md")
            source = source.replace("](formats.md", "](../formats.md")
            cell["source"] = source.replace("](load-generators.md", "](../load-generators/index.md")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if _LIVE_OUTPUT in data:  # a control that runs in the browser, without a kernel
                live = data["text/html"] = data.pop(_LIVE_OUTPUT)
                if re.search('data-kind="(ask|predict)"', "".join(live)):
                    cell["metadata"].setdefault("tags", []).append("question")
            if len(data) > 1:
                data.pop("application/vnd.jupyter.widget-view+json", None)
    notebook["metadata"].pop("widgets", None)


def fold_answers(app: Any, doctree: Any) -> None:  # noqa: ARG001 - Sphinx's signature
    """Fold what follows a question into ``<details>``, which ``controls.js`` opens with the answer."""
    from docutils import nodes

    questions = [node for node in doctree.findall(nodes.container) if "tag_question" in node["classes"]]

    def folded(parent: Any, after: int, outside: int) -> int:
        """Fold the children of a node; `after` and the result are the questions above and at its end."""
        children, group = [], outside
        for child in parent.children:
            if after != group:
                children += [] if group == outside else [_raw("</details>")]
                children += [_raw(_BELOW.format(after))]
                group = after
            children.append(child)
            if isinstance(child, nodes.section):
                after = folded(child, after, after)
            after += any(child is one for one in questions)
        parent.children = []
        parent.extend([*children, *([] if group == outside else [_raw("</details>")])])
        return after

    if questions:
        folded(doctree, 0, 0)


_BELOW = '<details class="below" data-after="{}"><summary>Answer the question above first; then open this.</summary>'


def _raw(text: str) -> Any:
    from docutils import nodes

    return nodes.raw("", text, format="html")


def load_controls(app: Any, page: str, template: str, context: Any, doctree: Any) -> None:  # noqa: ARG001 - Sphinx's signature
    """Load the controls on the pages of lessons."""
    if page.startswith("lessons/"):
        script = context["pathto"]("_static/controls.js", resource=True)
        app.add_js_file(None, type="module", body=f'import {{ mountAll }} from "{script}"; mountAll();')


def live(name: str, up: str = "") -> str:
    """Return the HTML that embeds an interactive page; `up` leads to the site's top."""
    return _LIVE.format(name=name, up=up, title=html.escape(INTERACTIVE[name][0]), caption=_CAPTIONS[name])


def write_interactive(app: Any, error: Exception | None) -> None:
    """Write the interactive pages into the finished site."""
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "interactive"
    folder.mkdir(exist_ok=True)
    for name, (_, logs) in INTERACTIVE.items():
        lk.report(
            {label: lk.read(ROOT / "data" / log) for label, log in logs.items()},
            folder / f"{name}.html",
        )


def write_page(app: Any, error: Exception | None) -> None:
    """Write latencykit as a web page into the finished site, where its runtime can be had."""
    if error is not None or app.builder.format != "html":
        return
    runtime = os.environ.get("LATENCYKIT_PYODIDE")
    if runtime:
        write_site(Path(app.outdir) / "try", runtime)
    else:
        print("the page try/ is left out: LATENCYKIT_PYODIDE names no folder or address of Pyodide")


def describe_pictures(app: Any, doctree: Any) -> None:  # noqa: ARG001 - Sphinx's signature
    """Give each picture of a lesson the sentence that follows it as its description."""
    from docutils import nodes

    following: str | None = None
    for node in reversed(list(doctree.findall())):
        if isinstance(node, nodes.paragraph):
            following = node.astext().replace("\n", " ")
        elif isinstance(node, nodes.image) and not node.get("alt"):
            node["alt"] = (following or "A chart")[:400]


# ---------------------------------------------------------------- gallery
def _gallery(folder: Path) -> None:
    """One page per script: its docstring, its code, the picture that it draws, and the command that draws the same."""
    entries = []
    for script in sorted(folder.glob("*.py")):
        title, text, command, code = gallery_page(script)
        images = ""
        for kind, size in SIZES.items():
            picture = folder / f"{script.stem}{'-narrow' * (kind == 'narrow')}.png"
            if not picture.exists() or picture.stat().st_mtime < newest_source(script):
                draw(script, picture, size)
            images += f"```{{image}} {picture.name}\n:alt: {_alt(text)}\n:class: {kind}\n```\n\n"
        page = f"# {title}\n\n{text}\n\n{images}```python\n{code.strip()}\n```\n"
        if command:
            page += f"\nOn the command line:\n\n```console\n{command}\n```\n"
        name = f"latencykit.plot.{script.stem}"
        if script.stem in lk.plot.__all__:
            page += f"\nAll options: {{py:obj}}`{name}`.\n"
        _write(folder / f"{script.stem}.md", page)
        entries.append((script.stem, title, text))
    cards = "".join(
        f'<a class="card" href="{stem}.html"><img class="wide" src="../_images/{stem}.png" alt="">'
        f'<img class="narrow" src="../_images/{stem}-narrow.png" alt=""><b>{html.escape(title)}</b></a>\n'
        for stem, title, _ in entries
    )
    _write(
        folder / "index.md",
        "# Gallery\n\nOne page per chart, with the code that drew it from the files in `data`.\n\n"
        f'<div class="cards">\n{cards}</div>\n\n' + _toctree([stem for stem, _, _ in entries], hidden=""),
    )


def newest_source(script: Path) -> float:
    """The time of the newest file that decides what a chart looks like."""
    plots = (ROOT / "latencykit" / "plot").glob("*.py")
    return max(path.stat().st_mtime for path in (script, Path(__file__), *plots))


def gallery_page(script: Path) -> tuple[str, str, str, str]:
    """Return title, text, command and code of a script of the gallery."""
    source = script.read_text("utf-8")
    _, docstring, code = source.split('"""', 2)
    text, _, command = docstring.partition("\n$ ")
    title, _, text = text.strip().partition("\n")
    return title.rstrip("."), text.strip(), f"$ {command.strip()}" if command else "", code


SIZES = {"wide": (9.0, 5.2), "narrow": (5.2, 4.8)}
"""Inches of a picture for wide and for narrow screens, on which the letters of a wide one are too small."""


def draw(script: Path, picture: Path, size: tuple[float, float] = SIZES["wide"]) -> None:
    """Run a script of the gallery in the repository's folder, and save its picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")
    with contextlib.chdir(ROOT), mpl.rc_context({"figure.figsize": size}):
        names: dict[str, Any] = {"__name__": "gallery"}
        exec(compile(script.read_text("utf-8"), str(script), "exec"), names)  # noqa: S102 - our own
    with whole(picture) as temporary:
        names["ax"].figure.savefig(temporary, dpi=150, format="png", bbox_inches="tight")
    plt.close("all")


def _alt(text: str) -> str:
    return re.sub(r"[\[\]`*]", "", text.replace("\n", " "))[:300]


# ---------------------------------------------------------------- reference
_GROUPS = {
    "io": "Read and write",
    "core": "Data types",
    "analysis": "Analyse",
    "views": "Interactive pages",
    "record": "Measure",
    "ctrlz": "Measure",
    "": "Packages and limits",
    "errors": "Errors",
}
"""Package, or module where it differs from its package → the heading of its public names."""


def _reference(folder: Path) -> None:
    """A page per public class and function, in groups; modules and errors have one page each."""
    groups: dict[str, list[str]] = {title: [] for title in _GROUPS.values()}
    for name, where in lk._MODULE_OF.items():
        package = where.partition(".")[0]
        groups[_GROUPS.get(where) or _GROUPS.get(package, _GROUPS[""])].append(name)
    parts = [
        "# Reference\n\nThe public names, as `import latencykit as lk` gives them. What is not listed here is private and may "
        "change at any time. The examples are run by the tests.\n"
    ]
    errors = groups.pop("Errors")
    for title, names in groups.items():
        rows, entries = [], []
        for name in sorted(names, key=str.lower):
            thing = getattr(lk, name)
            # lk.Sweep and lk.sweep are one file where the case of names does not count.
            page = f"{name}-class" if name != name.lower() and name.lower() in lk._MODULE_OF else name
            entries.append(page)
            rows.append(f"| [`lk.{name}`]({page}.md) | {_first_line(thing)} |")
            if inspect.ismodule(thing):
                _write(folder / f"{page}.md", _module_page(thing.__name__, thing.__all__, thing))
            else:
                _write(folder / f"{page}.md", _object_page(name, thing))
        parts += [f"## {title}\n", "| name | |\n|---|---|", *rows, "", _toctree(entries, hidden="")]
    _write(folder / "errors.md", _errors_page(errors))
    testing = importlib.import_module("latencykit.testing")
    _write(folder / "testing.md", _module_page("latencykit.testing", testing.__all__, testing))
    parts += [
        "## Errors and tests\n",
        "| name | |\n|---|---|",
        "| [Errors](errors.md) | Every error that latencykit raises; each is a `LatencyKitError`. |",
        f"| [`latencykit.testing`](testing.md) | {_first_line(testing)} |\n",
        _toctree(["errors", "testing"], hidden=""),
    ]
    _write(folder / "index.md", "\n".join(parts))


def _first_line(thing: Any) -> str:
    text = (inspect.getdoc(thing) or "").strip().split("\n\n")[0].replace("\n", " ").replace("::", ".")
    return re.sub(r"``?([^`]+)``?", r"`\1`", text).replace("|", "\\|")


def _object_page(name: str, thing: Any) -> str:
    if inspect.isclass(thing):
        kind, options = "autoclass", ["   :members:", "   :inherited-members: object,dict,tuple"]
    elif callable(thing):
        kind, options = "autofunction", []
    else:
        kind, options = "autodata", ["   :no-value:"]
    body = "\n".join([f".. {kind}:: latencykit.{name}", *options])
    return f"# lk.{name}\n\n```{{eval-rst}}\n{body}\n```\n"


def _module_page(module: str, names: Iterable[str], thing: Any) -> str:
    rows = [f".. automodule:: {module}", ""]
    for name in sorted(names, key=str.lower):
        kind = "autoclass" if inspect.isclass(getattr(thing, name)) else "autofunction"
        rows += [f".. {kind}:: {module}.{name}", "   :members:" if kind == "autoclass" else "", ""]
    return f"# {module.replace('latencykit', 'lk', 1)}\n\n```{{eval-rst}}\n" + "\n".join(rows) + "\n```\n"


def _errors_page(names: Iterable[str]) -> str:
    rows = [f".. autoexception:: latencykit.{name}\n   :show-inheritance:\n" for name in names]
    return "# Errors\n\n```{eval-rst}\n" + "\n".join(rows) + "\n```\n"


# ---------------------------------------------------------------- commands
def _commands(folder: Path) -> None:
    """A page per command, from the same objects that print its help."""
    defaults = cli.cli.context_settings["show_default"]
    root = click.Context(cli.cli, info_name="latencykit", show_default=defaults)
    parts = [
        "# Commands\n\nThe same texts as `latencykit COMMAND --help`; "
        "`latencykit completion` prints the script that completes them in a shell. FILES are paths, globs quoted or not, "
        "URLs, `NAME=path` for a label, or `-` for standard input.\n\nExit status: 0 done, 1 a verdict is negative, 2 usage or "
        "unreadable input, 130 interrupted, 141 the reader of the output has closed it.\n"
    ]
    for task, examples in cli.TASKS.items():
        commands = {example.split()[0]: text for example, text in examples.items()}
        parts += [f"## {task}\n", "| command | |\n|---|---|"]
        parts += [f"| [`latencykit {name}`]({name}.md) | {text} |" for name, text in commands.items()]
        parts += ["", _toctree(list(commands), hidden="")]
        for name in commands:
            command = cli.cli.get_command(root, name)
            assert command is not None
            context = click.Context(command, info_name=name, parent=root)
            page = _command_page(command, context)
            parts_of = command.commands if isinstance(command, click.Group) else {}
            for part, inner in parts_of.items():
                page += "\n" + _command_page(inner, click.Context(inner, info_name=part, parent=context)).replace("# ", "## ", 1)
            _write(folder / f"{name}.md", page)
    _write(folder / "index.md", "\n".join(parts))


class _Markdown(click.HelpFormatter):
    """Writes what click writes as help in Markdown."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:  # noqa: ARG002 - click's
        self.write(f"```text\n{prog} {args}\n```\n\n")

    def write_paragraph(self) -> None:
        """Every text begins with its own paragraph."""

    def write_text(self, text: str) -> None:
        for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
            if paragraph.startswith("\b"):
                shown = re.sub(r"(?m)^(?=\S)", "$ ", paragraph.strip("\b\n"))
                shown = re.sub(r"\n(?=\s)", " \\\\\n>", shown)  # a command of two lines
                self.write(f"```console\n{shown}\n```\n\n")
            else:
                self.write(f"{_escaped(paragraph)}\n\n")

    def write_dl(self, rows: Any, *_: object, **__: object) -> None:
        for term, text in rows:
            self.write(f"`{term}`\n: {_escaped(text)}\n\n")

    @contextlib.contextmanager
    def section(self, name: str) -> Iterator[None]:
        self.write(f"## {name}\n\n")
        yield


def _command_page(command: click.Command, context: click.Context) -> str:
    formatter = _Markdown()
    formatter.write(f"# latencykit {command.name}\n\n")
    command.format_help(context, formatter)
    return formatter.getvalue()


def _escaped(text: str) -> str:
    return re.sub(r"([*_<>\[\]\\$])", r"\\\1", text)


# ---------------------------------------------------------------- load generators
_VERDICTS = {
    "honest": "the report shows the stall, with values close to the truth",
    "partly": "the report shows a part of what the stall delayed",
    "omits": "the requests that were due while the server was frozen are missing from the report, and with them the tail",
    "loses": "requests that the stall delayed were sent, and are not among the reported values",
    "clips": "values above a limit are reported as that limit",
    "overcorrects": "the correction adds more slow requests than users would have felt",
    "unknown": "the report does not contain enough to decide",
    "not run": "it was not tested",
}
_DETAIL = {
    "samples": "one row per request. Every percentile that the number of requests supports can be computed, p99.99 from 100,000 on.",
    "log": "a histogram per interval. p99.99 can be computed from 100,000 requests on, and compared over time.",
    "histogram": "buckets or percentiles. p99.99 is as exact as the bucket that it falls into; a wide one is shown as a range.",
    "summary": "statistics only. No p99.99 can be computed from it, unless the tool prints p99.99 itself.",
}
_FILLED = {
    "url": "http://127.0.0.1:8080/", "host": "127.0.0.1", "port": "8080", "rate": "1000", "rate_per_connection": "250",
    "connections": "4", "duration": "60", "requests": "60000", "out": "out", "out.json": "out.json", "out.csv": "out.csv",
    "many": "100000000",
}  # fmt: skip
"""What stands for the placeholders of `latencykit ctrlz` in a command to copy."""


def _load_generators(folder: Path) -> None:
    """The league's table, and a page per load generator from its rows, its description and its formats."""
    source = ROOT / "notebooks"
    text = (source / "load-generators.md").read_text("utf-8")
    text = re.sub(r"\[([^\]]+)\]\(league/?\)", r"\1", text)  # a folder has no page
    text = text.replace("](05-ctrl-z.ipynb)", "](../lessons/05-ctrl-z.ipynb)")
    rows = [row for row in _table(text) if row["verdict"] != "not run"]
    reasons = {}
    for path in (source / "load-generators.json", *sorted((source / "league").glob("*.json"))):
        record = json.loads(path.read_text("utf-8")) if path.exists() else {}
        for result in record.get("results", []) if isinstance(record, dict) else []:
            reasons[result["tool"], result["mode"]] = result.get("reasons", [])
    for path in (source / "league").glob("*.json"):  # the table's page offers them for download
        _write(folder / "league" / path.name, path.read_text("utf-8"))
    tools = list(dict.fromkeys(row["tool"] for row in rows if row["tool"] != "latencykit"))
    for tool in tools:
        description = source / "league" / f"{tool}.toml"
        entry = tomllib.loads(description.read_text("utf-8")) if description.exists() else {}
        own = [row for row in rows if row["tool"] == tool]
        _write(folder / f"{tool}.md", _load_generator_page(tool, own, entry, reasons))
    links = ", ".join(f"[{tool}]({tool}.md)" for tool in sorted(tools, key=str.lower))
    text += f"\n## Load generator by load generator\n\nWhat each one omits, which flags make it honest, and how to get p99.99 out of it: {links}.\n\n"
    text = re.sub(r"^\| ([\w-]+) \| (\w[\w, ]*) \| ([^|]*) \|", _marked, text, flags=re.MULTILINE)
    wide = "---\nhtml_theme.sidebar_secondary.remove: true\n---\n\n"  # room for nine columns
    _write(folder / "index.md", wide + text + _toctree(sorted(tools, key=str.lower), hidden=""))


def _marked(row: re.Match[str]) -> str:
    """A row of the table with an anchor to link to, and its verdict in colour."""
    tool, verdict, mode = row.groups()
    anchor = re.sub(r"\W+", "-", f"{tool} {mode}").strip("-").lower()
    kind = verdict.split(",")[0]
    if kind not in _VERDICTS and kind != "unknown":
        return row[0]
    return f'| <a id="{anchor}" href="#{anchor}">{tool}</a> | <span class="verdict {kind}">{verdict}</span> | {mode} |'


def _table(text: str) -> list[dict[str, str]]:
    """Return the rows of the table whose first heading is ``tool``."""
    lines = [re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line] for line in lines]
    first = next(k for k, row in enumerate(cells) if row[0] == "tool")
    return [dict(zip(cells[first], row, strict=True)) for row in cells[first + 2 :] if len(row) == len(cells[first])]


def _load_generator_page(
    tool: str, rows: list[dict[str, str]], entry: dict[str, Any], reasons: dict[tuple[str, str], list[str]]
) -> str:
    shown = ("mode", "model", "reported p99", "true p99", "reported max", "verdict")
    lines = [f"# {tool}\n", "## What it reports of a stall\n"]
    version = next((f" {row['version']}" for row in rows if row.get("version")), "")
    lines += [f"{tool}{version}, against a server that was frozen during the run:\n", f"| {' | '.join(shown)} |", "|---|---|--:|--:|--:|---|"]
    lines += [f"| {' | '.join(row[name] for name in shown)} |" for row in rows]
    lines.append("")
    for row in rows:
        verdict = row["verdict"].strip("*")
        why = "; ".join(_escaped(text) for text in reasons.get((tool, row["mode"]), []))
        lines.append(f"- {row['mode']}: **{verdict}**, {_VERDICTS.get(verdict, 'not decided')}" + (f" ({why})." if why else "."))
    lines.append("\n## Flags that make it honest\n")
    advice = {row["mode"]: row["what to use instead"] for row in rows}
    lines += [f"- {mode}: {text}" for mode, text in advice.items()]
    modes = {mode["name"]: mode for mode in entry.get("modes", [])}
    honest = [modes[row["mode"]] for row in rows if row["verdict"].strip("*") == "honest" and row["mode"] in modes]
    for mode in honest:
        command = re.sub(r"\{([\w.]+)\}", lambda hit: _FILLED.get(hit[1], hit[0]), mode["command"])
        lines.append(f"\n```sh\n{command}\n```")
    if not honest and not any("honest" in row["verdict"] for row in rows):
        lines.append(
            "\nNo mode that was tried reports the stall. Use it for throughput and for service times, and an open-loop generator "
            "for the latency that users see; or record every request with its start, and let "
            "[`latencykit diagnose`](../commands/diagnose.md) estimate what is missing. A p99.99 of the values that are left is "
            "a number about service times only."
        )
    lines.append("\n## How to get p99.99 out of it\n")
    formats = _formats_of(tool)
    for one in formats:
        lines += [f"{one.title}: {_DETAIL[one.level]}\n", f"```sh\n{one.example}\n```\n"]
    if not formats:
        lines.append("latencykit reads the percentiles that it prints.\n")
    lines.append("Test your own version and flags: [`latencykit ctrlz`](../commands/ctrlz.md). All of them: [the table](index.md).\n")
    if "install" in entry:
        lines.append(f"Installed with `{entry['install']}`.\n")
    return "\n".join(lines)


def _formats_of(tool: str) -> list[Any]:
    """Return the formats of a load generator, the most detailed first."""
    from latencykit.io.registry import builtin_formats

    name = tool.removesuffix("_benchmark").lower()
    order = list(_DETAIL)
    own = [one for one in builtin_formats() if one.name == name or one.name.startswith(f"{name}-")]
    return sorted(own, key=lambda one: (order.index(one.level), one.name))
