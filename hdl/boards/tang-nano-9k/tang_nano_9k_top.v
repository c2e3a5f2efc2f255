// Top level of the toggle barrier on a Tang Nano 9K, a board with a Gowin GW1NR-9.
//
// Sixteen input wires; one output wire, which the fan-out buffers of
// ../WIRING.md copy to the cables; one LED shows the level and another its inverse (active low). The board's
// oscillator of 27 MHz is the clock, 7 % above the oscillator of the prototype's board.
`default_nettype none

module tang_nano_9k_top #(
    parameter N = 16
) (
    input  wire         clk27_i,
    input  wire [N-1:0] node_i,
    output wire         release_o,
    output wire         lamp_high_no,
    output wire         lamp_low_no
);
    wire [N-1:0] level;

    toggle_barrier #(.N(N)) barrier (
        .clk_i  (clk27_i),
        .rst_i  (1'b0),
        .node_i (node_i),
        .node_o (level)
    );

    assign release_o    = level[0];
    assign lamp_high_no = !level[0];
    assign lamp_low_no  = level[0];
endmodule

`default_nettype wire
