"""What is done once, before the first release: `agedp init` and `agedp sample`."""
