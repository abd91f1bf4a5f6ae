"""WHAT happens: one verb per stage, from input files to a release folder; a room for what several stages share."""
