"""Counts and bits, as Redis keeps them."""

from hypothesis import given
from hypothesis import strategies as st

from regen_producer import tally

KINDS = st.sampled_from(["chat", "tools", "chat, many turns", "tools, many turns", "bad", "worse"])


def tallied(kinds: list[str]) -> tally.Tally:
    out = tally.Tally()
    for index, kind in enumerate(kinds):
        if kind in ("bad", "worse"):
            out.add_rejected(index, kind, f"why {index}", f"a:{index}")
        else:
            many = kind.endswith("many turns")
            out.add_prompt(index, has_tools=kind.startswith("tools"), multi_turn=many)
    return out


def test_the_first_index_is_the_most_significant_bit() -> None:
    found = tallied(["tools", "chat", "bad"] + ["chat"] * 6 + ["tools, many turns"])
    assert found.bitmaps() == {
        "tools": bytes([0b10000000, 0b01000000]),
        "multi_turn": bytes([0, 0b01000000]),
        "rejected": bytes([0b00100000, 0]),
    }


@given(st.lists(KINDS))
def test_bits_and_counts_agree(kinds: list[str]) -> None:
    found = tallied(kinds)
    bits = {
        name: {i for i in range(len(kinds)) if value[i // 8] & (0x80 >> i % 8)}
        for name, value in found.bitmaps().items()
    }
    assert {len(value) for value in found.bitmaps().values()} == {(len(kinds) + 7) // 8}
    assert bits["tools"] == {i for i, kind in enumerate(kinds) if kind.startswith("tools")}
    assert bits["multi_turn"] == {i for i, kind in enumerate(kinds) if kind.endswith("turns")}
    assert bits["rejected"] == {i for i, kind in enumerate(kinds) if kind in ("bad", "worse")}
    counts = found.counts()
    assert counts.input == len(kinds) == counts.tools + counts.chat + counts.rejected_total
    assert (counts.tools, counts.multi_turn) == (len(bits["tools"]), len(bits["multi_turn"]))
    assert counts.rejected_total == len(bits["rejected"])


def test_rejections_name_their_first_places_and_the_worst_class_comes_first() -> None:
    found = tallied(["bad"] + ["worse"] * 9).rejections()
    assert list(found) == ["worse", "bad"]
    assert found["worse"].count == 9
    assert [place.index for place in found["worse"].first] == [1, 2, 3, 4, 5]
    assert found["bad"].first == (tally.Place(index=0, source="a:0", detail="why 0"),)
