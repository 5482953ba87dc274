"""The documentation: `make docs`."""

project = "Sfumato"
copyright = "2026, the Sfumato authors"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Sfumato"
html_static_path = ["_static"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
