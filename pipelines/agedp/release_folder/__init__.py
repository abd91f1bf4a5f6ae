"""Release folders: writing, reading, verification and origin."""
