"""The pages: rendered here, made lively by small modules in `static/`, and usable by keyboard and screen reader."""
