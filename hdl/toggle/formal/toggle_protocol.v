// Proof of the whole barrier: N nodes that obey the driver's protocol, cables, synchronisers, the machine; any interleaving.
//
// One step of the proof is one clock edge. Between two edges each node may do nothing, poll, enter, or leave and
// immediately enter; a free input chooses, so every order and every speed of the nodes is covered. More cannot
// happen between two edges: a node that has entered cannot leave before the output, a flip-flop, has changed.
// Each cable is a wire that takes its driver's level when a free input is high: this covers any length, and any resolution of a
// metastable sample. Drivers that read the level before they enter and drivers that remember it are both covered.
//
// A filter delays a level by FILTER more samples; the free inputs of the cables already cover such delays.
//
// Ghost counters count, modulo 4, the barriers that each node has entered and left, and the machine's releases.
// The claims: entered and released differ by 0 or 1, released and left differ by 0 or 1. Hence after a node has left
// its barrier k, the machine has released k times and every node has entered k times: no node leaves before all have
// entered. Progress: after all have entered and their levels have passed the synchronisers, the next edge releases; and a release
// stays on the wire until the last node has read it, so every node leaves.
`default_nettype none

module toggle_protocol #(
    parameter N = 60,
    // Number of equal samples that make a level.
    parameter FILTER = 1,
    // 1: node 0 may reboot at any time, which makes its wire low. A test requires that the proof then fails.
    parameter REBOOTS = 0,
    // 0: asserts only the claims, without the lemmas that make them inductive; for mutants, because a refuted lemma is no refuted claim.
    parameter LEMMAS = 1
) (
    input wire         clk_i,
    input wire [N-1:0] poll_i,     // the node polls
    input wire [N-1:0] enter_i,    // the node enters, if it is outside
    input wire [N-1:0] fresh_i,    // it reads the level before it enters, instead of using the remembered one
    input wire [N-1:0] forward_i,  // the cable to the barrier takes its driver's level
    input wire [N-1:0] back_i,     // the cable from the barrier takes its driver's level
    input wire         reboot_i
);
    wire [N-1:0] node_o;
    wire [N-1:0] seen_by_dut;
    reg  [N-1:0] wire_q   = {N{1'b0}};  // the levels that the nodes drive
    reg  [N-1:0] inside_q = {N{1'b0}};  // the node has entered and not read the release yet
    reg  [N-1:0] level_q  = {N{1'b0}};  // the level that the node remembers
    reg  [N-1:0] pin_q    = {N{1'b0}};  // the far end of the cable to the barrier
    reg  [N-1:0] seen_q   = {N{1'b0}};  // the far end of the cable from the barrier
    reg  [1:0]   released_q = 2'd0;

    toggle_barrier #(.N(N), .FILTER(FILTER)) dut (
        .clk_i  (clk_i),
        .rst_i  (1'b0),
        .seen_o (seen_by_dut),
        .node_i (pin_q),
        .node_o (node_o)
    );

    // The levels in the synchronisers, modelled independently of the design; an assertion compares both.
    reg [N-1:0] stage1_q = {N{1'b0}};
    reg [N-1:0] stage2_q = {N{1'b0}};
    always @(posedge clk_i) begin
        stage1_q <= pin_q;
        stage2_q <= stage1_q;
    end

    // The barrier's level before the last edge; `level` is its present one.
    reg  old_level_q = 1'b0;
    wire level = node_o[0];
    wire [1:0] released = released_q + (level != old_level_q);

    always @(posedge clk_i) begin
        old_level_q <= level;
        released_q  <= released;
    end

    // The levels that have passed synchroniser and filter, one bit per node.
    wire [N-1:0] passed;
    wire [N-1:0] came_through = passed ^ {N{level}};
    reg all_came_q = 1'b0;
    always @(posedge clk_i)
        all_came_q <= &came_through;

    always @* begin
        all_outputs_agree:          assert (node_o == {N{level}});
        all_arrivals_release:       assert (!all_came_q || level != old_level_q);
    end

    // One bit for each node and claim, in the order of the asserts below.
    wire [N-1:0] count_entered, count_left, one_change, still, other, entries, exits, once;

    always @* begin
        enters_before_the_release:  assert (&count_entered);
        leaves_after_the_release:   assert (&count_left);
        if (LEMMAS) begin
            releases_have_the_levels:   assert (released[0] == level);
            one_change_on_the_way:      assert (&one_change);
            outside_all_is_still:       assert (&still);
            inside_it_drives_the_other: assert (&other);
            what_passes_is_seen:        assert (passed == seen_by_dut);
            levels_count_entries:       assert (&entries);
            levels_count_exits:         assert (&exits);
            inside_means_one_more:      assert (&once);
        end
    end

    genvar n, k;
    generate
        for (n = 0; n < N; n = n + 1) begin : node
            reg [1:0] entered_q = 2'd0;
            reg [1:0] left_q    = 2'd0;

            wire seen   = back_i[n] ? node_o[n] : seen_q[n];
            wire leaves = poll_i[n] && inside_q[n] && seen == wire_q[n];
            wire out    = leaves || !inside_q[n];
            wire enters = enter_i[n] && out;
            // The barrier's level as the driver remembers it: when a node leaves, this is the level of its own wire.
            wire known  = leaves ? wire_q[n] : level_q[n];
            wire drives = enters ? (fresh_i[n] ? !seen : !known) : wire_q[n];
            wire reboots = REBOOTS && n == 0 && reboot_i;

            always @(posedge clk_i) begin
                wire_q[n]   <= reboots ? 1'b0 : drives;
                inside_q[n] <= enters || (inside_q[n] && !leaves);
                level_q[n]  <= known;
                seen_q[n]   <= seen;
                pin_q[n]    <= forward_i[n] ? drives : pin_q[n];
                entered_q   <= entered_q + enters;
                left_q      <= left_q + leaves;
            end

            // The levels along a node's loop, from its wire through the barrier to what it reads. At most one pair of neighbours differs,
            // because a node sends no second change before the first one has returned to it.
            // Two bits wide, so that the counts wrap.
            wire [1:0] entered_ahead = entered_q - released;
            wire [1:0] left_behind   = released - left_q;
            wire [1:0] still_inside  = entered_q - left_q;

            // The last samples, the newest in bit 0. The filter's output must follow from them: if the last FILTER samples, including the newest,
            // agree, it is their level, else it is the previous output, which the oldest sample still has.
            reg  [FILTER-1:0] past_q = {FILTER{1'b0}};
            wire [FILTER:0]   samples = {past_q, stage2_q[n]};
            always @(posedge clk_i)
                past_q <= samples[FILTER-1:0];
            assign passed[n] = samples[FILTER-1:0] == {FILTER{stage2_q[n]}} ? stage2_q[n] : past_q[FILTER-1];

            // The samples in the order in which a level travels, the highest bit first.
            wire [FILTER-1:0] newest_first;
            for (k = 0; k < FILTER; k = k + 1) begin : turned
                assign newest_first[FILTER-1-k] = past_q[k];
            end
            wire [FILTER+5:0] way = {wire_q[n], pin_q[n], stage1_q[n], stage2_q[n], newest_first, level, seen_q[n]};
            wire [FILTER+4:0] changes = way[FILTER+5:1] ^ way[FILTER+4:0];

            assign count_entered[n] = !entered_ahead[1];
            assign count_left[n]    = !left_behind[1];
            assign one_change[n]    = (changes & (changes - 1'b1)) == 0;
            assign still[n]         = inside_q[n] || (changes == 0 && level_q[n] == level);
            assign other[n]         = !inside_q[n] || level_q[n] != wire_q[n];
            assign entries[n]       = entered_q[0] == wire_q[n];
            assign exits[n]         = left_q[0] == level_q[n];
            assign once[n]          = still_inside == {1'b0, inside_q[n]};
        end
    endgenerate
endmodule

`default_nettype wire
