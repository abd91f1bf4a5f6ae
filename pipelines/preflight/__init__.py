"""Whether the input files make a release worth its epsilon: what they contain, what is wrong, what is alerted.

Before the first release of a population a run may be refused on what its files contain, for nothing is published yet.
After it readings decide nothing: the same findings, and the alerts, go to the operator alone.
"""
