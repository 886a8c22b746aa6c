"""Modules that lie beside a log are never run, by no command and not by JupyterLab's viewer."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import urllib.error
import urllib.request
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.conftest import RAW, needs_package, python
from tests.servers import TOKEN, jupyterlab

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

NAMES = (
    "click", "ctypes", "json", "jupyterlab", "numpy", "pandas", "pickle", "pyarrow", "select",
    "socket", "tempfile",
)  # fmt: skip
CLIENT = ["-P", "-m", "latencykit.ctrlz.client", "closed", "{url}", "--duration", "{duration}s"]
CLIENT = [sys.executable, *CLIENT, "--rate", "50", "-o", "{out}"]
SIMULATED = """
import sys
rate, duration, out = float(sys.argv[1]), float(sys.argv[2].rstrip('s')), sys.argv[3]
rows = [f"{k / rate},{2 + k % 7}" for k in range(int(rate * duration))]
open(out, "w").write("start_s,latency_ms\\n" + "\\n".join(rows) + "\\n")
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with a log and modules that leave a mark when they are run."""
    folder = tmp_path / "downloads"
    for name in ("latencykit", "multiprocessing"):
        (folder / name).mkdir(parents=True)
    files = [*(f"{name}.py" for name in NAMES)]
    files += ["latencykit/__init__.py", "multiprocessing/__init__.py"]
    for name in files:
        mark = str(tmp_path / f"ran-{name.replace('/', '-')}")
        (folder / name).write_text(f"open({mark!r}, 'w').close()\nraise ImportError('hostile')\n")
    shutil.copy(RAW, folder / "run.hlog")
    return folder


def marks(folder: Path) -> list[str]:
    """The hostile modules that were run."""
    return sorted(path.name for path in folder.parent.glob("ran-*"))


COMMANDS = {
    "ctrlz": ["ctrlz", "--stall", "0.2s", "--duration", "0.8s", "--", *CLIENT],
    "ctrlz --server": [
        "ctrlz", "--stall", "0.2s", "--duration", "0.8s", "--server",
        f"{sys.executable} -P -m latencykit.ctrlz.server --port {{port}}", "--", *CLIENT,
    ],
    "hiccup": ["hiccup", "-o", "out.hlog", "--duration", "0.2s"],
    "sweep": [
        "sweep", "--slo", "99=20ms", "--from", "200", "--to", "400", "--duration", "1s", "--",
        sys.executable, "-P", "simulated.py", "{rate}", "{duration}", "{out.csv}",
    ],
    "processes": ["-q", "summary", "--merge", "--jobs", "2", "many/*.hlog"],
    "lab": ["lab", "lessons"],
    "chart": ["chart", "run.hlog", "-o", "a.png"],
    "report": ["report", "run.hlog", "-o", "a.html"],
}  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_modules_beside_a_log_are_not_run(hostile: Path, words: list[str]) -> None:
    (hostile / "simulated.py").write_text(SIMULATED, encoding="utf-8")
    (hostile / "matplotlibrc").write_text("backend: module://hostile\n", encoding="utf-8")
    if "many/*.hlog" in words:
        (hostile / "many").mkdir()
        for number in range(800):
            (hostile / "many" / f"{number}.hlog").symlink_to(RAW)
    nowhere = hostile / "run.hlog"  # no folder: JupyterLab ends at once
    program = hostile.parent / "latencykit"  # as the installed program
    code = "from latencykit.__main__ import program\nif __name__ == '__main__': program()\n"
    program.write_text(code)
    env = os.environ | {"JUPYTER_RUNTIME_DIR": str(nowhere)}
    done = python(program, *words, cwd=hostile, env=env, check=False)
    assert marks(hostile) == [], done.stderr
    assert "hostile" not in done.stderr
    if words[0] == "lab":  # without the extra, too, it looks for JupyterLab, and not here
        missing = find_spec("jupyterlab") is None
        ended = "pip install jupyterlab" if missing else "JupyterLab ended"
        assert ended in done.stderr, done.stderr
    else:
        assert done.returncode in (0, 1), done.stderr


@pytest.mark.needs_tool
@needs_package("jupyter_server", "lab")
def test_the_viewer_runs_nothing_beside_a_log(hostile: Path) -> None:
    from latencykit.jupyter import server

    (hostile / "-o.hlog").write_bytes(RAW.read_bytes())
    (hostile / "a=b[1].hlog").write_bytes(RAW.read_bytes())
    for name in ("run.hlog", "-o.hlog", "a=b[1].hlog"):
        page = asyncio.run(server._page(hostile / name)).decode()
        assert "6,852 requests" in page
        assert str(hostile) not in page
    (hostile / "--help").write_text("nonsense\n")
    with pytest.raises(server._RefusedError, match=r"^--help: no reader knows"):
        asyncio.run(server._page(hostile / "--help"))
    assert marks(hostile) == []


DENIES = """
from jupyter_server.auth.authorizer import Authorizer
class Denies(Authorizer):
    def is_authorized(self, handler, user, action, resource):
        return resource != "contents"
"""


@pytest.mark.needs_tool
@needs_package("jupyter_server", "lab")
def test_the_viewer_asks_for_the_same_permission_as_the_contents(tmp_path: Path) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    shutil.copy(RAW, root / "run.hlog")
    (home / "denies.py").write_text(DENIES, encoding="utf-8")

    def status(address: str, place: str) -> int:
        try:
            with urllib.request.urlopen(f"{address}/{place}token={TOKEN}") as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            return error.code

    option = "--ServerApp.authorizer_class=denies.Denies"
    extension = "--ServerApp.jpserver_extensions={'latencykit.jupyter': True}"
    with jupyterlab(root, home, option, extension, PYTHONPATH=str(home)) as address:
        assert status(address, "api/contents/run.hlog?") == 403
        assert status(address, "latencykit/report?path=run.hlog&") == 403
    home = tmp_path / "other"
    home.mkdir()
    with jupyterlab(root, home, extension) as address:
        assert status(address, "latencykit/report?path=run.hlog&") == 200
        for name in ("x" * 5000, "a%00b", "--help", "-o.hlog", "run.hlog/x"):
            assert status(address, f"latencykit/report?path={name}&") == 404, name


@pytest.mark.needs_tool
@needs_package("jupyter_server", "lab")
def test_few_reports_are_rendered_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from latencykit.jupyter import server

    now, most = [0], [0]

    async def rendered(_path: Path, _target: Path) -> bytes:
        now[0] += 1
        most[0] = max(most[0], now[0])
        await asyncio.sleep(0.01)
        now[0] -= 1
        return b""

    monkeypatch.setattr(server, "_rendered", rendered)
    paths = [tmp_path / f"{number}.hlog" for number in range(12)]
    for path in paths:
        path.touch()

    async def all_of_them() -> None:
        await asyncio.gather(*map(server._page, paths))

    asyncio.run(all_of_them())
    assert most == [2]
