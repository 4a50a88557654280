"""What a reader finds in a file, before anybody asks whether it is a prompt."""

from typing import Any, NamedTuple


class RawRow(NamedTuple):
    """One row of a file, or one that can't be read (``error`` is its rejection class).

    ``number`` counts the file's rows from 0, unreadable ones too; blank lines are no rows.
    """

    number: int
    value: Any
    error: str | None = None
    detail: str | None = None


class Cut(NamedTuple):
    """The file ends in the middle of a row, or of the array. It comes last, once.

    ``rows`` is how many rows came before; ``begins`` the byte at which the cut row begins (None
    where the cut is between rows); ``ends`` the byte at which the file ends.
    """

    name: str
    rows: int
    begins: int | None
    ends: int
    where: str

    def __str__(self) -> str:
        begin = "" if self.begins is None else f"; row {self.rows:,} begins at byte {self.begins:,}"
        return (
            f"{self.name} is cut after {self.rows:,} whole rows: it ends {self.where} "
            f"at byte {self.ends:,}{begin}"
        )
