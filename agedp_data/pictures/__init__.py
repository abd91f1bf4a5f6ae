"""Charts and pages that open offline: SVG and HTML as text, no library, no script, the same bytes every time."""
