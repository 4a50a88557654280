"""The leases this consumer holds: from the claim until Redis has taken the outcome."""

from collections.abc import Iterable

from regen_common.queue.shapes import Claimed, Lease


class Leases:
    """Held leases by execution id, in the order of their claims."""

    def __init__(self) -> None:
        self._held: dict[str, Claimed] = {}
        self._answered: set[str] = set()

    def __len__(self) -> int:
        return len(self._held)

    def add(self, job: Claimed) -> None:
        self._held[job.lease.eid] = job

    def drop(self, lease: Lease) -> None:
        """The job has ended, or was given back. Dropping twice is nothing."""
        self._held.pop(lease.eid, None)
        self._answered.discard(lease.eid)

    def answered(self, lease: Lease) -> None:
        """Its answer is there and waits for Redis: the lease is kept, but not given back."""
        self._answered.add(lease.eid)

    def in_hand(self) -> list[Lease]:
        """Leases of prompts without an answer yet, in the order of their claims."""
        return [job.lease for eid, job in self._held.items() if eid not in self._answered]

    def lost(self, eids: Iterable[str]) -> list[Claimed]:
        """Redis says these are no longer ours. Their answers still count if they are first."""
        return [job for eid in eids if (job := self._held.pop(eid, None)) is not None]

    def all(self) -> list[Lease]:
        return [job.lease for job in self._held.values()]

    def clear(self) -> None:
        """Forget them all: they expire, and are put back by others."""
        self._held.clear()
        self._answered.clear()

    def find(self, index: int) -> Claimed | None:
        return next((job for job in self._held.values() if job.lease.index == index), None)
