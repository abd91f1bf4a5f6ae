"""The experiments of the four papers, run on the code that the releases run on: `python -m docs.papers`."""
