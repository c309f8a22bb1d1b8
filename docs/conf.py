"""How Sphinx makes the pages: ``make docs`` writes them to build/docs."""

import sys
import warnings
from importlib.metadata import distribution
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

from pairlens import __version__

project = "pairlens"
author = "the pairlens authors"
release = __version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "make_pages",
]
exclude_patterns = ["templates", "gallery/*.ipynb", "gallery/*.py", "gallery/*.md5"]
templates_path = ["templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = "pairlens"
html_theme_options = {
    "logo": {"text": "pairlens"},
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}
html_show_sourcelink = False
html_copy_source = False
copyright = "the pairlens authors, BSD-3-Clause"

# The page must not ask a network for anything: one MathJax file, with its glyphs as paths, lies beside the pages.
MATHJAX = "tex-svg.js"
html_static_path = [
    "static",
    str(distribution("sphinx-mathjax-offline").locate_file(f"sphinx-mathjax-offline/static/mathjax/{MATHJAX}")),
]
mathjax_path = MATHJAX
html_css_files = ["site.css"]
html_extra_path = ["llms.txt"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_\d\d_",
    "ignore_pattern": r"^(?!.*plot_\d\d_).*\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": True,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "plot_gallery": "True",
    "parallel": 2,
    "backreferences_dir": None,
    "image_scrapers": ("matplotlib",),
    "remove_config_comments": True,
    "write_computation_times": False,  # its page would load scripts from a network
}
# Examples choose small numbers of steps for speed; a warning about it is no part of the lesson.
warnings.filterwarnings("ignore", message="Matplotlib is currently using agg")
