"""Noisy sums of a day, by levels of groups -> least-squares estimates in which finer groups add up to coarser ones.

Groups of a hierarchy are named by paths, so "north/F12" lies in "north" and this in all households. Groups that add up
to a coarser one are a partition of it (`consistency.HierarchyNode`).

Example: areas north and south, and the feeders of north alone: north and its feeders are one tree, south another one.

Decisions:

* A partition counts only if its households are as many as those of the group that it divides. Where small groups were
  not released, nothing is known of the rest. What lies below an incomplete partition is estimated by itself.
* The groups of several hierarchies, or columns, are partitions of the same total side by side.
* A group without a coarser one is the root of a tree. A tree of one group has no estimate but the noisy value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agedp_data.roster import PATH_SEPARATOR
from agedp_data.series.consistency import HierarchyNode, NoisyValue, consistent_estimates
from agedp_data.series.quantities import Columns, next_coarser

GroupPlace = tuple[Columns, int]
"""Group columns, the finest first, and the place among their groups."""


@dataclass(frozen=True, slots=True)
class DrawnGroups:
    """Groups by the same columns on one day: names, households and noisy sums, each (n,); "all" for no column."""

    groups: tuple[str, ...]
    households: tuple[int, ...]
    noisy: tuple[NoisyValue, ...]


@dataclass(frozen=True, slots=True)
class GroupEstimate:
    """An estimate of a group's sum, and the columns of all groups whose noisy sums enter it."""

    noisy: NoisyValue
    based_on: frozenset[Columns]


@dataclass(frozen=True, slots=True)
class _Branch:
    """A group and its complete partitions."""

    place: GroupPlace
    partitions: tuple[tuple[_Branch, ...], ...]

    def places(self) -> Iterator[GroupPlace]:
        yield self.place
        for parts in self.partitions:
            for part in parts:
                yield from part.places()


def consistent_groups(drawn: Mapping[Columns, DrawnGroups]) -> dict[GroupPlace, GroupEstimate]:
    """Return the estimates of groups that are divided by finer ones, or are part of such a division.

    Args:
        drawn: the groups of a day by their columns.

    Returns:
        Estimates by place; groups without one are left out, and their noisy sums are the best values.

    >>> total = DrawnGroups(("all",), (9,), (NoisyValue(10.0, 1.0),))
    >>> areas = DrawnGroups(("n", "s"), (4, 5), (NoisyValue(3.0, 1.0), NoisyValue(4.0, 1.0)))
    >>> [estimate.noisy.value for estimate in consistent_groups({(): total, ("area",): areas}).values()]
    [9.0, 4.0, 5.0]
    """
    parts = _complete_partitions(drawn)
    inner = {place for partitions in parts.values() for places in partitions for place in places}
    estimates: dict[GroupPlace, GroupEstimate] = {}
    for place in parts:
        if place not in inner:
            branch = _branch(place, parts)
            based_on = frozenset(columns for columns, _ in branch.places())
            root = consistent_estimates(_node(branch, drawn))
            estimates |= {at: GroupEstimate(noisy, based_on) for at, noisy in _values(branch, root)}
    return estimates


def _complete_partitions(drawn: Mapping[Columns, DrawnGroups]) -> dict[GroupPlace, list[list[GroupPlace]]]:
    """Return the partitions of each group whose households are all in them."""
    place_of = {
        columns: {_path(columns, group): i for i, group in enumerate(of.groups)} for columns, of in drawn.items()
    }
    partitions: dict[GroupPlace, list[list[GroupPlace]]] = {}
    for columns, of in drawn.items():
        coarser = next_coarser(columns, drawn)
        if coarser is None:
            continue
        by_group: dict[int, list[int]] = {}
        for i, group in enumerate(of.groups):
            divided = place_of[coarser].get(_path(columns, group)[: len(coarser)])
            if divided is not None:
                by_group.setdefault(divided, []).append(i)
        for divided, parts in by_group.items():
            if sum(of.households[i] for i in parts) == drawn[coarser].households[divided]:
                partitions.setdefault((coarser, divided), []).append([(columns, i) for i in parts])
    return partitions


def _path(columns: Columns, group: str) -> tuple[str, ...]:
    """Return the labels of a group, the coarsest first; a label of a single column may contain the separator."""
    if not columns:
        return ()
    return tuple(group.split(PATH_SEPARATOR)) if len(columns) > 1 else (group,)


def _branch(place: GroupPlace, partitions: Mapping[GroupPlace, list[list[GroupPlace]]]) -> _Branch:
    below = partitions.get(place, ())
    return _Branch(place, tuple(tuple(_branch(part, partitions) for part in parts) for parts in below))


def _node(branch: _Branch, drawn: Mapping[Columns, DrawnGroups]) -> HierarchyNode:
    columns, i = branch.place
    partitions = (tuple(_node(part, drawn) for part in parts) for parts in branch.partitions)
    return HierarchyNode(drawn[columns].noisy[i], tuple(partitions))


def _values(branch: _Branch, node: HierarchyNode) -> Iterator[tuple[GroupPlace, NoisyValue]]:
    """Yield the estimates of a tree by place, each group before its parts."""
    yield branch.place, node.noisy
    for parts, nodes in zip(branch.partitions, node.partitions, strict=True):
        for part, of_part in zip(parts, nodes, strict=True):
            yield from _values(part, of_part)
