"""The confidential store of READINGS: what came, what a month and a day of it say, and what leaves it again."""
