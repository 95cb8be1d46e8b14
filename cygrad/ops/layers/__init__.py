"""Other operators of layers: activation, normalization, attention, recurrence."""
