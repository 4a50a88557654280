"""The books of a run: input = done + failed + rejected + pending, each counted in its places.

``pending`` is what was counted as not yet enqueued, queued, leased and in the results stream; it is
never derived from the total, so a prompt that is in no place shows as ``unaccounted``.
"""

from dataclasses import dataclass

from regen_common.queue import shapes


@dataclass(frozen=True, kw_only=True, slots=True)
class CategoryCounts:
    """One category's prompts. ``pending`` is without those whose old answer counts meanwhile."""

    input: int
    done: int
    failed: int
    queued: int
    leased: int
    not_enqueued: int

    @property
    def pending(self) -> int:
        return max(0, self.input - self.done - self.failed)


@dataclass(frozen=True, kw_only=True, slots=True)
class Books:
    """Counts of one moment, in prompts."""

    input: int
    done: int
    failed: int
    rejected: int
    not_enqueued: int
    queued: int
    leased: int
    stream: int
    redo: int
    redo_failed: int
    open_intents: int
    suspended: bool
    halt: dict[str, object] | None
    categories: dict[str, CategoryCounts]

    @property
    def pending(self) -> int:
        """Prompts without an answer that are on their way.

        A prompt that was sent again is done by its old answer; it stands in a place as well, unless
        it failed there.
        """
        redo_in_places = self.redo - self.redo_failed
        return self.not_enqueued + self.queued + self.leased + self.stream - redo_in_places

    @property
    def unaccounted(self) -> int:
        """0, save for the instant inside a stock ``rq`` command; else prompts in no place."""
        return self.input - self.done - self.failed - self.rejected - self.pending

    @property
    def over(self) -> bool:
        """Nothing is on its way any more: what is not done has failed or was rejected."""
        return not (
            self.not_enqueued or self.queued or self.leased or self.stream or self.open_intents
        )


def from_counted(counted: shapes.Counted) -> Books:
    """Books out of the one script that counted."""
    by = counted.categories
    redo_failed = sum(c.failed_redo for c in by)
    return Books(
        input=counted.input,
        done=sum(c.done for c in by),
        failed=sum(c.failed for c in by) - redo_failed,
        rejected=counted.rejected,
        not_enqueued=sum(c.plan - c.enqueued for c in by),
        queued=sum(c.queued for c in by),
        leased=sum(c.leased for c in by),
        stream=counted.stream,
        redo=counted.redo,
        redo_failed=redo_failed,
        open_intents=counted.open_intents,
        suspended=counted.suspended,
        halt=counted.halt,
        categories={
            c.category: CategoryCounts(
                input=c.plan,
                done=c.done,
                failed=c.failed - c.failed_redo,
                queued=c.queued,
                leased=c.leased,
                not_enqueued=c.plan - c.enqueued,
            )
            for c in by
        },
    )
