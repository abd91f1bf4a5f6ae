"""HOW it is run: Prefect flows and the `agedp` command."""
