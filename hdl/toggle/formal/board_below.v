// Proof of a board below another one: its N nodes send their wires to it and read the output of the board at the top, the root.
//
// Cascaded boards are proved by contracts, so the proof holds for any number of boards and levels of the cascade.
//
// * The root's contract, assumed here: it releases only after this board (and every other board, none of which is modelled) has announced,
//   which means that it has changed its output.
//   toggle_protocol.v proves this contract for a barrier whose "nodes" are the boards below it.
// * This board's contract, proved here: it changes its output only after all its nodes have entered, and only after the root
//   has released its previous announcement; so the board above sees a node that obeys the protocol. This board's "nodes" may
//   also be boards, because this proof assumes of a node exactly what it proves of a board.
//
// Every barrier that a node has left was released by the root; every barrier that the root has released was announced by every board; every
// barrier that a board has announced was entered by all its nodes. The assumption and the claim each rely only on earlier edges of the
// other, so the reasoning is not circular.
//
// One step is one clock edge of this board; the other boards' clocks are free inputs. Ghost counters count modulo 4, as in toggle_protocol.v.
`default_nettype none

module board_below #(
    parameter N = 60,
    // 1: the nodes read this board's output instead of the root's. A test requires that the proof then fails.
    parameter READS_OWN = 0,
    // 0: asserts only the claims, without the lemmas; for mutants.
    parameter LEMMAS = 1
) (
    input wire         clk_i,
    input wire         root_i,     // the root releases, if its contract permits
    input wire [N-1:0] poll_i,     // the node polls
    input wire [N-1:0] enter_i,    // the node enters, if it is outside
    input wire [N-1:0] fresh_i,    // it reads the level before it enters, instead of using the remembered one
    input wire [N-1:0] forward_i,  // the cable to the board takes its driver's level
    input wire [N-1:0] back_i      // the cable from the root takes its driver's level
);
    wire [N-1:0] node_o;
    reg  [N-1:0] wire_q   = {N{1'b0}};
    reg  [N-1:0] inside_q = {N{1'b0}};
    reg  [N-1:0] level_q  = {N{1'b0}};
    reg  [N-1:0] pin_q    = {N{1'b0}};
    reg  [N-1:0] seen_q   = {N{1'b0}};

    toggle_barrier #(.N(N)) dut (
        .clk_i  (clk_i),
        .rst_i  (1'b0),
        .node_i (pin_q),
        .node_o (node_o)
    );

    reg [N-1:0] stage1_q = {N{1'b0}};
    reg [N-1:0] stage2_q = {N{1'b0}};
    always @(posedge clk_i) begin
        stage1_q <= pin_q;
        stage2_q <= stage1_q;
    end

    // Ghost counters of this board's announcements and of the root's releases.
    reg        old_level_q = 1'b0;
    reg  [1:0] announced_q = 2'd0;
    reg  [1:0] released_q  = 2'd0;
    reg        root_q      = 1'b0;
    wire       level       = node_o[0];
    wire [1:0] announced   = announced_q + (level != old_level_q);

    // The root's contract: it releases only an announcement of this board that it has not released yet.
    wire releases = root_i && announced != released_q;
    always @(posedge clk_i) begin
        old_level_q <= level;
        announced_q <= announced;
        released_q  <= released_q + releases;
        root_q      <= root_q ^ releases;
    end

    wire [N-1:0] came_through = stage2_q ^ {N{level}};
    reg all_came_q = 1'b0;
    always @(posedge clk_i)
        all_came_q <= &came_through;

    wire [1:0] ahead = announced - released_q;
    wire [N-1:0] count_entered, count_left, one_change, still, other, entries, exits, once;

    always @* begin
        all_outputs_agree:              assert (node_o == {N{level}});
        all_arrivals_are_announced:     assert (!all_came_q || level != old_level_q);
        one_announcement_at_a_time:     assert (!ahead[1]);
        enters_before_the_announcement: assert (&count_entered);
        leaves_after_the_release:       assert (&count_left);
        if (LEMMAS) begin
            announcements_have_the_levels: assert (announced[0] == level);
            releases_have_the_levels:      assert (released_q[0] == root_q);
            one_change_on_the_way:         assert (&one_change);
            outside_all_is_still:          assert (&still);
            inside_it_drives_the_other:    assert (&other);
            levels_count_entries:          assert (&entries);
            levels_count_exits:            assert (&exits);
            inside_means_one_more:         assert (&once);
        end
    end

    genvar n;
    generate
        for (n = 0; n < N; n = n + 1) begin : node
            reg [1:0] entered_q = 2'd0;
            reg [1:0] left_q    = 2'd0;

            wire source = READS_OWN ? level : root_q;
            wire seen   = back_i[n] ? source : seen_q[n];
            wire leaves = poll_i[n] && inside_q[n] && seen == wire_q[n];
            wire out    = leaves || !inside_q[n];
            wire enters = enter_i[n] && out;
            wire known  = leaves ? wire_q[n] : level_q[n];
            wire drives = enters ? (fresh_i[n] ? !seen : !known) : wire_q[n];

            always @(posedge clk_i) begin
                wire_q[n]   <= drives;
                inside_q[n] <= enters || (inside_q[n] && !leaves);
                level_q[n]  <= known;
                seen_q[n]   <= seen;
                pin_q[n]    <= forward_i[n] ? drives : pin_q[n];
                entered_q   <= entered_q + enters;
                left_q      <= left_q + leaves;
            end

            wire [1:0] entered_ahead = entered_q - announced;
            wire [1:0] left_behind   = released_q - left_q;
            wire [1:0] still_inside  = entered_q - left_q;

            // The levels along the loop from the node's wire through this board and the root back to the node.
            wire [6:0] way = {wire_q[n], pin_q[n], stage1_q[n], stage2_q[n], level, root_q, seen_q[n]};
            wire [5:0] changes = way[6:1] ^ way[5:0];

            assign count_entered[n] = !entered_ahead[1];
            assign count_left[n]    = !left_behind[1];
            assign one_change[n]    = (changes & (changes - 6'd1)) == 6'd0;
            assign still[n]         = inside_q[n] || (changes == 6'd0 && level_q[n] == level);
            assign other[n]         = !inside_q[n] || level_q[n] != wire_q[n];
            assign entries[n]       = entered_q[0] == wire_q[n];
            assign exits[n]         = left_q[0] == level_q[n];
            assign once[n]          = still_inside == {1'b0, inside_q[n]};
        end
    endgenerate
endmodule

`default_nettype wire
