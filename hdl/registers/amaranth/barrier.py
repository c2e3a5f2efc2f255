"""The register block for Amaranth: an Instance with plain signatures, for a SoC with a Wishbone of its own.

`python3 barrier.py` prints the Verilog of a wrapper, which the files of SOURCES complete.
"""

from pathlib import Path

from amaranth import ClockSignal, Instance, Module, ResetSignal
from amaranth.back import verilog
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

HDL = Path(__file__).resolve().parents[2]
SOURCES = [
    "registers/rtl/barrier_wishbone.v",
    "registers/rtl/wishbone_front.v",
    "registers/rtl/barrier_regs.v",
    "channels/rtl/channel_machine.v",
    "shared/rtl/synchroniser.v",
    "shared/rtl/start_pulse.v",
]


class Barrier(wiring.Component):
    """`adr` counts bytes. The cores have the block's clock; `enter` and `released` are for cores with an instruction of their own."""

    def __init__(self, nodes=4, groups=1, stamps=True):
        self.nodes, self.groups, self.stamps = nodes, groups, stamps
        lines = nodes * groups
        super().__init__({
            "cyc": In(1), "stb": In(1), "we": In(1), "adr": In(13), "dat_w": In(32), "sel": In(4),
            "dat_r": Out(32), "ack": Out(1), "err": Out(1),
            "enter": In(lines), "level": Out(groups), "released": Out(lines), "wake": Out(nodes), "irq": Out(1),
            "start": Out(1), "start_time": Out(32),
        })

    def elaborate(self, platform):
        if platform is not None:
            for source in SOURCES:
                platform.add_file(Path(source).name, (HDL / source).read_text())
        m = Module()
        m.submodules.block = Instance(
            "barrier_wishbone",
            p_ADDRESS=13, p_N=self.nodes, p_G=self.groups, p_SYNC=0, p_STAMPS=int(self.stamps),
            i_clk_i=ClockSignal(), i_rst_i=ResetSignal(),
            i_cyc_i=self.cyc, i_stb_i=self.stb, i_we_i=self.we, i_adr_i=self.adr, i_dat_i=self.dat_w, i_sel_i=self.sel,
            o_dat_o=self.dat_r, o_ack_o=self.ack, o_err_o=self.err,
            i_node_i=0, i_enter_i=self.enter,
            o_level_o=self.level, o_release_o=self.released, o_wake_o=self.wake, o_irq_o=self.irq,
            o_start_o=self.start, o_start_time_o=self.start_time,
        )
        return m


if __name__ == "__main__":
    print(verilog.convert(Barrier(), name="barrier"))
