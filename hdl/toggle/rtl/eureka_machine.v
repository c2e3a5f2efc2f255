// State of the eureka line: goes high when any input is high, and stores the first node, until the barrier releases.
`default_nettype none

module eureka_machine #(
    parameter N = 60
) (
    input  wire         clk_i,
    input  wire         rst_i,
    input  wire         release_i,
    input  wire [N-1:0] level_i,
    output wire         found_o,
    output wire [N-1:0] first_o
);
    // An illegal parameter instantiates a missing module, so no tool elaborates the design.
    generate
        if (N < 1) begin : n_guard
            N_must_be_1_or_more refused ();
        end
    endgenerate

    reg          found_q   = 1'b0;
    reg  [N-1:0] first_q   = {N{1'b0}};
    reg          release_q = 1'b0;

    // A change of the toggle barrier's level is a release.
    wire         over     = release_i != release_q;
    wire         any_high = |level_i;
    // The lowest bit of level_i that is set.
    wire [N-1:0] lowest   = level_i & (~level_i + 1'b1);

    always @(posedge clk_i) begin
        release_q <= !rst_i && release_i;
        if (rst_i || over) begin
            found_q <= 1'b0;
            first_q <= {N{1'b0}};
        end else if (!found_q) begin
            found_q <= any_high;
            first_q <= lowest;
        end
    end

    assign found_o = found_q;
    assign first_o = first_q;
endmodule

`default_nettype wire
