from jupiterd.cycle.gate.shown_reason import shown_reason


def test_an_improvement_is_told_as_a_mean_over_documents_and_nothing_else_changes():
    assert shown_reason(
        "better by more than 0.005: improvement +0.0120 bits per byte, between +0.0101 and +0.0139"
    ) == (
        "better by more than 0.005: improvement +0.0120 bits per byte a document, between +0.0101 "
        "and +0.0139"
    )
    other = "small students learn less: -0.0950 bits per byte, between -0.1136 and -0.0764"
    assert shown_reason(other) == other
