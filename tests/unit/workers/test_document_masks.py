import numpy as np

from jupiterd.workers.data.document_masks import attention_mask, loss_mask

DOCUMENTS = np.array([4, 4, 5, 6, 6, 6])


def test_a_token_looks_back_to_the_beginning_of_its_document_and_no_further():
    looked_at = [np.flatnonzero(row).tolist() for row in attention_mask(DOCUMENTS)]
    assert looked_at == [[0], [0, 1], [2], [3], [3, 4], [3, 4, 5]]


def test_no_loss_is_taken_of_what_begins_another_document():
    assert loss_mask(DOCUMENTS).tolist() == [True, False, False, True, True]


def test_within_one_document_both_masks_are_those_of_plain_text():
    one = np.zeros(5, dtype=np.int64)
    assert (attention_mask(one) == np.tril(np.ones((5, 5), dtype=bool))).all()
    assert loss_mask(one).all()
