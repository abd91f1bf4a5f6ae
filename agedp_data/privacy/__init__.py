"""How much a mechanism tells about the present: losses, how they age, and how they add up."""
