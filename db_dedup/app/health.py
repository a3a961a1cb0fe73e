"""Where the watched tables stand, their triggers included: what `status` shows."""

from dataclasses import replace

from sqlalchemy import Connection, inspect

from db_dedup.app.database import Database
