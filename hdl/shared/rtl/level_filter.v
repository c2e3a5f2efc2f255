// Level filter: the output takes a new level after SAMPLES successive samples of it; shorter pulses are ignored.
//
// Each wire has a held level and a count of successive samples that differ from it. The sample that completes the count appears
// at the output in the same cycle, so a filter of one sample is a wire, and each further sample delays a level by one edge.
// In the Rust model: filter::Filter.
`default_nettype none

module level_filter #(
    parameter N       = 60,
    parameter SAMPLES = 4    // 1 to 256
) (
    input  wire         clk_i,
    input  wire         rst_i,
    input  wire [N-1:0] level_i,
    output wire [N-1:0] level_o
);
    // An illegal parameter instantiates a missing module, so no tool elaborates the design.
    generate
        if (N < 1) begin : n_guard
            N_must_be_1_or_more refused ();
        end
        if (SAMPLES < 1 || SAMPLES > 256) begin : samples_guard
            SAMPLES_must_be_1_to_256 refused ();
        end
    endgenerate

    // Number of bits that hold a count up to SAMPLES - 1.
    localparam BITS = SAMPLES <=   2 ? 1 : SAMPLES <=   4 ? 2 : SAMPLES <=  8 ? 3 : SAMPLES <= 16 ? 4 :
                      SAMPLES <=  32 ? 5 : SAMPLES <=  64 ? 6 : SAMPLES <= 128 ? 7 : 8;
    localparam [31:0]     LAST = SAMPLES - 1;
    localparam [BITS-1:0] FULL = LAST[BITS-1:0];

`ifdef FORMAL
    // The contract: if the last SAMPLES samples of a wire agree, the output has their level; else it keeps its previous level.
    // The lemma that makes the contract inductive: the count is the number of trailing samples that differ from the held level.
    wire [N-1:0] agreed, kept, counted;
    genvar k;
    always @* if (SAMPLES > 1) begin
        the_count_holds_its_last_value:   assert (FULL == SAMPLES - 1);
        what_all_samples_agree_on_counts: assert (&agreed);
        the_held_level_is_the_one_told:   assert (&kept);
        the_count_is_the_run:             assert (&counted);
    end
`endif

    genvar n;
    generate
        if (SAMPLES == 1) begin : none
            assign level_o = level_i;

            wire unused = clk_i | rst_i;
        end else for (n = 0; n < N; n = n + 1) begin : wires
            reg            held_q  = 1'b0;
            reg [BITS-1:0] count_q = {BITS{1'b0}};

            wire differs = level_i[n] != held_q;
            wire turns   = differs && count_q == FULL;

            always @(posedge clk_i) begin
                if (rst_i) begin
                    held_q  <= 1'b0;
                    count_q <= {BITS{1'b0}};
                end else begin
                    held_q  <= level_o[n];
                    count_q <= differs && !turns ? count_q + 1'b1 : {BITS{1'b0}};
                end
            end

            assign level_o[n] = turns ? level_i[n] : held_q;

`ifdef FORMAL
            // An independent model: the history of the wire instead of a count.
            reg  [SAMPLES-2:0] past_q = {SAMPLES-1{1'b0}};
            reg                told_q = 1'b0;
            wire [SAMPLES-1:0] samples = {past_q, level_i[n]};
            wire               told = &samples || (told_q && |samples);
            wire [SAMPLES-2:0] is_run;
            always @(posedge clk_i) begin
                past_q <= rst_i ? {SAMPLES-1{1'b0}} : samples[SAMPLES-2:0];
                told_q <= !rst_i && told;
            end
            for (k = 0; k < SAMPLES - 1; k = k + 1) begin : runs
                assign is_run[k] = (count_q > k) == (past_q[k:0] == {k+1{!held_q}});
            end
            assign agreed[n]  = level_o[n] == told;
            assign kept[n]    = held_q == told_q;
            assign counted[n] = &is_run;
`endif
        end
    endgenerate
endmodule

`default_nettype wire
