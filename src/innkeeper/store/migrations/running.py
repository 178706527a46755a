"""Runs the steps of the schema with Alembic."""

from __future__ import annotations

from pathlib import Path

import alembic.command
import alembic.config

from innkeeper.store.transactions import Tx


def config(tx: Tx | None = None) -> alembic.config.Config:
    """Return Alembic's settings. The steps run in the transaction ``tx``."""
    settings = alembic.config.Config()
    settings.set_main_option("script_location", str(Path(__file__).parent))
    settings.attributes["connection"] = tx
    return settings


def upgrade(tx: Tx, to: str = "head") -> None:
    """Run all steps up to a revision that the schema lacks."""
    alembic.command.upgrade(config(tx), to)


def downgrade(tx: Tx, to: str) -> None:
    """Undo all steps after a revision. ``base`` undoes all steps."""
    alembic.command.downgrade(config(tx), to)
