"""Notes of a statement: what is particular about a release, its ledger, its households and those of other releases.

The texts are stored in the ledger and hashed. A statement that is published already keeps the texts that it has; a new
wording is for new statements, and a note that an earlier statement decides by is recognised in each of its wordings.
"""

from __future__ import annotations

from typing import Final

BEYOND = (
    "{name}: what was released before the last change of the promise has epsilon {said}, more than its limit of "
    "{bound} now. No change undoes that. The limit of {bound} binds every sum that a further release is part of."
)
LARGE_DELTA = (
    "The promise has delta = {delta}, more than 1/n^2 for n = {households}, the fewest households of a released day or "
    "group. A bound with a delta permits every set of results to be more probable than e^epsilon times by delta, for "
    "each household. The bounds 'day' and 'total' have no delta."
)
SMOOTHING = (
    "Estimates that any reader computes from these averages with a calendar and the weather (`agedp smooth`) are "
    "post-processing: they disclose nothing more about any household. They are published beside the averages and do "
    "not replace them. Their 90 % intervals assume a model and leave out use above the clamp. In a test on means of 18 "
    "and 19 real households they held 91 to 93 % of days, 91 to 93 % of holidays and 72 to 88 % of the tenth of days "
    "that a calendar explains least."
)
OVERLAP = (
    "This ledger contains other populations as well. It was not checked whether they share households; the losses of "
    "shared households add up."
)
RECOVERED = (
    "The ledger was lost and recovered from a release folder. What it contained beyond that folder is unknown, and "
    "losses of releases that were in no recipient's folder are not counted."
)
TAKEN_OVER = (
    "The ledger continues a copy of one that was lost. What the lost ledger contained beyond the copy is unknown, and "
    "those losses are not counted."
)
UNWITNESSED = (
    "The ledger has no witness in another place. A machine that was restored from a backup, ledger and release folder "
    "together, could release published days a second time, and those losses would not be counted."
)
TEMPORARY_LEDGER = (
    "The ledger of this release was kept in memory: no record of the spent losses outlives the process that made it. "
    "Another release of the same days draws again, and the losses add up."
)
ROSTER_FROM_FILES = (
    "The roster was derived from the input files. Which households have readings, and from which day to which, counts "
    "as public: no bound counts it, and the bounds hold for this roster."
)
NET_EXPORTS = (
    "Energy that households feed into the grid is subtracted from what they take. A net export counts as 0: that of a "
    "day in means and distributions, that of a half-hour in profiles and states."
)
ACCEPTED_FINDINGS = (
    "A judge looked at the input before the first release. Its findings {names} are accepted in writing: they may "
    "touch more than 1 % of the household-days of the roster, or of a group. This choice was made after looking at "
    "readings."
)
READ_OFF_KEYS = (
    "The keys {names} of [input.columns] were read off the first readings, and a judge looked at the input before the "
    "first release. These choices were made after looking at readings: no bound counts them."
)
EARLIER_ROSTER_NOTES: Final = frozenset(
    {
        "The roster was derived from the input files. The households with readings, and their first and last days, are "
        "then public, and no bound counts this.",
        "The roster was read off the input files: who has readings, and from when to when, is then public, and no "
        "figure counts it.",
        "The roster was read off the input files: who has readings, and from when to when, is then public.",
    }
)
"""Wordings of `ROSTER_FROM_FILES` in statements of earlier versions."""
OWN_DAYS_TOO = "The model was estimated from days that are released here as well."
REHEARSAL = "REHEARSAL: the dates are simulated. This is not a publication."
REHEARSED_ON_SYNTHETIC = (
    "The households are synthetic: the released sums follow from constants of the software, the run file and the "
    "number of households on the roster, by day and group. No reading entered them. The losses stated here are losses "
    "of no real household."
)
REHEARSED_ON_READINGS = (
    "Only the dates are simulated. The noise was drawn for the readings of the input: the losses are losses of these "
    "households like those of any release, and count as such."
)
REHEARSED_EARLIER = (
    "Only the dates are simulated. The noise was drawn for the readings of the input: the losses are losses of these "
    "households like those of any release. The rehearsal began before rehearsals were counted. It is not known "
    "whether other statements about these households count its losses."
)
SECOND_POPULATION = (
    "Composition: a household that is counted in a second population as well, of this ledger or another one, is part "
    "of both releases, and its losses add up. A second population under the same promise may add the amounts given "
    "here to the bounds 'day' and 'total'. The tool adds up the releases of one population in one ledger; it cannot "
    "see shared households."
)
SECOND_POPULATION_COUNTED = (
    "Composition: a household that is counted in a second population as well is part of both releases, and its losses "
    "add up. The register of households adds them up; the section on one account per household has its largest sums. A "
    "second population under the same promise may add the amounts given here to the bounds 'day' and 'total'."
)
HOUSEHOLD_ACCOUNT = (
    "Over all releases that this register knows, the losses of one household come to at most: of a day {day}, in all "
    "{total}{aside}. The register of households adds up the releases of a household's readings in every population, "
    "series, ledger and rehearsal. A household that nothing else counts has the bounds 'day' and 'total' of this "
    "statement. The register counts since {since}. Of earlier releases of other populations, ledgers and rehearsals, "
    "it knows only those of populations, ledgers and rehearsals that have run again since. It does not know releases "
    "that were made with another confidential folder which does not share it, on this machine or another one, from "
    "tables in memory, or by other tools."
)
REGISTER_REBUILT = (
    "The register of households was lost, and on {since} it was filled again from this ledger. Earlier releases of "
    "other populations, ledgers and rehearsals are counted only where these have released again since."
)
EARLIER_REHEARSALS = (
    "Rehearsals took place beside this release before the register of households counted them. If they were over real "
    "readings, they were draws as well, and their losses are not counted."
)
EARLIER_RELEASES = (
    "Other populations or ledgers released beside this release before the register of households counted them; their "
    "losses are not counted."
)
OUTSIDE_REGISTER = (
    "This release was made from a table in memory, and no register of households counts it. The losses of other "
    "populations, ledgers and rehearsals of the same households are to be added."
)
