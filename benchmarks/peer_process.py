"""One package of `peers` as a program: from a SQLite file to a written list of pairs.

python -m benchmarks.peer_process "rensa RMinHashLSH" SOURCE.db PAIRS.csv
"""

import csv
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from benchmarks.materials import Material
from benchmarks.peer_packages import PEERS


def main() -> None:
    """Read the table `texts`, find the pairs by the package's own setting, write them."""
    name, source, target = sys.argv[1:]
    (peer,) = (peer for peer in PEERS if peer.name == name)
    with closing(sqlite3.connect(source)) as connection:
        rows = connection.execute("SELECT id, text FROM texts ORDER BY id").fetchall()
    keys = [key for key, _ in rows]
    material = Material(name, [{"text": text or ""} for _, text in rows], set(), {})
    found = peer.find(material, peer.recommended)
    with Path(target).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("key_a", "key_b"))
        writer.writerows((keys[a], keys[b]) for a, b in sorted(found))


if __name__ == "__main__":
    main()
