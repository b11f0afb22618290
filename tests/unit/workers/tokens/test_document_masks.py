import numpy as np
import torch

from jupiterd.workers.tokens.document_masks import documents_of_inputs
from jupiterd.workers.train.torch.attention import FlashAttention, TorchAttention

DOCUMENTS = np.array([[4, 4, 5, 6, 6, 6]])


def looked_at(documents: np.ndarray) -> list[list[int]]:
    (mask,) = TorchAttention().bounds(torch.from_numpy(documents))
    return [torch.nonzero(row).flatten().tolist() for row in mask[0]]


def test_a_token_looks_back_to_the_beginning_of_its_document_and_no_further():
    assert looked_at(DOCUMENTS) == [[0], [0, 1], [2], [3], [3, 4], [3, 4, 5]]


def test_the_mark_that_ends_a_document_is_the_first_input_of_the_next():
    assert documents_of_inputs(DOCUMENTS).tolist() == [[4, 5, 6, 6, 6]]
    assert looked_at(documents_of_inputs(DOCUMENTS)) == [[0], [1], [2], [2, 3], [2, 3, 4]]


def test_one_document_is_seen_like_plain_text():
    (mask,) = TorchAttention().bounds(torch.zeros(1, 5, dtype=torch.int64))
    assert torch.equal(mask[0], torch.ones(5, 5, dtype=torch.bool).tril())


def test_flash_attn_is_told_where_documents_begin_in_the_row_of_all_sequences():
    documents = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1], [2, 3, 4, 4]])
    bounds = FlashAttention().bounds(documents)
    assert bounds.dtype == torch.int32
    assert bounds.tolist() == [0, 2, 4, 8, 9, 10, 12]
