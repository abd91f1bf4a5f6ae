"""How the files of each dataset are understood: from bytes to records of whole watt-hours."""
