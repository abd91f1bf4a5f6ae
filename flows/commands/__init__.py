"""The commands, one file per group: what is asked for and how it is answered. Heavy imports happen inside them."""
