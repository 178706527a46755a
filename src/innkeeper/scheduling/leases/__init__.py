"""Choose hosts for leases, based on requirements and on the use of the hosts over time."""
