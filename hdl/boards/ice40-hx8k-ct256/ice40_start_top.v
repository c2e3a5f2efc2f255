// Top level of the toggle barrier with a start pulse for instruments, on the pins of Lattice's iCE40HX-8K breakout board.
//
// As ice40_top, but for 58 nodes: the pins of the other two carry the start pulse as a differential pair. The pulse begins one cycle after
// release_o changes and lasts WIDTH clock cycles, by default 25 (about a microsecond). Resistors: ../WIRING.md.
`default_nettype none

module ice40_start_top #(
    parameter N = 58,
    parameter WIDTH = 25     // 1 to 65535 cycles
) (
    input  wire         clk12_i,
    input  wire [N-1:0] node_i,
    output wire         release_o,
    output wire         start_p_o,
    output wire         start_n_o,
    output wire         lamp_high_o,
    output wire         lamp_low_o
);
    wire clk;

    ice40_clock clock (
        .clk12_i (clk12_i),
        .clk_o   (clk)
    );

    wire [N-1:0] pad;

    ice40_inputs #(.LINES(N)) inputs (
        .wire_i (node_i),
        .pad_o  (pad)
    );

    wire [N-1:0] level;

    toggle_barrier #(.N(N)) barrier (
        .clk_i  (clk),
        .rst_i  (1'b0),
        .node_i (pad),
        .node_o (level)
    );

    level_pulse #(.WIDTH(WIDTH)) pulse (
        .clk_i     (clk),
        .level_i   (level[0]),
        .start_o   (start_p_o),
        .start_n_o (start_n_o)
    );

    assign release_o   = level[0];
    assign lamp_high_o = level[0];
    assign lamp_low_o  = !level[0];
endmodule

`default_nettype wire
