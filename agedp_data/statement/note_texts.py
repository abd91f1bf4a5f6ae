"""Notes of a statement: what is particular about a release, its ledger, its households and those of other releases.

The texts are stored in the ledger and hashed; their wording never changes.
"""

from __future__ import annotations

BEYOND = (
    "{name}: what was released before the last change of the promise comes to {said}, more than its bound of {bound} "
    "now. No change undoes that; {bound} binds whatever further releases are part of."
)
LARGE_DELTA = (
    "The promise has delta = {delta}, more than 1/n^2 for n = {households}, the fewest households of a released day or "
    "group. A bound with delta lets every set of results be more probable by delta than e^epsilon times, for each "
    "household. The figures 'day' and 'total' have no delta."
)
SMOOTHING = (
    "Estimates that any reader computes from these averages with a calendar and the weather (`agedp smooth`) are "
    "post-processing: they say nothing more about any household. They stand beside the averages, not in their place. "
    "Their 90 % intervals assume a model and leave out what the clamp cuts off; on means of 18 and 19 real households "
    "they held 91 to 93 % of days, 91 to 93 % of holidays and 72 to 88 % of the tenth of days that a calendar explains "
    "least."
)
OVERLAP = (
    "This ledger holds other populations too; whether they share homes was not checked, and losses of shared homes add."
)
RECOVERED = (
    "The ledger was lost and recovered from a release folder: what it held beyond that folder is unknown, and losses "
    "of releases that were in nobody's folder are not counted."
)
TAKEN_OVER = (
    "The ledger goes on from a copy of one that was lost: what that one held beyond the copy is unknown, and those "
    "losses are not counted."
)
UNWITNESSED = (
    "The ledger has no witness in another place: a machine that was restored from a backup, ledger and release folder "
    "together, could release published days a second time, and those losses would not be counted."
)
TEMPORARY_LEDGER = (
    "The ledger of this release was kept in memory: nothing beyond the process that made it remembers what was spent. "
    "Another release of the same days draws again, and the losses add."
)
ROSTER_FROM_FILES = (
    "The roster was read off the input files: who has readings, and from when to when, is then public, and no figure "
    "counts it."
)
OWN_DAYS_TOO = "The model was estimated from days that are released here too."
ROSTER_READ_OFF = "The roster was read off the input files: who has readings, and from when to when, is then public."
REHEARSAL = "REHEARSAL: the dates are simulated. This is not a publication."
REHEARSED_ON_SYNTHETIC = (
    "The households are synthetic: the released sums follow from constants of the software, the run file and the "
    "number of households on the roster, by day and group. No reading entered them: the losses stated here are about "
    "no real household."
)
REHEARSED_ON_READINGS = (
    "Only the dates are simulated. The noise was drawn for real readings: the losses are losses of these households "
    "like those of any release, and count as such."
)
REHEARSED_EARLIER = (
    "Only the dates are simulated. The noise was drawn for real readings: the losses are losses of these households "
    "like those of any release. The rehearsal began before rehearsals were counted, and whether other statements about "
    "these households count its losses is not known."
)
SECOND_POPULATION = (
    "A household that is counted in a second population as well, of this ledger or another one, is told about twice, "
    "and the losses add: a second population under the same promise may add the amounts given here to the day's "
    "figure and to the total. The tool adds up what one ledger says about one population; it cannot see shared homes."
)
SECOND_POPULATION_COUNTED = (
    "A household that is counted in a second population as well is told about twice, and the losses add. The register "
    "of households adds them up; its largest sums stand under one account per household. A second population under the "
    "same promise may add the amounts given here to the day's figure and to the total."
)
HOUSEHOLD_ACCOUNT = (
    "Over all releases that this register knows, the losses about one household come to at most: of a day {day}, in "
    "all {total}{aside}. The register of households adds up the releases of readings about a household, whatever "
    "population, series, ledger or rehearsal they are part of. A household that nothing else counts has the figures "
    "'day' and 'total' of this statement. The register counts since {since}; of what other populations, ledgers and "
    "rehearsals released before, it knows what those released that have run again since. It does not know releases "
    "that were made with another confidential folder which does not share it, on this machine or another one, from "
    "tables in memory, or by other tools."
)
REGISTER_REBUILT = (
    "The register of households was lost, and on {since} it was filled again from this ledger: what other populations, "
    "ledgers and rehearsals released before is counted only where they released again since."
)
EARLIER_REHEARSALS = (
    "Rehearsals took place beside this release before the register of households knew of them. If they were over real "
    "readings, they were draws as well, and their losses are not counted."
)
EARLIER_RELEASES = (
    "Other populations or ledgers released beside this release before the register of households knew of them; their "
    "losses are not counted."
)
OUTSIDE_REGISTER = (
    "This release was made from a table in memory, and no register of households counts it: what other populations, "
    "ledgers and rehearsals release about the same households comes on top."
)
