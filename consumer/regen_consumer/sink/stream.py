"""The results stream as the sink sees it: what is not cut yet, and an open intent's range."""

from typing import Any, Final

import redis

from regen_common import redisio
from regen_common.queue.shapes import Entry
from regen_common.run import keys

READ_COUNT: Final = 200


class Uncut:
    """Records after the last cut, read ahead up to one batch and kept between polls."""

    def __init__(self, client: redis.Redis, names: keys.Keys) -> None:
        self._client = client
        self._names = names
        self.cut = "0-0"
        self.entries: list[Entry] = []
        self._size = 0

    def reset(self) -> None:
        """Begin anew from the run's cut: another sink moved it, or Redis lost something."""
        with redisio.mapped_errors():
            self.cut = redisio.text(self._client.get(self._names.cut) or b"0-0")
        self.entries = []
        self._size = 0

    def read_on(self, *, records_max: int, bytes_max: int) -> None:
        """Read until there is a batch or the stream ends."""
        while len(self.entries) < records_max and self._size <= bytes_max:
            after = self.entries[-1].stream_id if self.entries else self.cut
            count = min(READ_COUNT, records_max - len(self.entries))
            found = read_range(self._client, self._names, after=after, last="+", count=count)
            self.entries += found
            self._size += sum(len(entry.body) + 1 for entry in found)
            if len(found) < count:
                return

    def taken(self, n: int) -> None:
        """The first ``n`` entries are in an intent now."""
        self.cut = self.entries[n - 1].stream_id
        self._size -= sum(len(entry.body) + 1 for entry in self.entries[:n])
        self.entries = self.entries[n:]


def read_range(
    client: redis.Redis, names: keys.Keys, *, after: str, last: str, count: int | None = None
) -> list[Entry]:
    """Records with stream ids in (after, last]."""
    with redisio.mapped_errors():
        raw: Any = client.xrange(names.results, f"({after}", last, count=count)
    return [
        Entry(
            redisio.text(stream_id),
            int(fields[b"i"]),
            int(fields[b"r"]),
            int(fields[b"l"]),
            fields[b"b"],
        )
        for stream_id, fields in raw
    ]
