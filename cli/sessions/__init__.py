"""`hermes sessions …`: everything that a person does with what was kept."""
