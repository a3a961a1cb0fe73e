"""Write the table of traditional characters anew from OpenCC: `python -m tests.flow.make_simplified`.

A changed table changes digests, so it needs a new RECIPE_VERSION and the former table in former_digests.
"""

import sys
from pathlib import Path

import opencc

import db_dedup

TABLE = Path(db_dedup.__file__).parent / "flow" / "text" / "simplified.txt"
_IDEOGRAPHS = [*range(0x3400, 0x4DC0), *range(0x4E00, 0xA000)]
_HEADER = """\
# Traditional character, simplified character: of the basic plane, each by itself.
# From the table t2s of OpenCC 1.4.2 (https://github.com/BYVoid/OpenCC), Apache License 2.0,
# see simplified.LICENSE.
# Changed by db_dedup: a character that became another traditional one becomes what that one becomes.
"""


def content() -> str:
    """The file: one conversion a line, each by itself, so that no neighbour decides."""
    convert = opencc.OpenCC("t2s").convert
    characters = list(map(chr, _IDEOGRAPHS))
    found = dict(zip(characters, convert("\n".join(characters)).split("\n"), strict=True))
    table = {one: found.get(other, other) for one, other in found.items()}
    return _HEADER + "".join(f"{a}{b}\n" for a, b in table.items() if a != b and ord(b) < 0x10000)


if __name__ == "__main__":
    TABLE.write_text(content(), "utf-8")
    sys.stdout.write("{:,} characters\n".format(content().count("\n") - _HEADER.count("\n")))
