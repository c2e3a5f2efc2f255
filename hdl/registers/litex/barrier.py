"""The register block as a LiteX module: `soc.add_module("barrier", Barrier(soc.platform, nodes=4))`, then `add_barrier(soc)`.

The region is not cached, because a cached ARRIVE or LEVEL is no barrier.
"""

from pathlib import Path

from migen import ClockSignal, Instance, Module, ResetSignal, Signal

from litex.soc.integration.soc import SoCRegion
from litex.soc.interconnect import wishbone

HDL = Path(__file__).resolve().parents[2]
SOURCES = [
    "registers/rtl/barrier_wishbone.v",
    "registers/rtl/wishbone_front.v",
    "registers/rtl/barrier_regs.v",
    "channels/rtl/channel_machine.v",
    "shared/rtl/synchroniser.v",
    "shared/rtl/start_pulse.v",
]


class Barrier(Module):
    """`bus` is a Wishbone slave of 8 KiB that addresses words; `wake` has a line for each node, and `irq` one for the block."""

    def __init__(self, platform, nodes=4, groups=1, stamps=1, clock_hz=0):
        self.bus = wishbone.Interface(data_width=32, adr_width=30)
        self.wake = Signal(nodes)
        self.irq = Signal()
        for source in SOURCES:
            platform.add_source(str(HDL / source))
        address = Signal(13)
        self.comb += address[2:].eq(self.bus.adr)
        self.specials += Instance(
            "barrier_wishbone",
            p_ADDRESS=13,
            p_N=nodes,
            p_G=groups,
            # The cores have the block's clock.
            p_SYNC=0,
            p_STAMPS=stamps,
            p_CLOCK_HZ=int(clock_hz),
            i_clk_i=ClockSignal("sys"),
            i_rst_i=ResetSignal("sys"),
            i_cyc_i=self.bus.cyc,
            i_stb_i=self.bus.stb,
            i_we_i=self.bus.we,
            i_adr_i=address,
            i_dat_i=self.bus.dat_w,
            i_sel_i=self.bus.sel,
            o_dat_o=self.bus.dat_r,
            o_ack_o=self.bus.ack,
            o_err_o=self.bus.err,
            i_node_i=0,
            i_enter_i=0,
            o_wake_o=self.wake,
            o_irq_o=self.irq,
        )


def add_barrier(soc, name="barrier", origin=None, **parameters):
    """Adds the block to a SoC's bus."""
    module = Barrier(soc.platform, clock_hz=soc.sys_clk_freq, **parameters)
    soc.add_module(name=name, module=module)
    soc.bus.add_slave(name, module.bus, SoCRegion(origin=origin, size=0x2000, cached=False))
    return module
