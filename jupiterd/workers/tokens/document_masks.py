"""Keeping documents apart within a sequence: which document each input stands in.

Owns where one document ends for whoever reads it as input. Doesn't know models: each engine makes
its mask of it. `ShardSet.documents` says which document a token is of.

The mark that ends a document is what the next one is read after: by people's prompts, and where
the gate scores a text. So the mark is foretold by its own document, and stands in the next as its
first input. Every target counts then: what no token foretells, the beginning of a document, is
foretold by the mark as well as it can be. Left out of the loss instead, it would never be learned,
and the gate would score a guess.
"""

import numpy as np
from numpy.typing import NDArray


def documents_of_inputs(documents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the document that each input is read in: that of the token which it foretells.

    documents: of each token of sequences, [sequences, seq_len + 1]
    """
    return documents[:, 1:]


def own_documents(documents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the document that each input is of, where some targets don't count.

    Conversations begin by themselves there, with no mark before them: nothing foretells a first
    token, which doesn't count.

    documents: of each token of sequences, [sequences, seq_len + 1]
    """
    return documents[:, :-1]
