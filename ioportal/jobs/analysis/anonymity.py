"""What all pages show of other users' jobs: figures of groups, with few digits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import polars as pl

from ioportal.rules.evidence import OF_OTHERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Integers: TypeAlias = npt.NDArray[np.integer[Any]]
    Numbers: TypeAlias = npt.NDArray[np.floating[Any]] | Integers

_Figure = TypeVar("_Figure", float, float | None)

MIN_GROUP = 10  # values behind any published figure of other users' jobs
MIN_OWNERS = 3  # of these jobs
MAX_SHARE = 0.85  # of the figure, or of these jobs, that belongs to one owner
DIGITS = 2  # significant digits of other users' figures

# All rounded figures in ascending order, and the midpoints between neighbours: rounding is a
# look-up and therefore exact. 64-bit integers have a separate table.
_MANTISSAS = range(10 ** (DIGITS - 1), 10**DIGITS)
_INTEGERS = np.array(
    [
        *range(_MANTISSAS.start),
        *(m * 10**e for e in range(19) for m in _MANTISSAS if m * 10**e < 2**63),
    ]
)
_INTEGER_HALVES = _INTEGERS[:-1] + (np.diff(_INTEGERS) + 1) // 2
_EXPONENTS = range(-40, 40)
_FLOATS = np.array([0.0, *(float(f"{m}e{e}") for e in _EXPONENTS for m in _MANTISSAS)])
_FLOAT_HALVES = np.array(
    [_FLOATS[1], *(float(f"{m}.5e{e}") for e in _EXPONENTS for m in _MANTISSAS)][:-1]
)


def hides_owners(jobs: Any, owners: Any, largest: Any, total: Any) -> Any:
    """Return whether a figure of other users' jobs reveals no single job: the rule for all pages.

    A threshold rule for batch jobs and for owners, and the dominance rule (1, 85 %): no owner has
    more than `MAX_SHARE` of the figure. See Hundepool et al., *Statistical Disclosure Control*,
    2012.

    Args:
        jobs: number of batch jobs; like all others a number, an array or an expression.
        owners: number of their owners.
        largest: the largest part of any owner, in a sum or in the number of jobs.
        total: the whole sum or number of jobs.
    """
    return (jobs >= MIN_GROUP) & (owners >= MIN_OWNERS) & (largest <= MAX_SHARE * total)


def hidden_sums(parts: pl.DataFrame, group: Sequence[str], amounts: Sequence[str]) -> pl.DataFrame:
    """Return whether each sum reveals what a single owner has in it (`hides_owners`).

    Args:
        parts: what a job has in a sum, in several rows or in one: the columns of `group`, owner,
            job (its key; null: the owner is a principal outside jobs), and `amounts`.
        group: columns with equal values within a sum.
        amounts: columns that are summed.

    Returns:
        The columns of `group`, each group once, and a Boolean column for each amount.
    """
    by_job = parts.group_by(*group, "owner", "job").agg(pl.sum(*amounts))
    by_owner = by_job.group_by(*group, "owner").agg(pl.count("job"), pl.sum(*amounts))
    owners = (pl.col("job") > 0).sum()
    return by_owner.group_by(*group).agg(
        (~hides_owners(pl.sum("job"), owners, pl.max(name), pl.sum(name))).alias(name)
        for name in amounts
    )


def hidden_steps(
    parts: pl.DataFrame, step: Sequence[str], block: Sequence[str], amounts: Sequence[str]
) -> pl.DataFrame:
    """Return `hidden_sums` of steps whose sums over a block are shown elsewhere.

    The sum over a block minus its visible steps is the sum of its hidden ones. If that reveals an
    owner, all steps of the block are hidden.

    Args:
        parts: as for `hidden_sums`, of whole blocks.
        step: columns with equal values within a step.
        block: columns with equal values within a block.
        amounts: columns that are summed.
    """
    hidden = hidden_sums(parts, step, amounts)
    for name in amounts:
        rest = parts.join(hidden.filter(name), on=step, how="semi")
        revealing = hidden_sums(rest, block, [name]).filter(name)
        more = parts.join(revealing, on=block, how="semi").select(step).unique()
        hidden = hidden.join(more.with_columns(is_more=True), on=step, how="left").select(
            *step,
            *(pl.col(each) for each in amounts if each != name),
            (pl.col(name) | pl.col("is_more").fill_null(value=False)).alias(name),
        )
    return hidden.select(*step, *amounts)


def is_anonymous(jobs: Integers, owners: Integers) -> bool:
    """Return whether figures of jobs may be shown to other users than their owners.

    Args:
        jobs: keys of the batch jobs.
        owners: of the jobs, equal for equal users.
    """
    return bool(in_anonymous_groups(np.zeros_like(owners), jobs, owners).any())


def in_anonymous_groups(
    groups: Integers, jobs: Integers, owners: Integers
) -> npt.NDArray[np.bool_]:
    """Return whether the group of each job reveals no owner, in figures that count jobs equally."""
    numbers, places = np.unique(groups, return_inverse=True)
    batch_jobs = np.unique(np.stack([places, jobs]), axis=1)[0]
    pairs, counts = np.unique(np.stack([places, owners]), axis=1, return_counts=True)
    largest = np.zeros(numbers.size, np.int64)
    np.maximum.at(largest, pairs[0], counts)
    kept: npt.NDArray[np.bool_] = hides_owners(
        np.bincount(batch_jobs, minlength=numbers.size),
        np.bincount(pairs[0], minlength=numbers.size),
        largest,
        np.bincount(places, minlength=numbers.size),
    )[places]
    return kept


def rounded_count(count: int) -> int:
    """Round a number of other users' jobs: moving a date must not reveal the count of a day."""
    return (count + MIN_GROUP // 2) // MIN_GROUP * MIN_GROUP


def coarsened(values: Numbers) -> Numbers:
    """Round other users' figures to two significant digits, before any other computation.

    Results from rounded values reveal no more about a job than its rounded value, even with many
    compared populations. Halves are rounded away from zero.
    """
    is_integer = values.dtype.kind == "i"
    figures, halves = (_INTEGERS, _INTEGER_HALVES) if is_integer else (_FLOATS, _FLOAT_HALVES)
    rounded: Numbers = np.sign(values) * figures[halves.searchsorted(np.abs(values), "right")]
    return rounded


def coarse(value: float) -> float:
    """Round one figure like `coarsened`."""
    rounded: float = coarsened(np.array([value])).tolist()[0]
    return rounded


def shown(name: str, value: _Figure, threshold: float | None = None) -> _Figure:
    """Return a figure; rounded like `coarsened` if it includes others' requests.

    A value that rounding would move across its threshold is shown as the threshold.
    """
    if value is None or name not in OF_OTHERS:
        return value
    rounded = coarse(value)
    if threshold is not None and min(value, rounded) < threshold < max(value, rounded):
        return threshold
    return rounded


def without_extremes(known: Numbers) -> Numbers:
    """Return ascending values without the nine lowest and the nine highest."""
    return known[MIN_GROUP - 1 : max(0, known.size - MIN_GROUP + 1)]


# How pages and exports say that other users' jobs are hidden.
RULE = (
    f"at least {MIN_GROUP} jobs of {MIN_OWNERS} users, none with more than "
    f"{MAX_SHARE:.0%} of the figure"
)
HIDDEN = f"Other users' jobs are shown only together: {RULE}"
