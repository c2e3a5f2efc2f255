// Contract of the eureka line, for any history of the wires, of reset and of the barrier's level: it rises exactly three edges after
// a node has raised its wire, and falls exactly at the edge after the barrier's level has changed. Together with it rises the wire
// to exactly one node: the lowest-numbered of those whose wires were high when the line rose. That wire stays high as long as the line.
//
// The model is the history of the pins, independent of the design. Proved by induction from power-on.
`default_nettype none

module eureka_contract #(
    parameter N = 60,
    parameter FILTER = 1
) (
    input wire         clk_i,
    input wire         rst_i,
    input wire         release_i,
    input wire [N-1:0] node_i
);
    wire         found;
    wire [N-1:0] first;
    wire [N-1:0] seen;

    eureka_line #(.N(N), .FILTER(FILTER)) dut (
        .clk_i     (clk_i),
        .rst_i     (rst_i),
        .release_i (release_i),
        .seen_o    (seen),
        .node_i    (node_i),
        .found_o   (found),
        .first_o   (first)
    );

    // The levels that the machine evaluated at the last edge, derived from the history of the wires.
    wire [N-1:0] told;
    reg  [N-1:0] told_q = {N{1'b0}};
    reg          found_q = 1'b0;
    reg  [N-1:0] first_q = {N{1'b0}};
    reg          kept_q = 1'b0;   // no reset at the last edge
    reg          level_q = 1'b0;  // the barrier's level before the last edge,
    reg          over_q = 1'b0;   // and whether it had changed just before that edge
    always @(posedge clk_i) begin
        level_q <= !rst_i && release_i;
        over_q  <= release_i != level_q;
        told_q  <= told;
        found_q <= found;
        first_q <= first;
        kept_q  <= !rst_i;
    end

    wire [N:0] below;             // any lower node has raised its wire
    wire [N:0] ones;              // any lower wire is high
    wire [N-1:0] is_told, is_lowest, is_alone, is_kept;
    assign below[0] = 1'b0;
    assign ones[0]  = 1'b0;

    genvar n;
    generate
        for (n = 0; n < N; n = n + 1) begin : wires
            reg [FILTER+1:0] pins_q = {FILTER+2{1'b0}};
            reg              held_q = 1'b0;
            // The machine evaluates samples that are two edges old at the coming edge; see filter_contract.v.
            wire all_high = &pins_q[FILTER:1];
            wire all_low  = ~|pins_q[FILTER:1];
            always @(posedge clk_i) begin
                pins_q <= rst_i ? {FILTER+2{1'b0}} : {pins_q[FILTER:0], node_i[n]};
                held_q <= !rst_i && told[n];
            end
            assign told[n]      = all_high || (held_q && !all_low);
            assign below[n+1]   = below[n] || told_q[n];
            assign ones[n+1]    = ones[n] || first[n];
            assign is_lowest[n] = !first[n] || (told_q[n] && !below[n]);
            assign is_alone[n]  = !first[n] || !ones[n];
            assign is_kept[n]   = first[n] == first_q[n];
        end
    endgenerate

    always @* begin
        the_machine_sees_what_is_told:      assert (seen == told);
        it_rises_and_falls_when_told:       assert (found == (kept_q && !over_q && (found_q || |told_q)));
        exactly_one_is_first_while_it_is:   assert (&is_alone && ones[N] == found);
        the_first_has_said_so_none_before:  assert (found_q || !found || &is_lowest);
        the_first_stays_until_it_falls:     assert (!found_q || !found || &is_kept);
    end
endmodule

`default_nettype wire
