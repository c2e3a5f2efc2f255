// Contract of channel_line: which pulses pass the filter, in samples (levels at clock edges), for any sequence of line, flush and reset.
//
// Proved by induction from power-on, at every edge. A pulse shorter than three clock periods covers at most three
// edges, and one of four periods or more at least four. So three_or_fewer_are_nothing and four_always_count are the contract
// of channels/README.md in clock edges, the only unit of time in a synchronous design. channel_line_tb measures the same limits in time.
`default_nettype none

module channel_line_contract (
    input wire clk_i,
    input wire rst_i,
    input wire flush_i,
    input wire line_i
);
    wire level;

    channel_line dut (
        .clk_i   (clk_i),
        .rst_i   (rst_i),
        .flush_i (flush_i),
        .line_i  (line_i),
        .level_o (level)
    );

    // Samples of the line, modelled independently of the design, the newest in bit 0; a flush clears them.
    // Two synchroniser stages precede the decision, so the last four evaluated samples are bits 2 to 5.
    reg [5:0] samples_q = 6'd0;
    reg       level_q   = 1'b0;
    reg       kept_q    = 1'b0;  // no flush and no reset at the last edge

    wire forget = rst_i || flush_i;

    always @(posedge clk_i) begin
        samples_q <= forget ? 6'd0 : {samples_q[4:0], line_i};
        level_q   <= level;
        kept_q    <= !forget;
    end

    wire [3:0] seen = samples_q[5:2];

    always @* begin
        a_flush_lowers_the_level:    assert (kept_q || !level);
        three_or_fewer_are_nothing:  assert (!kept_q || level == level_q || seen == {4{level}});
        four_always_count:           assert ((seen != 4'b0000 || !level) && (seen != 4'b1111 || level));
    end
endmodule

`default_nettype wire
