// Testbench of the SoC of litex/try_soc.py: prints the numbers of barriers that the core and the other master passed,
// whether one left early (1) or not (0), and the number of releases.
`default_nettype none
`timescale 1ns / 1ps

module litex_tb;
    localparam ROUNDS = 20;

    reg         clk = 1'b0;
    reg         rst = 1'b1;
    wire [31:0] core, other;
    wire        early;
    integer     cycles = 0;

    always #10 clk = !clk;

    soc dut (
        .sys_clk      (clk),
        .sys_rst      (rst),
        .core_rounds  (core),
        .other_rounds (other),
        .early        (early)
    );

    always @(posedge clk) begin
        cycles <= cycles + 1;
        if (cycles == 20)
            rst <= 1'b0;
        // Both masters have finished. The number of barriers is even, so the last release sets the level to 0 again.
        if (core == ROUNDS && other == ROUNDS && dut.barrier_wishbone.regs.level_o == 1'b0) begin
            $display("core %0d, other %0d, early %0d, released %0d", core, other, early, dut.barrier_wishbone.regs.released);
            $finish;
        end
        if (cycles == 100000) begin
            $display("hangs: core %0d, other %0d", core, other);
            $finish;
        end
    end
endmodule

`default_nettype wire
