"""Fuzzing: mutated inputs must not crash, hang, eat memory or raise anything but the errors of this library.

A target is a module `NAME_target.py` with

- `seeds() -> list[bytes]`: small inputs to start from;
- `run(data: bytes) -> None`: raises for unexpected behaviour only;
- `mutate(data: bytes, random) -> bytes`, optionally: mutations of its own, for instance with a checksum.

`corpus/NAME` holds inputs that once failed. `python -m tests.fuzz` runs targets for a given time, each in a
process of its own; `test_targets.py` runs all seeds, the corpus and some mutations.
"""
