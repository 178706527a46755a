"""The Block Storage API's errors, which have the form of the Compute API's errors."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute import faults

form = faults.form
body_refusal = faults.body_refusal
query_refusal = faults.query_refusal
