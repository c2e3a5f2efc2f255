"""A LiteX SoC whose PicoRV32 passes barriers with a second master, simulated by Verilator.

    python3 -m venv venv && venv/bin/pip install -r requirements.txt && venv/bin/python try_soc.py FOLDER

It prints `core 20, other 20, early 0, released 20`. FOLDER gets the SoC's Verilog.
The core runs a program of a few instructions from ROM, so no compiler for it is needed. The second master enters as node 1, each time after
another pause. Icarus does not run the SoC: it leaves LiteX's combinational blocks without inputs unevaluated.
"""

import subprocess
import sys
from pathlib import Path

from migen import ClockDomain, FSM, If, Module, NextState, NextValue, Signal

from litex.build.generic_platform import Pins
from litex.build.sim import SimPlatform
from litex.soc.integration.builder import Builder
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect import wishbone

from barrier import add_barrier

BASE = 0x9000_0000
ROUNDS = 20
IO = [
    ("sys_clk", 0, Pins(1)),
    ("sys_rst", 0, Pins(1)),
    ("core_rounds", 0, Pins(32)),
    ("other_rounds", 0, Pins(32)),
    ("early", 0, Pins(1)),
]


def lui(rd, value):
    return value & 0xFFFFF000 | rd << 7 | 0x37


def addi(rd, rs, value):
    return (value & 0xFFF) << 20 | rs << 15 | rd << 7 | 0x13


def xori(rd, rs, value):
    return (value & 0xFFF) << 20 | rs << 15 | 4 << 12 | rd << 7 | 0x13


def andi(rd, rs, value):
    return (value & 0xFFF) << 20 | rs << 15 | 7 << 12 | rd << 7 | 0x13


def sw(rs, base, offset):
    return (offset >> 5 & 0x7F) << 25 | rs << 20 | base << 15 | 2 << 12 | (offset & 0x1F) << 7 | 0x23


def lw(rd, base, offset):
    return (offset & 0xFFF) << 20 | base << 15 | 2 << 12 | rd << 7 | 0x03


def bne(a, b, offset):
    return (
        (offset >> 12 & 1) << 31 | (offset >> 5 & 0x3F) << 25 | b << 20 | a << 15 | 1 << 12
        | (offset >> 1 & 0xF) << 8 | (offset >> 11 & 1) << 7 | 0x63
    )


def jal(offset):
    return (offset >> 20 & 1) << 31 | (offset >> 1 & 0x3FF) << 21 | (offset >> 11 & 1) << 20 | (offset >> 12 & 0xFF) << 12 | 0x6F


# x1 the block, x2 this core's page, x3 its level, x4 its rounds, x5 what it reads.
PROGRAM = [
    lui(1, BASE),
    lui(2, BASE + 0x1000),
    addi(3, 0, 0),
    addi(4, 0, 0),
    addi(5, 0, 3),
    sw(5, 1, 0x100),   # MASK0: nodes 0 and 1
    addi(5, 0, 1),
    sw(5, 1, 0x18),    # CTRL: ENABLE
    # again:
    addi(4, 4, 1),
    sw(4, 1, 0x14),    # SCRATCH: the rounds, for the test
    xori(3, 3, 1),
    sw(3, 2, 0x00),    # ARRIVE
    # wait:
    lw(5, 2, 0x04),    # LEVEL
    andi(5, 5, 1),
    bne(5, 3, -8),
    addi(5, 0, ROUNDS),
    bne(4, 5, -32),
    jal(0),
]


class Other(Module):
    """Node 1: waits until the block is enabled, then passes the same number of barriers, each after a pause of another length."""

    def __init__(self):
        self.bus = bus = wishbone.Interface(data_width=32, adr_width=30)
        self.rounds = Signal(32)
        level = Signal()
        pause = Signal(8)
        page = (BASE + 0x1040) >> 2
        self.submodules.fsm = fsm = FSM(reset_state="ENABLED")
        self.comb += bus.sel.eq(0xF)

        def access(address, we=0, data=0):
            return [bus.cyc.eq(1), bus.stb.eq(1), bus.we.eq(we), bus.adr.eq(address), bus.dat_w.eq(data)]

        # The bus is another master's in the cycle after each access.
        fsm.act(
            "ENABLED",
            *access((BASE + 0x18) >> 2),
            If(bus.ack, If(bus.dat_r[0], NextState("PAUSE")).Else(NextState("ASK AGAIN"))),
        )
        fsm.act("ASK AGAIN", NextState("ENABLED"))
        fsm.act(
            "PAUSE",
            NextValue(pause, pause - 1),
            If((pause == 0) & (self.rounds != ROUNDS),
               NextValue(self.rounds, self.rounds + 1), NextValue(level, ~level), NextState("ENTER")),
        )
        fsm.act("ENTER", *access(page, 1, level), If(bus.ack, NextState("WAIT AGAIN")))
        fsm.act("WAIT AGAIN", NextState("WAIT"))
        fsm.act(
            "WAIT",
            *access(page + 1),
            If(
                bus.ack,
                If(bus.dat_r[0] == level, NextValue(pause, self.rounds * 37), NextState("PAUSE")).Else(NextState("WAIT AGAIN")),
            ),
        )


class Soc(SoCCore):
    def __init__(self, platform):
        self.clock_domains.cd_sys = ClockDomain("sys")
        self.comb += [
            self.cd_sys.clk.eq(platform.request("sys_clk")),
            self.cd_sys.rst.eq(platform.request("sys_rst")),
        ]
        SoCCore.__init__(
            self, platform, int(50e6), cpu_type="picorv32", integrated_rom_size=0x1000, integrated_rom_init=PROGRAM,
            integrated_sram_size=0x400, with_uart=False, with_timer=False, ident="", ident_version=False,
        )
        self.barrier = add_barrier(self, origin=BASE, nodes=2)
        self.submodules.other = other = Other()
        self.bus.add_master("other", other.bus)
        core = Signal(32)
        bus = self.barrier.bus
        # The rounds of the core are what it writes to SCRATCH.
        self.sync += If(bus.stb & bus.we & (bus.adr[:11] == 0x14 >> 2), core.eq(bus.dat_w))
        left_early = Signal()
        # When node 1 is in PAUSE it has left its round, which the core must have begun.
        self.sync += If(other.fsm.ongoing("PAUSE") & (core < other.rounds), left_early.eq(1))
        self.comb += [
            platform.request("core_rounds").eq(core),
            platform.request("other_rounds").eq(other.rounds),
            platform.request("early").eq(left_early),
        ]


def main(folder):
    platform = SimPlatform("SIM", IO)
    soc = Soc(platform)
    builder = Builder(soc, output_dir=folder, compile_software=False, compile_gateware=False)
    builder.build(run=False, build_name="soc")
    sources = [source[0] for source in platform.sources]
    bench = Path(__file__).resolve().parents[1] / "dv" / "litex_tb.v"
    # The memories' contents are beside the SoC's Verilog.
    gateware = Path(folder, "gateware")
    verilator = ["verilator", "--binary", "--timing", "-Wno-fatal", "--top-module", "litex_tb", "-Mdir", "simulation"]
    subprocess.run([*verilator, str(bench), *sources], cwd=gateware, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run(["simulation/Vlitex_tb"], cwd=gateware, check=True)


if __name__ == "__main__":
    main(sys.argv[1])
