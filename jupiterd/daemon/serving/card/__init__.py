"""What clients are told of a model beside its name: the card on the page, for one."""
