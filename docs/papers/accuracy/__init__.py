"""Errors of published daily means by number of households: measured, beside the closed form of the noise.

`python -m docs.papers.accuracy` measures, writes `measured.json` and the page docs/accuracy.md; with `--page` it writes
the page from the stored figures alone.
"""
