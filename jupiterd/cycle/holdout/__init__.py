"""Which text is held out, so that no near copy of it is trained on."""
