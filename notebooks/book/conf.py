"""The site, built by ``python -m sphinx --fail-on-warning notebooks/book build/site``.

Nothing is loaded from a network, neither while it is built nor while it is read. Lessons are shown
with the outputs that they are committed with.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]
sys.modules["rfc3987_syntax"] = None  # builds 38 grammars where jsonschema is imported, and checks no notebook

import lite
import pages

import latencykit

project = "latencykit"
author = "The latencykit developers"
copyright = author
version = release = latencykit.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_copybutton",
]
root_doc = "index"
exclude_patterns = ["static"]
default_role = "py:obj"
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # would be loaded from a network; every control has its picture
suppress_warnings = ["mystnb.unknown_mime_type"]  # a widget, beside which there is its picture

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 80
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

copybutton_exclude = ".linenos"
copybutton_prompt_text = r"\$ |>>> |\.\.\. "  # commands without their prompts, and without the lines of their output
copybutton_prompt_is_regexp, copybutton_copy_empty_lines = True, False
copybutton_line_continuation_character = "\\"

html_theme = "pydata_sphinx_theme"
html_title = "latencykit"
html_static_path = ["static", "../controls.js"]
html_css_files = ["site.css"]
html_favicon = "static/favicon.svg"
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_nav_level": 1,
    "navigation_depth": 3,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {
    name: [] for name in ("index", "load-generators/index", "formats", "truth", "thresholds", "benchmarks", "contributing", "changes")
}


def setup(app):
    app.connect("config-inited", lambda app, config: pages.write(HERE))
    app.connect("doctree-read", pages.describe_pictures)
    app.connect("doctree-read", pages.fold_answers)
    app.connect("html-page-context", pages.load_controls)
    app.connect("html-page-context", lite.link)
    app.connect("build-finished", pages.write_interactive)
    app.connect("build-finished", pages.write_page)
    app.connect("build-finished", lite.write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
