"""Version 2 as a node sees it: frames over the serial lines, then barriers among the members.

The master and its CRC are written from the description in CHANNELS.md alone.
"""

import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

N = int(os.environ["BARRIER_N"])
CHANNELS = 5
PERIOD_PS = 39722
HOLD = 8
"""Edges for which a serial line keeps each level."""
FRAME_BITS = 88
IDENTIFY, SET_MASK, READ_MASK = 1, 2, 4
DONE, TAKEN = 1, 7


def crc(bits):
    """CRC-16/IBM-3740."""
    value = 0xFFFF
    for bit in bits:
        top = value >> 15 ^ bit
        value = (value << 1 & 0xFFFF) ^ (0x1021 if top else 0)
    return value


def to_bits(value, width):
    return [value >> place & 1 for place in reversed(range(width))]


def from_bits(bits):
    return int("".join(map(str, bits)), 2)


class Lines:
    """The lines of all nodes; every change lasts."""

    def __init__(self, dut):
        self.dut = dut
        self.select = self.clock = self.data = 0
        self.arrive = [0] * CHANNELS

    async def edges(self, count):
        dut = self.dut
        dut.select_i.value = self.select
        dut.clock_i.value = self.clock
        dut.data_i.value = self.data
        dut.arrive_i.value = sum(levels << (N * c) for c, levels in enumerate(self.arrive))
        for _ in range(count):
            await FallingEdge(dut.clk_i)

    async def request(self, node, operation, channel, argument=0):
        """One session of a node; status, channel and value of the reply."""
        me = 1 << node
        body = to_bits(operation, 4) + to_bits(channel, 4) + to_bits(argument, 64)
        self.select |= me
        await self.edges(HOLD)
        for bit in body + to_bits(crc(body), 16):
            self.data = self.data & ~me | (me if bit else 0)
            await self.edges(HOLD)
            await self.pulse(me)
        heard = []
        for _ in range(FRAME_BITS):
            heard.append(int(self.dut.last_o.value) >> node & 1)
            await self.pulse(me)
        self.select &= ~me
        await self.edges(HOLD)
        assert crc(heard[:72]) == from_bits(heard[72:]), f"the reply's check: {heard}"
        return from_bits(heard[:4]), from_bits(heard[4:8]), from_bits(heard[8:72])

    async def pulse(self, me):
        self.clock |= me
        await self.edges(HOLD)
        self.clock &= ~me
        await self.edges(HOLD)


async def power_on(dut):
    # One simulation runs all tests, so each starts with a reset.
    dut.rst_i.value = 1
    cocotb.start_soon(Clock(dut.clk_i, PERIOD_PS, unit="ps").start(start_high=False))
    lines = Lines(dut)
    await lines.edges(4)
    dut.rst_i.value = 0
    await lines.edges(4)
    return lines


@cocotb.test()
async def it_says_what_it_is(dut):
    """Identify: version, nodes, channels."""
    lines = await power_on(dut)
    status, _, value = await lines.request(1, IDENTIFY, 0)
    assert (status, value) == (DONE, 2 << 16 | N << 8 | CHANNELS)


@cocotb.test()
async def a_taken_channel_is_a_barrier_of_its_members(dut):
    """Node 1 takes channel 3 for nodes 1 and 2; the other nodes' lines do not matter, and no other node gets it."""
    lines = await power_on(dut)
    assert await lines.request(1, SET_MASK, 3, 0b110) == (DONE, 3, 0b110)
    assert (await lines.request(0, SET_MASK, 3, 0b001))[0] == TAKEN
    assert await lines.request(0, READ_MASK, 3) == (DONE, 3, 0b110)
    released = lambda: int(dut.release_o.value) >> 3 & 1
    for goal in (1, 0, 1, 0):
        lines.arrive[3] = lines.arrive[3] & ~0b010 | (0b010 if goal else 0)
        await lines.edges(10)
        assert released() != goal, "one of two members"
        lines.arrive[3] ^= 0b001
        await lines.edges(10)
        assert released() != goal, "a node outside is no member"
        lines.arrive[3] = lines.arrive[3] & ~0b100 | (0b100 if goal else 0)
        await lines.edges(2)
        assert released() != goal, "two edges are too few"
        await lines.edges(1)
        assert released() == goal, "three are enough"
    assert await lines.request(2, SET_MASK, 3, 0) == (DONE, 3, 0)


@cocotb.test()
async def after_power_on_all_nodes_have_channel_0(dut):
    """A version 1 driver works on a board that has not been programmed."""
    lines = await power_on(dut)
    for goal in ((1 << N) - 1, 0):
        lines.arrive[0] = goal ^ 1
        await lines.edges(10)
        assert (int(dut.release_o.value) & 1) != (goal & 1)
        lines.arrive[0] = goal
        await lines.edges(3)
        assert (int(dut.release_o.value) & 1) == (goal & 1)
