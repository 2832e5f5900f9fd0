"""Pure decisions: clock, randomness and snapshots are arguments."""
