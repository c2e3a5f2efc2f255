// Top level of the toggle barrier on an iCE40 HX8K in the CT256 package, as on Lattice's iCE40HX-8K breakout board.
//
// Sixty input wires, one for each node;
// one output wire, which the fan-out buffers of ../WIRING.md copy to sixty cables; one LED shows the level and another
// its inverse.
`default_nettype none

module ice40_top #(
    parameter N = 60
) (
    input  wire         clk12_i,
    input  wire [N-1:0] node_i,
    output wire         release_o,
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

    assign release_o   = level[0];
    assign lamp_high_o = level[0];
    assign lamp_low_o  = !level[0];
endmodule

`default_nettype wire
