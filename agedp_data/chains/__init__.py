"""How households move between states of use: chains, how fast they forget, and what of that is public."""
