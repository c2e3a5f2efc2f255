// Contract of the filtered barrier, for any history of the input wires and of reset: if the last FILTER samples of
// a wire agree, they are its level, else it keeps the previous one; the machine toggles exactly when the levels of all wires differ from its state.
//
// The model is the history of the pins; the design counts samples instead. Proved by induction from power-on.
`default_nettype none

module filter_contract #(
    parameter N = 60,
    parameter FILTER = 4
) (
    input wire         clk_i,
    input wire         rst_i,
    input wire [N-1:0] node_i
);
    wire [N-1:0] node_o;
    wire [N-1:0] seen;

    toggle_barrier #(.N(N), .FILTER(FILTER)) dut (
        .clk_i  (clk_i),
        .rst_i  (rst_i),
        .seen_o (seen),
        .node_i (node_i),
        .node_o (node_o)
    );

    wire level = node_o[0];
    reg  level_q = 1'b0;
    reg  kept_q  = 1'b0;  // no reset at the last edge
    always @(posedge clk_i) begin
        level_q <= level;
        kept_q  <= !rst_i;
    end

    wire [N-1:0] told;    // the levels of the wires, derived from their histories,
    reg  [N-1:0] told_q = {N{1'b0}};  // and the same at the last edge
    always @(posedge clk_i)
        told_q <= told;

    genvar n;
    generate
        for (n = 0; n < N; n = n + 1) begin : wires
            // The history of each pin: bit 0 is its level one edge ago, bit 1 two edges ago, and so on; a reset clears all bits.
            reg [FILTER+1:0] pins_q = {FILTER+2{1'b0}};
            reg              held_q = 1'b0;
            // At the coming edge, the newest sample in the filter is two edges old.
            wire all_high = &pins_q[FILTER:1];
            wire all_low  = ~|pins_q[FILTER:1];
            always @(posedge clk_i) begin
                pins_q <= rst_i ? {FILTER+2{1'b0}} : {pins_q[FILTER:0], node_i[n]};
                held_q <= !rst_i && told[n];
            end
            assign told[n] = all_high || (held_q && !all_low);
        end
    endgenerate

    always @* begin
        all_outputs_agree:             assert (node_o == {N{level}});
        a_reset_lowers_the_output:     assert (kept_q || !level);
        the_machine_sees_what_is_told: assert (seen == told);
        it_toggles_exactly_when_told:  assert (!kept_q || (level != level_q) == (told_q == {N{!level_q}}));
    end
endmodule

`default_nettype wire
