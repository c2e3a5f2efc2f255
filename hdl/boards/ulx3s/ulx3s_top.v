// Top level of the toggle barrier on a ULX3S, a board with an ECP5 and 56 signals on its two headers.
//
// Fifty-five input wires; one output wire, which the fan-out buffers of
// ../WIRING.md copy to the cables; one LED shows the level and another its inverse. The board's oscillator of 25 MHz is the
// clock, 0.7 % below that of the prototype's board. The radio module shares six of the signals and is held in reset.
`default_nettype none

module ulx3s_top #(
    parameter N = 55
) (
    input  wire         clk25_i,
    input  wire [N-1:0] node_i,
    output wire         release_o,
    output wire         lamp_high_o,
    output wire         lamp_low_o,
    output wire         wifi_en_o
);
    wire [N-1:0] level;

    toggle_barrier #(.N(N)) barrier (
        .clk_i  (clk25_i),
        .rst_i  (1'b0),
        .node_i (node_i),
        .node_o (level)
    );

    assign release_o   = level[0];
    assign lamp_high_o = level[0];
    assign lamp_low_o  = !level[0];
    assign wifi_en_o   = 1'b0;
endmodule

`default_nettype wire
