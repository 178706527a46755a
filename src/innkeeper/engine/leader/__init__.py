"""One process of several is the leader: the others forward their writes to it. ADR 0043."""
