// Two flip-flops per wire synchronise an arrival at any time to this clock domain.
//
// The first may go metastable when its input changes near the edge; it has a whole period to settle
// before the second takes its level over. No other logic may read stage1_q.
// In the model: Registers::stage1 and Registers::stage2.
`default_nettype none

module synchroniser #(
    parameter N = 60
) (
    input  wire         clk_i,
    input  wire         rst_i,
    input  wire [N-1:0] level_i,
    output wire [N-1:0] level_o
);
    // An illegal parameter names a module that does not exist, so no tool elaborates the design.
    generate
        if (N < 1) begin : n_guard
            N_must_be_1_or_more refused ();
        end
    endgenerate

    // Power-on levels: FPGA configuration clears every flip-flop.
    reg [N-1:0] stage1_q = {N{1'b0}};
    reg [N-1:0] stage2_q = {N{1'b0}};

    always @(posedge clk_i) begin
        if (rst_i) begin
            stage1_q <= {N{1'b0}};
            stage2_q <= {N{1'b0}};
        end else begin
            stage1_q <= level_i;
            stage2_q <= stage1_q;
        end
    end

    assign level_o = stage2_q;
endmodule

`default_nettype wire
