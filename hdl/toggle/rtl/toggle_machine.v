// The two-state machine of the toggle barrier: in state 0 it waits for all ones, in state 1 for all zeros.
//
// Its one flip-flop is also the output, so the output has no glitches.
// In the Rust model: Registers::output.
`default_nettype none

module toggle_machine #(
    parameter N = 60
) (
    input  wire         clk_i,
    input  wire         rst_i,
    input  wire [N-1:0] level_i,
    output wire         level_o
);
    // An illegal parameter instantiates a missing module, so no tool elaborates the design.
    generate
        if (N < 1) begin : n_guard
            N_must_be_1_or_more refused ();
        end
    endgenerate

    reg level_q = 1'b0;

    wire all_high = &level_i;
    wire all_low  = ~|level_i;
    wire toggle   = level_q ? all_low : all_high;

    always @(posedge clk_i) begin
        if (rst_i)
            level_q <= 1'b0;
        else if (toggle)
            level_q <= ~level_q;
    end

    assign level_o = level_q;
endmodule

`default_nettype wire
