"""JSON lines: read alike for all sizes of blocks, or refused."""

from __future__ import annotations

import deciban as db
from tests.fuzz.row_files import fitted, require_same_cells, written

SEEDS = [
    b'{"a": 1, "b": "x", "y": true}\n{"a": 2.5, "b": null, "y": false}\n',
    b'{"a": 1}\n{"b": [1, {"c": 2}], "a": 9223372036854775807}\n\n{"a": -1e300}\n',
    '{"größe": "\\u00e4\\ud83d\\ude00", "y": "ü"}\r\n{"größe": "\\ud800", "y": "2026-01-02"}\r\n'.encode(),
    b'{"t": "12:30", "d": "2026-01-02", "y": "a"}\n{"t": "n/a", "d": "2026-01-03", "y": "b"}',
    b'{"a": {"b": 1}, "a": 2, "": 3}\n',
    b'\xef\xbb\xbf{"a": "1,200", "y": 0}\n{"a": "3", "y": 1}\n',
    b'[{"a": 1}]',
    b'{"x": 1, "y": "a"}\n' * 20 + b'{"x": "word", "z": 1, "y": "b"}\n',
]


def seeds() -> list[bytes]:
    return SEEDS


def run(data: bytes) -> None:
    path = written("t.jsonl", data)
    require_same_cells(path)
    fitted(lambda: db.scan(path), lambda: list(db.scan(path).names))
