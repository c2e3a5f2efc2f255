"""The toggle barrier beside a reference that is told by history, under random and directed stimulus.

The reference shares nothing with the Rust model: it keeps the last samples of each wire and asks whether they agree.
"""

import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

N = int(os.environ["BARRIER_N"])
SAMPLES = int(os.environ["BARRIER_FILTER"])
ALL = (1 << N) - 1
PERIOD_PS = 39722
"""25.175 MHz."""
LATENCY = 2 + SAMPLES
"""Edges from the last arrival at the pins to the release."""


class Reference:
    """What the barrier has to do, edge by edge."""

    def __init__(self):
        self.reset()

    def reset(self):
        # Two synchroniser stages, then the samples that must agree, newest first.
        self.history = [0] * (SAMPLES + 1)
        self.held = 0
        self.level = 0

    def edge(self, inputs):
        seen = self.history[1 : SAMPLES + 1]
        high, low = ALL, ALL
        for sample in seen:
            high &= sample
            low &= ~sample
        self.held = (self.held | high) & ~low & ALL
        if self.held == (0 if self.level else ALL):
            self.level ^= 1
        self.history = [inputs] + self.history[:SAMPLES]
        return ALL if self.level else 0


async def power_on(dut):
    # One simulation runs all tests, so each starts with a reset.
    dut.rst_i.value = 1
    dut.node_i.value = 0
    cocotb.start_soon(Clock(dut.clk_i, PERIOD_PS, unit="ps").start(start_high=False))
    await FallingEdge(dut.clk_i)
    await FallingEdge(dut.clk_i)
    dut.rst_i.value = 0
    return Reference()


async def edge(dut, reference, inputs, reset=0):
    """One edge with these levels; the outputs after it are the reference's."""
    dut.rst_i.value = reset
    dut.node_i.value = inputs
    await FallingEdge(dut.clk_i)
    if reset:
        reference.reset()
        expected = 0
    else:
        expected = reference.edge(inputs)
    outputs = int(dut.node_o.value)
    assert outputs == expected, f"{outputs:x} instead of {expected:x} after {inputs:x}"
    return outputs


@cocotb.test()
async def random_arrivals(dut):
    """Arrivals, withdrawals and resets at random: the same outputs as the reference at every edge."""
    reference = await power_on(dut)
    rng = random.Random(2005)
    inputs, outputs, releases = 0, 0, 0
    for _ in range(3000):
        inputs ^= rng.getrandbits(N) & ~(inputs ^ outputs) & ALL
        if rng.random() < 0.05:
            inputs ^= rng.getrandbits(N) & rng.getrandbits(N)
        before = outputs
        outputs = await edge(dut, reference, inputs, rng.random() < 0.002)
        releases += outputs != before
    assert releases > 100, f"only {releases} releases"


@cocotb.test()
async def the_last_arrival_releases_after_the_latency(dut):
    """All but one node wait; the last one releases them after a fixed number of edges, both ways."""
    reference = await power_on(dut)
    for node in range(N):
        for goal in (ALL, 0):
            for _ in range(LATENCY + 3):
                assert await edge(dut, reference, goal ^ (1 << node)) == (ALL ^ goal)
            for passed in range(1, LATENCY + 1):
                outputs = await edge(dut, reference, goal)
                assert (outputs == goal) == (passed == LATENCY)


@cocotb.test()
async def pulses_are_arrivals_from_so_many_samples_on(dut):
    """A pulse of fewer samples than have to agree is nothing, one of as many is an arrival."""
    reference = await power_on(dut)
    for width in range(1, 2 * SAMPLES + 1):
        await edge(dut, reference, 0, reset=1)
        released = False
        for cycle in range(3 * LATENCY + width):
            pulse = LATENCY <= cycle < LATENCY + width
            released |= await edge(dut, reference, ALL if pulse else ALL & ~1) == ALL
        assert released == (width >= SAMPLES), f"a pulse of {width} samples"


@cocotb.test()
async def the_output_changes_at_rising_edges_only(dut):
    """The released level comes from a flip-flop: nothing moves between rising edges."""
    await power_on(dut)
    rng = random.Random(42)
    for _ in range(200):
        await RisingEdge(dut.clk_i)
        await FallingEdge(dut.clk_i)
        before = int(dut.node_o.value)
        dut.node_i.value = rng.getrandbits(N)
        await cocotb.triggers.Timer(PERIOD_PS // 4, unit="ps")
        assert int(dut.node_o.value) == before
