"""The types of settings, with their bounds.

Always true: every number has a minimum and a maximum, which also rejects ``nan``.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from innkeeper.domain.amounts import UNIT_MAX

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
YEAR_S = 366 * 24 * 3600
Seconds = Annotated[float, msgspec.Meta(gt=0, le=YEAR_S)]
"""A time in seconds, at most a year. A longer time is probably a typo, and may overflow a
datetime."""
Days = Annotated[int, msgspec.Meta(ge=0, le=100 * 366)]
"""The number of days for which rows are kept; 0 keeps rows forever."""
FEW_MAX = 1000
MANY_MAX = 1_000_000
Few = Annotated[int, msgspec.Meta(ge=1, le=FEW_MAX)]
"""A small count: threads, processes or attempts."""
Many = Annotated[int, msgspec.Meta(ge=1, le=MANY_MAX)]
"""A large count: rows, hosts, servers or files."""
Bytes = Annotated[int, msgspec.Meta(ge=1, le=2**30)]
"""The size of objects that are kept in memory."""
Quota = Annotated[int, msgspec.Meta(ge=-1, le=UNIT_MAX)]
Multiplier = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]
Ratio = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
