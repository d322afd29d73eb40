"""The site that `make docs` builds. Warnings are errors there, so links and anchors inside the site are checked."""

import importlib.metadata
import importlib.util
import os
import sys
import types
from pathlib import Path

project = "Lacuna"
author = "The Lacuna authors"

extensions = ["myst_parser", "sphinx.ext.autodoc", "breathe"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "Lacuna"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["wide.css"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

breathe_projects = {"lacuna": os.environ["LACUNA_DOXYGEN_XML"]}  # scripts/docs.py says where
breathe_default_project = "lacuna"
breathe_show_include = False


def _stub_of_core() -> types.ModuleType:
    """The compiled module's stub as a module: unlike the module, it has the signatures of static methods."""
    package = importlib.util.find_spec("lacuna")
    assert package is not None
    assert package.origin is not None
    stub = Path(package.origin).with_name("_core.pyi")
    made = types.ModuleType("lacuna._core")
    made.__dict__["__version__"] = importlib.metadata.version("lacuna")  # which a stub has not
    made.__dict__["ArrayLike"] = type("ArrayLike", (), {})  # NumPy's own is a union of ten types, and as long
    text = "from __future__ import annotations\n" + stub.read_text().replace("numpy.typing.ArrayLike", "ArrayLike")
    exec(compile(text, stub, "exec"), made.__dict__)
    return made


sys.modules["lacuna._core"] = _stub_of_core()

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True

# `bytes` in a signature is Python's type, and a member of three classes.
suppress_warnings = ["ref.python"]
