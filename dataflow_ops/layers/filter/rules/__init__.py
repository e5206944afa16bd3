"""One function per rule, one literal table."""
