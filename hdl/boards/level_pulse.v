// Start pulse at each change of the barrier's level, in both polarities, each driven by a flip-flop; for boards with a start output.
`default_nettype none

module level_pulse #(
    parameter WIDTH = 25     // 1 to 65535 cycles
) (
    input  wire clk_i,
    input  wire level_i,
    output wire start_o,
    output wire start_n_o    // the inverse, which changes at the same edge; low until the first edge after power-on
);
    // An illegal parameter instantiates a missing module, so no tool elaborates the design.
    generate
        if (WIDTH < 1 || WIDTH > 65535) begin : width_guard
            WIDTH_must_be_1_to_65535 refused ();
        end
    endgenerate

    localparam [31:0] CYCLES = WIDTH;

    reg level_q = 1'b0;
    always @(posedge clk_i)
        level_q <= level_i;
    wire releases = level_i ^ level_q;

    wire [1:0] begins;

    start_pulse positive (
        .clk_i     (clk_i),
        .rst_i     (1'b0),
        .release_i (releases),
        .width_i   (CYCLES[15:0]),
        .invert_i  (1'b0),
        .begins_o  (begins[0]),
        .start_o   (start_o)
    );

    start_pulse negative (
        .clk_i     (clk_i),
        .rst_i     (1'b0),
        .release_i (releases),
        .width_i   (CYCLES[15:0]),
        .invert_i  (1'b1),
        .begins_o  (begins[1]),
        .start_o   (start_n_o)
    );
endmodule

`default_nettype wire
