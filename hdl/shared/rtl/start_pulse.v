// Start pulse: a pulse of width_i cycles at a release, the trigger output for instruments.
//
// A release in one cycle makes start_o active in the next width_i cycles, so it rises together with the new level. A pulse in progress keeps
// its width, even if width_i changes, and a release during a pulse starts no other one. So between two pulses start_o is inactive for
// at least one cycle, and each pulse has its full width. start_o is a flip-flop, so it has no glitches; invert_i makes it active low.
`default_nettype none

module start_pulse (
    input  wire        clk_i,
    input  wire        rst_i,      // synchronous; makes start_o low
    input  wire        release_i,
    input  wire [15:0] width_i,    // cycles, 0 for no pulse
    input  wire        invert_i,
`ifdef FORMAL
    output wire [15:0] left_f_o,
`endif
    output wire        begins_o,   // a pulse begins at the next edge
    output wire        start_o
);
    // Remaining cycles of the pulse, including the present one; 0 without a pulse.
    reg  [15:0] left_q  = 16'd0;
    reg         start_q = 1'b0;
    wire        idle    = left_q == 16'd0;
    reg  [15:0] left;

    always @* begin
        left = left_q - 16'd1;
        if (idle)
            left = width_i & {16{release_i}};
    end

    always @(posedge clk_i) begin
        left_q  <= rst_i ? 16'd0 : left;
        start_q <= !rst_i && ((left != 16'd0) ^ invert_i);
    end

    assign begins_o = idle && release_i && width_i != 16'd0;
    assign start_o  = start_q;

`ifdef FORMAL
    assign left_f_o = left_q;
`endif
endmodule

`default_nettype wire
