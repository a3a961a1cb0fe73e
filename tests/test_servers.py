"""The databases that the tests are given."""

from __future__ import annotations

from sqlalchemy import text

from tests.servers import Database


def test_each_database_is_empty_and_keeps_chinese_text(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE petition (content VARCHAR(20))"))
        connection.execute(text("INSERT INTO petition VALUES ('电梯停运😀')"))
        assert connection.scalar(text("SELECT content FROM petition")) == "电梯停运😀"
