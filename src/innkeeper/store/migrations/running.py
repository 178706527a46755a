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


def upgrade(tx: Tx) -> None:
    """Run all steps that the schema lacks."""
    alembic.command.upgrade(config(tx), "head")
