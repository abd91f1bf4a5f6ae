"""First lines of the generated tables, by which the site knows them. It imports nothing: a site needs no agedp."""

KEY_TABLE = "| key | value | meaning |"
