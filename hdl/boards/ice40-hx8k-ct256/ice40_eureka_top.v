// Top level of the toggle barrier with its eureka line on an iCE40 HX8K, CT256 package, as ice40_top.v.
// It is a separate top level, because its ports differ and each top level has one .pcf file; the pads and the
// clock are those of ice40_top.v.
//
// Two input wires per node: its arrival and "found". An unplugged "found" reads high, because of the pull-up on the
// cable side of its receiver or of the pad, and would stay high: tie it low. Outputs: release and "found" to all nodes, and to each node whether it was first.
`default_nettype none

module ice40_eureka_top #(
    parameter N = 19
) (
    input  wire         clk12_i,
    input  wire [N-1:0] node_i,
    input  wire [N-1:0] says_i,
    output wire         release_o,
    output wire         found_o,
    output wire [N-1:0] first_o,
    output wire         lamp_high_o,
    output wire         lamp_low_o
);
    wire clk;

    ice40_clock clock (
        .clk12_i (clk12_i),
        .clk_o   (clk)
    );

    wire [2*N-1:0] pad;

    ice40_inputs #(.LINES(2*N)) inputs (
        .wire_i ({says_i, node_i}),
        .pad_o  (pad)
    );

    wire [N-1:0] level;

    toggle_barrier #(.N(N)) barrier (
        .clk_i  (clk),
        .rst_i  (1'b0),
        .node_i (pad[N-1:0]),
        .node_o (level)
    );

    eureka_line #(.N(N)) eureka (
        .clk_i     (clk),
        .rst_i     (1'b0),
        .release_i (level[0]),
        .node_i    (pad[2*N-1:N]),
        .found_o   (found_o),
        .first_o   (first_o)
    );

    assign release_o   = level[0];
    assign lamp_high_o = level[0];
    assign lamp_low_o  = !level[0];
endmodule

`default_nettype wire
