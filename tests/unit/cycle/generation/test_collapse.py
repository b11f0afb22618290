"""Students that learn from students collapse, unless the cycle's rules are kept."""

import pytest

from tests.bench.cycle.collapse import SEED, guarded, read_texts, unguarded


@pytest.mark.full
def test_without_the_rules_students_collapse_and_with_them_they_do_not():
    print(f"seed {SEED}")
    texts = read_texts(documents=60, held_out=30)
    real_bpb = texts.bpb(texts.student)
    off = unguarded(texts, rounds=3)
    assert off[0] == real_bpb
    assert off[2] > off[1] > real_bpb + 0.1
    on = guarded(texts, rounds=3)
    assert on[0].candidate_bpb == real_bpb
    assert any(each.synthetic_share for each in on)
    assert all(each.in_force_bpb <= real_bpb + 0.01 for each in on)
    assert all(each.candidate_bpb <= real_bpb + 0.03 for each in on)
