"""The simulation of scale runs, and its arithmetic is right."""

import numpy as np
import pytest
from benchmarks import scale_sim
from benchmarks.scale_sim import Cost, Line, Measured


def test_quick_run_prints_every_statistic_and_the_vocabulary(capsys, monkeypatch):
    monkeypatch.setattr(scale_sim, "FOR", 0.005)  # seconds of each measurement
    assert scale_sim.main(["--quick"]) == 0
    printed = capsys.readouterr().out
    assert all(kind.name in printed for kind in scale_sim.KINDS)
    assert "over the network" in printed
    assert "hash_bits=24" in printed


def test_line_finds_what_the_numbers_were_made_of():
    measured = [Measured(k, n, 100 + 17 * n + 8 * k * n, 0.0, 0.0) for k in (2, 10) for n in (10, 1_000, 10**5)]
    line = Line.fitted(measured, "bytes")
    assert (line.a, line.b, line.c) == pytest.approx((100, 17, 8))
    assert line.off == pytest.approx(0, abs=1e-9)


def test_nothing_measured_lies_above_the_line():
    rng = np.random.default_rng(1)
    measured = [Measured(k, n, 0, 0, n * rng.uniform(1, 3)) for k in (2, 10) for n in (10, 1_000, 10**5)]
    line = Line.fitted(measured, "merge")
    assert all(m.merge <= line.at(m.classes, m.places) * (1 + 1e-12) for m in measured)


def test_a_tree_of_64_partitions_by_8_has_two_levels():
    cost = Cost(bytes=scale_sim.NETWORK, travel=0.5, merge=0.5)  # one second on the way, one of work
    moved, seconds, levels = scale_sim.tree(cost, 64, workers=4)
    assert levels == [2 * 8 * 2.0, 8 * 2.0]  # eight sums on four workers, two in turn; then one
    assert (moved, seconds) == (72 * cost.bytes, sum(levels))


def test_a_shard_ends_with_the_terms_that_were_drawn():
    levels = scale_sim.shard(terms=500, leaves=4, draws=400, classes=2)
    assert [level.sums for level in levels] == [4, 2, 1]
    assert levels[0].terms < levels[-1].terms <= 500
