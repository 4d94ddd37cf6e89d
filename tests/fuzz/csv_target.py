"""csv and other delimited files: read alike for all sizes of blocks, or refused."""

from __future__ import annotations

from typing import Any

import deciban as db
from tests.fuzz.row_files import fitted, require_same_cells, written

OPTIONS: list[dict[str, Any]] = [  # the first byte of the input selects one
    {},
    {"delimiter": "\t"},
    {"delimiter": ";", "decimal": ","},
    {"header": False},
    {"quote": "'"},
    {"quote": "", "na_values": ["-", "NA"]},
    {"skip": 1, "encoding": "latin-1"},
    {"encoding": "utf-16"},
]
SEEDS = [
    b"a,b,y\n1,x,no\n2.5,,yes\n,z,no\n",
    b'"a","b"\n"1, 2","x ""q"" y"\n"multi\nline",3\n',
    b'a\tb\ty\r\n1\tx\tno\r\n2\t"y\tz"\tyes\r\n',
    b"a;b\n1,5;x\n2,5;y\n1.000,5;z\n",
    b"\xef\xbb\xbfa,b\n\xef\xbb\xbfx,1\n\xef\xbb\xbfy,2\n",
    b"d,t,m,y\n2026-01-02,12:30,$1,200,a\n2026-02-03,01:02:03,$3.5,b\n",
    b"a b\r1 2\r3 4\r",
    b"id,zip,hex,flag\n1,00501,0x10,true\n2,10001,0x11,FALSE\n",
    b"x,y\n" + b"1,a\n" * 40 + b"word,b\n" + b"2,c",
    b"\n\n  a , b \n 1 , true \n 2 , false \n\n",
    "größe,y\n1,ä\n2,ü\n".encode(),
]


def seeds() -> list[bytes]:
    return (
        [bytes([0]) + data for data in SEEDS]
        + [bytes([i]) + SEEDS[i % 5] for i in range(1, len(OPTIONS) - 1)]
        + [bytes([7]) + "x,y\n1,ä\n2,b\n".encode("utf-16")]
    )


def run(data: bytes) -> None:
    options, text = OPTIONS[data[0] % len(OPTIONS)] if data else {}, data[1:]
    path = written("t.csv", text)
    require_same_cells(path, **options)
    fitted(lambda: db.scan(path, **options), lambda: list(db.scan(path, **options).names))
