"""Files, HTML, progress bars and optional imports."""
