"""What things are: datasets, mathematics, notions of privacy, run files, the ledger and the statement of a release.

Twelve nouns, each a class, in the order in which a newcomer meets them. This module imports nothing.

* `RunFile` (`config.run_file`): input, promise, series and engine of a run, parsed from TOML.
* `Roster` (`roster`): which households are counted on which day, and in which group.
* `Readings` (`datasets.deduplication`): the energy of one household by half-hour, from the files of a dataset.
* `DailySum` (`agedp.stage_values`): the exact sums of one day and series, confidential.
* `Series` (`series.series`): a published statistic of a day, a mean or a distribution, with its clamp.
* `Promise` (`notions.notion`): a notion of privacy with its parameters and caps.
* `Model` (`model`): a leakage bound and where it comes from, declared or estimated.
* `ContractRecord` (`ledger.records`): the registered text that a population's releases are bound to.
* `DayBudget` (`agedp.budget`): the loss that one day may spend, in nano-epsilon.
* `ReleaseRecord` (`ledger.records`): one draw for one series and day.
* `Ledger` (`ledger.ledger`): contracts, models, releases and statements, append-only and hash-chained.
* `Statement` (`statement.document`): what a release guarantees, for people as Markdown and for programs as JSON.
  Its JSON schema stays at `schemas/statement-2.json`, outside `statement`, because published statements name that path.
"""
