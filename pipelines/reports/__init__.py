"""Pages for people: the public report of a release, the confidential one, and what they are made of."""
