// Filter of one serial line: two synchroniser stages, and a level that changes after four successive samples that differ from it.
//
// A pulse shorter than three clock periods never passes, one of four or more always does; between these, its phase decides
// (channels/formal/channel_line_contract.v). flush_i clears all state before another node's line is connected.
// In the Rust model: channels::Line.
`default_nettype none

module channel_line (
    input  wire clk_i,
    input  wire rst_i,
    input  wire flush_i,
    input  wire line_i,
    output wire level_o
);
    reg       stage1_q = 1'b0;
    reg       stage2_q = 1'b0;
    reg       level_q  = 1'b0;
    reg [1:0] run_q    = 2'd0;  // number of samples so far that differ from the level

    wire differs = stage2_q != level_q;

    always @(posedge clk_i) begin
        if (rst_i || flush_i) begin
            stage1_q <= 1'b0;
            stage2_q <= 1'b0;
            level_q  <= 1'b0;
            run_q    <= 2'd0;
        end else begin
            stage1_q <= line_i;
            stage2_q <= stage1_q;
            // The 2-bit count wraps to 0 at the fourth sample.
            run_q    <= differs ? run_q + 2'd1 : 2'd0;
            if (differs && run_q == 2'd3)
                level_q <= stage2_q;
        end
    end

    assign level_o = level_q;
endmodule

`default_nettype wire
