"""Disclosure-risk audit: run every known attack on copies, test their noise, and report the residual risk."""
