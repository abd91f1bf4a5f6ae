"""Files of this machine: atomic replacement, checksums, locks, free space."""
