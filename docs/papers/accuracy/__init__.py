"""Errors of published daily means by number of households: measured, beside the closed form of the noise.

`python -m docs.papers.accuracy` measures, and writes `measured.json` and the chart; `python -m docs.papers all` writes
the section of docs/papers.md from the stored figures.
"""
