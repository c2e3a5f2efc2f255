// Top level of barrier version 2 on Lattice's iCE40HX-8K breakout board, for six nodes, which use all pins of ice40_top.pcf.
//
// Eight input wires per node, and one output wire per node (last_o, its last status line). The buffers of ../WIRING.md repeat the
// releases. Pull-ups on the cable side of the receivers make an unplugged port read high: it is granted the serial receiver once,
// loses it when the lease expires and is then ignored. Its arrival counts only in a channel of which it is a member.
// The LEDs show the level of channel 0 and its inverse.
`default_nettype none

module ice40_channels_top #(
    parameter N = 6,
    parameter C = 5
) (
    input  wire           clk12_i,
    input  wire [C*N-1:0] arrive_i,
    input  wire [N-1:0]   select_i,
    input  wire [N-1:0]   clock_i,
    input  wire [N-1:0]   data_i,
    output wire [C-1:0]   release_o,
    output wire [N-1:0]   last_o,
    output wire           lamp_high_o,
    output wire           lamp_low_o
);
    localparam LINES = (C + 3) * N;

    wire clk;

    ice40_clock oscillator (
        .clk12_i (clk12_i),
        .clk_o   (clk)
    );

    wire [LINES-1:0] pad;

    ice40_inputs #(.LINES(LINES)) inputs (
        .wire_i ({data_i, clock_i, select_i, arrive_i}),
        .pad_o  (pad)
    );

    channel_barrier #(.N(N), .C(C)) barrier (
        .clk_i     (clk),
        .rst_i     (1'b0),
        .arrive_i  (pad[0 +: C*N]),
        .select_i  (pad[C*N +: N]),
        .clock_i   (pad[C*N+N +: N]),
        .data_i    (pad[C*N+2*N +: N]),
        .release_o (release_o),
        .last_o    (last_o)
    );

    assign lamp_high_o = release_o[0];
    assign lamp_low_o  = !release_o[0];
endmodule

`default_nettype wire
