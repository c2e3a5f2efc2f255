"""The register block behind AXI4-Lite, by masters of cocotbext-axi that pause their channels at random.

The addresses are those of barrier_regs.h, which is generated from the description.
"""

import os
import random
import re
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

N = int(os.environ["BARRIER_N"])
HEADER = Path(__file__).resolve().parents[2] / "barrier_regs.h"
DEFINED = re.findall(r"#define BARRIER_(\w+) +0x([0-9A-Fa-f]+)u", HEADER.read_text())
REGISTERS = {name: int(value, 16) for name, value in DEFINED}
PAGE = 64


def block(name):
    return REGISTERS[f"GLOBAL_{name}"]


def group(name):
    return REGISTERS["GROUP_BASE"] + REGISTERS[f"GROUP_{name}"]


def node(number, name):
    return REGISTERS["NODE_BASE"] + PAGE * number + REGISTERS[f"NODE_{name}"]


def pauses(seed):
    source = random.Random(seed)
    while True:
        yield source.random() < 0.4


async def started(dut, paused=True):
    """The master, after a reset."""
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.enter.value = 0
    dut.rst.value = 1
    master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), dut.clk, dut.rst)
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    await ClockCycles(dut.clk, 2)
    if paused:
        write, read = master.write_if, master.read_if
        for seed, channel in enumerate([write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel]):
            channel.set_pause_generator(pauses(seed))
    return master


async def set_up(master):
    assert (await master.write_dword(group("MASK0"), (1 << N) - 1)) is None
    await master.write_dword(block("CTRL"), 1)


@cocotb.test()
async def it_is_identified_and_the_scratch_register_keeps(dut):
    master = await started(dut)
    assert await master.read_dword(block("ID")) == REGISTERS["IDENTITY"]
    assert await master.read_dword(block("VERSION")) == REGISTERS["VERSION"]
    for value in (0, 0xFFFFFFFF, 0x12345678):
        await master.write_dword(block("SCRATCH"), value)
        assert await master.read_dword(block("SCRATCH")) == value


@cocotb.test()
async def what_is_no_register_or_no_whole_word_is_an_error(dut):
    master = await started(dut)
    response = await master.read(0x02C, 4)
    assert response.resp == AxiResp.SLVERR
    response = await master.write(block("ID"), bytes(4))
    assert response.resp == AxiResp.SLVERR
    response = await master.write(block("SCRATCH"), b"ab")
    assert response.resp == AxiResp.SLVERR
    assert await master.read_dword(block("SCRATCH")) == 0


@cocotb.test()
async def barriers_pass_with_a_master_that_pauses(dut):
    master = await started(dut)
    await set_up(master)
    level = 0
    for _ in range(12):
        order = list(range(N))
        random.shuffle(order)
        for number in order:
            assert (await master.read_dword(node(number, "LEVEL"))) & 1 == level
            await master.write_dword(node(number, "ARRIVE"), 1 - level)
        level = 1 - level
        for number in order:
            assert (await master.read_dword(node(number, "DONE"))) & 1 == 1
            assert (await master.read_dword(node(number, "LEVEL"))) & 1 == level
    assert await master.read_dword(group("RELEASES")) == 12


@cocotb.test()
async def a_missing_member_is_named_when_the_limit_expires_and_can_be_dropped(dut):
    master = await started(dut)
    await set_up(master)
    await master.write_dword(group("LIMIT"), 30)
    for number in range(1, N):
        await master.write_dword(node(number, "ARRIVE"), 1)
    await ClockCycles(dut.clk, 40)
    assert await master.read_dword(group("LATE0")) == 1
    response = await master.write(group("ACTION"), (1).to_bytes(4, "little"))
    assert response.resp == AxiResp.SLVERR
    await master.write_dword(group("ACTION"), 0xA5000001)
    assert await master.read_dword(group("MASK0")) == ((1 << N) - 1) & ~1
    assert await master.read_dword(node(1, "LEVEL")) == 1


@cocotb.test()
async def a_release_in_the_cycle_of_the_clear_is_kept(dut):
    """The clear is taken in every cycle around the release, also in that one; the event is pending unless the clear came later."""
    master = await started(dut, paused=False)
    await set_up(master)
    same_cycle = 0
    for wait in range(8):
        await master.write_dword(node(0, "INTR_STATE"), 1)
        cleared, released = [], []

        async def observe():
            cycle = 0
            while True:
                await RisingEdge(dut.clk)
                cycle += 1
                if dut.dut.write.value == 1 and int(dut.dut.waddr.value) == node(0, "INTR_STATE"):
                    cleared.append(cycle)
                # The pulse is one cycle after the edge that latches the event.
                if int(dut.released.value) & 1:
                    released.append(cycle - 1)

        observer = cocotb.start_soon(observe())
        clear = cocotb.start_soon(master.write_dword(node(0, "INTR_STATE"), 1))
        await ClockCycles(dut.clk, wait)
        dut.enter.value = (1 << N) - 1
        await ClockCycles(dut.clk, 1)
        dut.enter.value = 0
        await ClockCycles(dut.clk, 8)
        await clear
        observer.cancel()
        pending = await master.read_dword(node(0, "INTR_STATE"))
        assert len(cleared) == len(released) == 1, (cleared, released)
        assert pending & 1 == (cleared <= released), (wait, cleared, released)
        same_cycle += cleared == released
    assert same_cycle > 0
