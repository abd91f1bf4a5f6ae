"""Parsers of the datasets: from the bytes of input files to records of whole watt-hours."""
