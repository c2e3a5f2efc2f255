// Contract of the two-state machine with its synchronisers, for any history of the input wires and of reset.
//
// Proved by induction from power-on, at every edge. "Seen" is the machine's input before the edge, which it evaluates at the edge.
`default_nettype none

module toggle_contract #(
    parameter N = 60,
    parameter SYNC = 2
) (
    input wire         clk_i,
    input wire         rst_i,
    input wire [N-1:0] node_i
);
    wire [N-1:0] node_o;

    toggle_barrier #(.N(N), .SYNC(SYNC)) dut (
        .clk_i  (clk_i),
        .rst_i  (rst_i),
        .node_i (node_i),
        .node_o (node_o)
    );

    // The pins' levels one, two, three and four edges ago, modelled independently of the design; a reset clears them.
    reg [N-1:0] pins1_q = {N{1'b0}};
    reg [N-1:0] pins2_q = {N{1'b0}};
    reg [N-1:0] pins3_q = {N{1'b0}};
    reg [N-1:0] pins4_q = {N{1'b0}};
    reg         level_q = 1'b0;
    reg         kept_q  = 1'b0;  // no reset at the last edge

    always @(posedge clk_i) begin
        pins1_q <= rst_i ? {N{1'b0}} : node_i;
        pins2_q <= rst_i ? {N{1'b0}} : pins1_q;
        pins3_q <= rst_i ? {N{1'b0}} : pins2_q;
        pins4_q <= rst_i ? {N{1'b0}} : pins3_q;
        level_q <= node_o[0];
        kept_q  <= !rst_i;
    end

    wire level = node_o[0];
    // What the machine evaluated at the last edge: each synchroniser stage delays by one edge.
    wire [N-1:0] decided = SYNC == 0 ? pins1_q : SYNC == 2 ? pins3_q : pins4_q;

    always @* begin
        all_outputs_agree:            assert (node_o == {N{level}});
        a_reset_lowers_the_output:    assert (kept_q || !level);
        a_rise_needs_all_wires_high:  assert (level_q || !level || &decided);
        a_fall_needs_all_wires_low:   assert (!kept_q || !level_q || level || ~|decided);
        all_high_raises_at_once:      assert (!kept_q || level_q || !(&decided) || level);
        all_low_lowers_at_once:       assert (!kept_q || !level_q || |decided || !level);
    end
endmodule

`default_nettype wire
