"""One of several processes is the leader. The others forward their writes to it. See ADR 0043."""
