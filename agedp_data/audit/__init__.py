"""What an audit proves: lower bounds of a loss from observed releases, tests of the noise, detection power."""
