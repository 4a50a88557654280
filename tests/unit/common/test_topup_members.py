"""Which indices of a chunk of bitmaps belong to a category."""

from hypothesis import given
from hypothesis import strategies as st

from regen_common.queue import topup


def bitmap(chosen: set[int], size: int) -> bytes:
    out = bytearray((size + 7) // 8)
    for index in chosen:
        out[index // 8] |= 0x80 >> index % 8
    return bytes(out)


@given(
    size=st.integers(1, 300),
    first=st.integers(0, 5).map(lambda n: n * 8),
    tools=st.sets(st.integers(0, 299)),
    rejected=st.sets(st.integers(0, 299)),
    cut_short=st.booleans(),
)
def test_every_index_is_in_one_category_or_excluded(
    size: int, first: int, tools: set[int], rejected: set[int], cut_short: bool
) -> None:
    tools = {i for i in tools if i < size}
    rejected = {i for i in rejected if i < size}
    tool_bits = bitmap(tools, size)
    if cut_short:  # Redis gives no bytes beyond the last bit that was ever set
        tool_bits = tool_bits.rstrip(b"\0")
    found = {
        category: topup.members(
            first=first,
            tools=tool_bits,
            excluded=(bitmap(rejected, size),),
            size=size,
            category=category,
        )
        for category in ("tools", "chat")
    }
    assert found["tools"] == [first + i for i in sorted(tools - rejected)]
    assert found["chat"] == [first + i for i in sorted(set(range(size)) - tools - rejected)]
