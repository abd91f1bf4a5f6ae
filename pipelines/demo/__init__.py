"""`agedp demo`: synthetic households of known chains, what their estimated chains come to, and a page about both."""
