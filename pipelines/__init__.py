"""WHAT happens: one verb per stage."""
