// Proof of the filter alone, for long filters: a proof of the whole barrier would need too long a history of each pin.
// The assertions are in shared/rtl/level_filter.v and refer to the history of each wire.
`default_nettype none

module filter_alone #(
    parameter N = 1,
    parameter FILTER = 128
) (
    input wire         clk_i,
    input wire         rst_i,
    input wire [N-1:0] level_i
);
    wire [N-1:0] level;

    level_filter #(.N(N), .SAMPLES(FILTER)) dut (
        .clk_i   (clk_i),
        .rst_i   (rst_i),
        .level_i (level_i),
        .level_o (level)
    );
endmodule

`default_nettype wire
