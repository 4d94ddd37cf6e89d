"""The fuzz targets in this folder, and the inputs that they start from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random

from tests.fuzz.mutation import mutated

FOLDER = Path(__file__).parent
CORPUS = FOLDER / "corpus"


@dataclass(frozen=True)
class Target:
    name: str
    run: Callable[[bytes], None]
    inputs: list[bytes]  # seeds, then the corpus
    own_mutation: Callable[[bytes, Random], bytes] | None

    def mutation(self, random: Random) -> bytes:
        data = random.choice(self.inputs)
        return mutated(data, random, self.inputs) if self.own_mutation is None else self.own_mutation(data, random)


def names() -> list[str]:
    return sorted(path.stem.removesuffix("_target") for path in FOLDER.glob("*_target.py"))


def load(name: str, before: float = math.inf) -> Target:
    """A target, with the part of its corpus that was there at a time."""
    module = import_module(f"tests.fuzz.{name}_target")
    corpus = [path.read_bytes() for path in sorted((CORPUS / name).glob("*")) if path.stat().st_mtime < before]
    return Target(name, module.run, [*module.seeds(), *corpus], getattr(module, "mutate", None))
