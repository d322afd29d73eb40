"""The site that `make docs` builds. Warnings are errors there, so links and anchors inside the site are checked."""

import os

project = "Lacuna"
author = "The Lacuna authors"

extensions = ["myst_parser", "sphinx.ext.autodoc", "breathe"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "Lacuna"
html_show_copyright = False

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

breathe_projects = {"lacuna": os.environ["LACUNA_DOXYGEN_XML"]}  # scripts/docs.py says where
breathe_default_project = "lacuna"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True

# `bytes` in a signature is Python's type, and a member of three classes.
suppress_warnings = ["ref.python"]
