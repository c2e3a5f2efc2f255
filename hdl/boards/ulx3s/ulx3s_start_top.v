// Top level of the toggle barrier with a start pulse for instruments, on a ULX3S.
//
// As ulx3s_top, but for 53 nodes: the pins GP21 and GN21, a differential pair, carry the start pulse. It begins one cycle
// after release_o changes and lasts WIDTH clock cycles, by default 25 (a microsecond). Resistors: ../WIRING.md.
`default_nettype none

module ulx3s_start_top #(
    parameter N = 53,
    parameter WIDTH = 25     // 1 to 65535 cycles
) (
    input  wire         clk25_i,
    input  wire [N-1:0] node_i,
    output wire         release_o,
    output wire         start_o,      // GP21; the differential pad drives GN21 with the inverse
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

    wire start_n;

    level_pulse #(.WIDTH(WIDTH)) pulse (
        .clk_i     (clk25_i),
        .level_i   (level[0]),
        .start_o   (start_o),
        .start_n_o (start_n)
    );

    assign release_o   = level[0];
    assign lamp_high_o = level[0];
    assign lamp_low_o  = !level[0];
    assign wifi_en_o   = 1'b0;
endmodule

`default_nettype wire
