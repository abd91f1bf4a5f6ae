"""HTML reports: the public one of a release, the confidential one, and their parts."""
