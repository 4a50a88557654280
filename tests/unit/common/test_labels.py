from hypothesis import given
from hypothesis import strategies as st

from regen_common.records import labels


@given(st.sets(st.sampled_from(labels.LABELS)))
def test_a_mask_holds_exactly_its_labels(chosen: set[str]) -> None:
    assert set(labels.labels_of(labels.mask_of(chosen))) == chosen


def test_bits_are_where_old_batches_have_them() -> None:
    assert [labels.mask_of([label]) for label in labels.LABELS] == [1, 2, 4, 8, 16, 32, 64, 128]
    assert labels.LABELS[:4] == ("empty", "trivial", "thinking_only", "truncated")
