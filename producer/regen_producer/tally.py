"""What intake counts: bits by index, and rejections by class with the first places of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from regen_common.store import schema
from regen_producer import rows

FIRST_MAX: Final = 5
"""Places that are named per rejection class."""

BITMAPS: Final = ("tools", "multi_turn", "rejected")


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """One rejected row: where it stands, and what is wrong with it."""

    index: int
    source: str
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejections:
    """Of one class: how many, and the first of them."""

    count: int
    first: tuple[Place, ...]


@dataclass(kw_only=True, slots=True)
class Tally:
    """Grows with each row. Bitmaps are as Redis's SETBIT keeps them: most significant bit first."""

    input: int = 0
    tools: int = 0
    multi_turn: int = 0
    rejected: int = 0
    _bits: dict[str, bytearray] = field(
        default_factory=lambda: {name: bytearray() for name in BITMAPS}
    )
    _rejected: dict[str, int] = field(default_factory=dict)
    _places: dict[str, list[Place]] = field(default_factory=dict)

    def add(self, row: rows.Row) -> None:
        if row.error is None:
            self.add_prompt(row.index, has_tools=row.has_tools, multi_turn=row.multi_turn)
        else:
            self.add_rejected(row.index, row.error, row.detail or "", row.source)

    def add_prompt(self, index: int, *, has_tools: bool, multi_turn: bool) -> None:
        self.input = index + 1
        self.tools += has_tools
        self.multi_turn += multi_turn
        if has_tools:
            self._set("tools", index)
        if multi_turn:
            self._set("multi_turn", index)

    def add_rejected(self, index: int, error: str, detail: str, source: str) -> None:
        self.input = index + 1
        self.rejected += 1
        self._set("rejected", index)
        self._rejected[error] = self._rejected.get(error, 0) + 1
        places = self._places.setdefault(error, [])
        if len(places) < FIRST_MAX:
            places.append(Place(index=index, source=source, detail=detail))

    def bitmaps(self) -> dict[str, bytes]:
        """Each as long as the input needs: one bit per index, zeros to the end."""
        size = (self.input + 7) // 8
        return {name: bytes(bits).ljust(size, b"\0") for name, bits in self._bits.items()}

    def rejections(self) -> Mapping[str, Rejections]:
        """By class, the most frequent first."""
        order = sorted(self._rejected, key=lambda name: -self._rejected[name])
        return {
            name: Rejections(count=self._rejected[name], first=tuple(self._places[name]))
            for name in order
        }

    def counts(self) -> schema.Counts:
        return schema.Counts(
            input=self.input,
            tools=self.tools,
            chat=self.input - self.rejected - self.tools,
            multi_turn=self.multi_turn,
            rejected=dict(self._rejected),
        )

    def _set(self, name: str, index: int) -> None:
        bits = self._bits[name]
        place, bit = divmod(index, 8)
        if place >= len(bits):
            bits.extend(bytes(place + 1 - len(bits)))
        bits[place] |= 0x80 >> bit
