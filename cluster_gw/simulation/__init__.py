"""What-if: the real decisions in a fleet on a virtual clock, at providers that are described."""
