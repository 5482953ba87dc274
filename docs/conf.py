"""The documentation: `make docs`."""

import importlib.metadata

project = "Sfumato"
copyright = "2026, the Sfumato authors"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
nb_execution_mode = "force"  # notebooks show what this version says, and one that fails is an error
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
html_theme = "furo"
release = importlib.metadata.version("sfumato")
html_title = f"Sfumato {release}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
exclude_patterns = ["_build", "cost-model.md"]
myst_enable_extensions = ["attrs_inline", "deflist", "dollarmath"]
myst_heading_anchors = 3
autodoc_typehints = "description"
autodoc_member_order = "bysource"
