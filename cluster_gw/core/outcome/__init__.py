"""From what an upstream did to what it means: peek, gate, classes, trail, exhaustion."""
