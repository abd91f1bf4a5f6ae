"""`agedp demo`: synthetic households with known chains, their estimated chains, six releases, and a page about them."""
