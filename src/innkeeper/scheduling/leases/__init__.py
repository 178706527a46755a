"""Chooses hosts for leases, by the use of hosts over time and by requirements."""
