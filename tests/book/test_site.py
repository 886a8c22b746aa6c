"""The site builds without a warning and without a network, and works in a browser, on a phone's screen too."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

import latencykit as lk
from latencykit import cli
from tests.servers import Folder, served

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.needs_tool, pytest.mark.slow]
MADE_ALIKE = {"reference", "commands", "solutions", "gallery", "load-generators"}
"""Folders of which four pages are opened; the others are all opened."""
ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = ".latencykit-live[data-kind=ask], .latencykit-live[data-kind=predict]"


class Page(HTMLParser):
    """Links, ids, and what the browser loads for a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.ids: set[str] = set()
        self.pictures_without_alt: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name: value or "" for name, value in attrs}
        self.ids |= {names[name] for name in ("id", "name") if name in names}
        if tag == "a" and "href" in names:
            self.links.add(names["href"])
        if tag in ("script", "img", "iframe") and "src" in names:
            self.loads.add(names["src"])
        if tag == "link" and names.get("rel") in ("stylesheet", "preload", "icon"):
            self.loads.add(names["href"])
        if tag == "img" and "alt" not in names:
            self.pictures_without_alt.append(names["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built by the one command, or where ``LATENCYKIT_SITE`` says that it is."""
    for package in ("sphinx", "myst_nb", "pydata_sphinx_theme", "numpydoc", "sphinx_copybutton"):
        pytest.importorskip(package, reason="the packages of the extra docs are not installed")
    if "LATENCYKIT_SITE" in os.environ:  # built a moment ago
        return Path(os.environ["LATENCYKIT_SITE"]).resolve()
    out = tmp_path_factory.mktemp("site")
    command = [
        sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "-d", str(out / ".cache"),
        str(ROOT / "notebooks" / "book"), str(out),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return out


@pytest.fixture(scope="module")
def parsed(site: Path) -> dict[Path, Page]:
    return {
        path: Page(path)
        for path in sorted(site.rglob("*.html"))
        if not {"_static", "lite"} & set(path.parts)  # others' pages
    }


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with served(functools.partial(Folder, directory=site)) as server:
        yield f"http://127.0.0.1:{server.server_port}/"


def test_no_link_within_the_site_is_broken(site: Path, parsed: dict[Path, Page]):
    broken = []
    for path, page in parsed.items():
        here = path.relative_to(site).as_posix()
        for link in page.links | page.loads:
            if re.match(r"(https?|mailto|data|blob):|#span", link):
                continue
            target, fragment = urldefrag(urljoin(f"http://s/{here}", link))
            file = site / unquote(urlsplit(target).path).lstrip("/")
            file = file / "index.html" if file.is_dir() else file
            if not file.exists():
                broken.append(f"{here}: {link}")
            elif fragment and file in parsed and unquote(fragment) not in parsed[file].ids:
                broken.append(f"{here}: {link}: no such place")
    assert broken == []
    assert len(parsed) > 100


def test_every_lesson_opens_in_the_browser_where_that_was_built(
    site: Path, parsed: dict[Path, Page]
):
    built = (site / "lite").exists()
    for path in (site / "lessons").glob("[0-9]*.html"):
        links = [link for link in parsed[path].links if "/lite/" in link]
        assert links == [f"../lite/notebooks/index.html?path={path.stem}.ipynb"] * built
        assert (site / "lite" / "files" / f"{path.stem}.ipynb").exists() == built


def test_nothing_is_loaded_from_elsewhere(site: Path, parsed: dict[Path, Page]):
    loads = {load for page in parsed.values() for load in page.loads}
    assert [load for load in loads if urlsplit(load).scheme in ("http", "https")] == []
    styles = [path.read_text("utf-8") for path in site.rglob("*.css")]
    assert [url for text in styles for url in re.findall(r"url\([\"']?(https?:[^)]*)", text)] == []


def test_every_picture_is_described(parsed: dict[Path, Page]):
    without = {path.name: page.pictures_without_alt for path, page in parsed.items()}
    assert [name for name, pictures in without.items() if pictures] == []


def test_public_names_and_commands_have_their_pages_and_nothing_private_has(
    site: Path, parsed: dict[Path, Page]
):
    ids = {name for page in parsed.values() for name in page.ids}
    for name in set(lk.__all__) - {"plot", "simulate"}:
        assert f"latencykit.{name}" in ids, name
    for module in (lk.plot, lk.simulate):
        assert {f"{module.__name__}.{name}" for name in module.__all__} <= ids
    for name in ("percentile", "quantile", "of", "count"):
        assert f"latencykit.Histogram.{name}" in ids
    assert [
        name for name in ids if re.match(r"latencykit\..*\._(?!_)|latencykit\._(?!_)", name)
    ] == []
    paths = Counter(path.relative_to(site).as_posix().lower() for path in parsed)
    assert max(paths.values()) == 1  # macOS and Windows keep one of two
    made = {path.stem for path in (site / "commands").glob("*.html")} - {"index"}
    assert made == set(cli.cli.list_commands(None))


def test_pages_in_a_browser(site: Path, address: str, parsed: dict[Path, Page], browser: Any):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    complaints: list[str] = []

    def expect(fine: bool, complaint: str) -> None:
        complaints.extend([] if fine else [f"{page.url}: {complaint}"])

    page.on("pageerror", lambda error: expect(False, str(error)))
    page.on("console", lambda said: expect(said.type != "error", said.text))
    page.on("response", lambda answer: expect(answer.status < 400, answer.url))
    page.on("request", lambda one: expect(one.url.startswith((address, "data:", "blob:")), one.url))
    wide, visited = [], Counter[str]()
    for path in parsed:
        name = path.relative_to(site).as_posix()
        folder = Path(name).parent.name
        visited[folder] += 1
        if folder == "interactive" or (folder in MADE_ALIKE and visited[folder] > 4):
            continue
        page.goto(address + name, wait_until="domcontentloaded")
        if page.evaluate("document.scrollingElement.scrollWidth") > 390:
            wide.append(name)
    assert wide == []
    assert complaints == []
    context.close()


def test_search_finds_pages(address: str, browser: Any):
    page = browser.new_page()
    page.goto(f"{address}search.html?q=coordinated+omission")
    page.locator("ul.search li a").first.wait_for()
    assert page.locator("ul.search li a").count() >= 5
    page.goto(f"{address}search.html?q=fan_out")
    page.locator("ul.search li a", has_text="fan_out").first.wait_for()
    page.close()


def test_the_interactive_page_lives_in_the_front_page_and_in_its_lesson(address: str, browser: Any):
    page = browser.new_page(viewport={"width": 1300, "height": 1000})
    for where in ("index.html", "lessons/05-ctrl-z.html"):
        page.goto(address + where)
        for question in page.locator(".latencykit-live[data-kind=ask]").all():
            _answer(question)
        figure = page.locator("figure.live iframe").first
        figure.scroll_into_view_if_needed()
        frame = figure.element_handle().content_frame()
        frame.wait_for_selector("html[data-ready]")
        assert frame.locator("canvas, svg").count() >= 1
    page.close()


def _hidden(page: Any) -> int:
    """How many closed folds below a question show something."""
    return page.evaluate(
        """() => [...document.querySelectorAll("details.below:not([open]) > :not(summary)")].filter((one) => one.checkVisibility()).length"""
    )


@pytest.mark.parametrize(("width", "scheme", "step"), [(1280, "light", 4), (390, "dark", 1)])
def test_a_lesson_shows_nothing_below_a_question_before_its_answer(
    site: Path, address: str, browser: Any, width: int, scheme: str, step: int
):
    lessons = sorted(path.name for path in (site / "lessons").glob("[0-9]*.html"))[::step]
    assert len(lessons) == (13 + step - 1) // step
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    for name in lessons:
        page.goto(f"{address}lessons/{name}")
        questions = page.locator(QUESTIONS)
        for k in range(questions.count()):
            question = questions.nth(k)
            question.locator(".lesson").wait_for()
            below = page.locator(f'details.below[data-after="{k + 1}"]')
            assert below.count() >= 1, name
            assert not any(one.get_attribute("open") for one in below.all())
            assert _hidden(page) == 0, name
            below.first.locator("summary").first.click(force=True)  # it does not open by itself
            assert below.first.get_attribute("open") is None
            _answer(question)
            below.first.locator("xpath=self::*[@open]").wait_for()
            assert page.evaluate("document.scrollingElement.scrollWidth") <= width
        assert page.locator("details.below:not([open])").count() == 0, name
        answers = page.locator(".latencykit-said")
        assert answers.count() >= 1, name
        assert all(text.startswith("You said ") for text in answers.all_inner_texts()), name
    assert errors == []
    context.close()


def _answer(question: Any) -> None:
    """Answer a question with the keyboard alone."""
    if question.locator("canvas").count():
        question.locator("canvas").focus()
        for _ in range(61):
            question.page.keyboard.press("ArrowRight")
        question.get_by_role("button", name="Show the truth").press("Enter")
        return
    field = question.locator("input").first
    if field.get_attribute("type") == "text":
        question.get_by_role("button", name="Answer").press("Enter")
        assert "Type a number first" in question.get_by_role("status").inner_text()
        field.fill("42")
    else:
        field.press(" ")
    question.get_by_role("button", name="Answer").press("Enter")


def test_without_javascript_a_lesson_can_be_opened(address: str, browser: Any):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}lessons/05-ctrl-z.html")
    heading = page.get_by_role("heading", name="The experiment")
    assert not heading.is_visible()
    page.get_by_text("Answer the question above first; then open this.").first.click()
    assert heading.is_visible()
    said = page.locator(".latencykit-said").first.inner_text()
    assert said == "The tool reports 0.001 s; the users see 50 s."
    context.close()


def test_the_panels_follow_the_keyboard(address: str, browser: Any):
    page = browser.new_page()

    def answered(lesson: str) -> None:
        page.goto(f"{address}lessons/{lesson}.html")
        for question in page.locator(QUESTIONS).all():
            _answer(question)

    answered("08-the-pole")
    queue, loops = (
        page.locator(".lesson").filter(has=page.get_by_label(name))
        for name in ("arrivals per second", "connections of the closed loop")
    )
    queue.locator("input").press("End")
    queue.get_by_text("Broken: 1,200 arrive and 1,000 are answered.").wait_for()
    loops.locator("input").press("Home")
    loops.get_by_text("p99 of 4.61 ms").wait_for()
    answered("05-ctrl-z")
    generators = page.locator(".lesson").filter(has=page.get_by_label("stall, s", exact=True)).first
    generators.locator("input").press("End")
    generators.get_by_text("p99: closed 1 ms, catch-up 1 ms, open 78 s.").wait_for()
    answered("01-one-picture-to-unlearn")
    spread = page.locator(".lesson").filter(has=page.get_by_label("slow requests, %"))
    for _ in range(43):  # the slowest of a hundred points
        spread.locator("canvas").press("ArrowUp")
    said = spread.locator(".said").inner_text()
    assert "Mean 10.0 ms, standard deviation 5.0 ms, p99 " in said
    assert float(said.split("p99 ")[1].split()[0]) < 12  # half of the points were at 15
    page.close()
