// Protocol proof of one channel: nodes that obey the driver's protocol while they are members and behave arbitrarily otherwise,
// cables, synchronisers, channel_machine, and changes of the members, in any interleaving.
//
// Like toggle_protocol, whose header explains the cables, the ghost counters and the claims. Differences:
// * Lines of nodes that are not members are free at every edge: dead jobs, noise, other channels' drivers.
// * Members and time limit may change at any edge at which two rules allow it. The hardware's rule, proved in
//   channel_rules, is that the synchronised lines of all old and new members are at the channel's level.
//   The software's rule is its fence: no node is inside, and the levels that the members last wrote have passed their cables.
// * Members may be dropped in the middle of a barrier while all others wait; dropped nodes may then behave arbitrarily.
// The ghost counters of a new member start at the channel's count: earlier releases were not meant for it.
`default_nettype none

module channel_protocol #(
    parameter N = 4,
    // 0: omits the hardware's rule when members change. A test requires that the proof then fails.
    parameter RULE = 1,
    // 0: asserts only the claims, without the lemmas that make them inductive.
    parameter LEMMAS = 1
) (
    input wire         clk_i,
    input wire [N-1:0] poll_i,       // the member polls
    input wire [N-1:0] enter_i,      // the member enters, if it is outside
    input wire [N-1:0] forward_i,    // the cable to the channel takes its driver's level
    input wire [N-1:0] back_i,       // the cable from the channel takes its driver's level
    input wire [N-1:0] noise_i,      // drives the lines of the nodes that are not members
    input wire         set_mask_i,
    input wire [N-1:0] mask_i,
    input wire         set_limit_i,
    input wire [31:0]  limit_i,
    input wire         drop_i
);
    wire [N-1:0] line, member, arrived, late;
    wire [7:0]   expired, early;
    wire [1:0]   toggled;
    wire         level, overdue;
    reg  [N-1:0] wire_q   = {N{1'b0}};
    reg  [N-1:0] inside_q = {N{1'b0}};
    reg  [N-1:0] level_q  = {N{1'b0}};
    reg  [N-1:0] pin_q    = {N{1'b0}};
    reg  [N-1:0] seen_q   = {N{1'b0}};
    reg  [1:0]   released_q = 2'd0;

    synchroniser #(.N(N)) sync (
        .clk_i   (clk_i),
        .rst_i   (1'b0),
        .level_i (pin_q),
        .level_o (line)
    );

    channel_machine #(.N(N)) dut (
        .clk_i       (clk_i),
        .rst_i       (1'b0),
        .line_i      (line),
        .set_mask_i  (set_mask_i),
        .mask_i      (mask_i),
        .set_limit_i (set_limit_i),
        .limit_i     (limit_i),
        .drop_i      (drop_i),
        .toggled_o   (toggled),
        .level_o     (level),
        .mask_o      (member),
        .arrived_o   (arrived),
        .late_o      (late),
        .overdue_o   (overdue),
        .expired_o   (expired),
        .early_o     (early)
    );

    reg [N-1:0] stage1_q = {N{1'b0}};
    reg [N-1:0] stage2_q = {N{1'b0}};
    reg         old_level_q = 1'b0;
    reg         older_level_q = 1'b0;
    wire [1:0]  released = released_q + (level != old_level_q);
    always @(posedge clk_i) begin
        stage1_q    <= pin_q;
        stage2_q    <= stage1_q;
        old_level_q <= level;
        older_level_q <= old_level_q;
        released_q  <= released;
    end

    wire [N-1:0] concerned = member | mask_i;
    wire         at_rest   = ~|((line ^ {N{level}}) & concerned);
    wire         fenced    = ~|((inside_q | (wire_q ^ pin_q) | (pin_q ^ stage1_q) | (stage1_q ^ stage2_q)) & concerned);
    // The level that an old or new member last read is the channel's level: the last release has passed its cable.
    wire         told      = ~|((seen_q ^ {N{level}}) & concerned);
    always @* begin
        if (set_mask_i) begin
            assume (fenced && told);
            if (RULE)
                assume (at_rest);
        end
        // channel_rules proves that the hardware drops members only under this condition: some members
        // are missing, and exactly the arrived members remain.
        if (drop_i)
            assume (!set_mask_i && !set_limit_i && |mask_i && mask_i == (member & arrived) && |(member & ~arrived));
    end

    // Registers: members were dropped at the last edge (drops_q), and at the last but one (dropped_q).
    reg drops_q   = 1'b0;
    reg dropped_q = 1'b0;
    always @(posedge clk_i) begin
        drops_q   <= drop_i;
        dropped_q <= drops_q;
    end

    // Modelled independently of the machine: the members, and whether the arrivals of all of them have passed the synchronisers.
    reg [N-1:0] members_q  = {N{1'b0}};
    reg         all_came_q = 1'b0;
    always @(posedge clk_i) begin
        if (set_mask_i)
            members_q <= mask_i;
        else if (drop_i)
            members_q <= members_q & mask_i;
        all_came_q <= (|members_q) && ~|(~(stage2_q ^ {N{level}}) & members_q);
    end

    wire [N-1:0] count_entered, count_left, one_change, still, other, entries, exits, once, just, before;

    always @* begin
        members_are_who_was_set:    assert (member == members_q);
        releases_when_all_came:     assert (all_came_q == (level != old_level_q));
        only_members_are_late:      assert (~|(late & ~members_q));
        only_members_arrive:        assert (~|(arrived & ~members_q));
        enters_before_the_release:  assert (&(count_entered | ~members_q));
        leaves_after_the_release:   assert (&(count_left | ~members_q));
        overdue_waits_for_a_member: assert (!overdue || |(member & ~arrived));
        no_release_is_early:        assert (early == 8'd0);
        a_drop_releases_the_others: assert (!dropped_q || level != old_level_q);
        if (LEMMAS) begin
            stages_agree:               assert (line == stage2_q);
            releases_have_the_levels:   assert (released[0] == level);
            one_change_on_the_way:      assert (&(one_change | ~members_q));
            outside_all_is_still:       assert (&(still | ~members_q));
            inside_it_drives_the_other: assert (&(other | ~members_q));
            levels_count_entries:       assert (&(entries | ~members_q));
            levels_count_exits:         assert (&(exits | ~members_q));
            inside_means_one_more:      assert (&(once | ~members_q));
            others_are_not_inside:      assert (~|(inside_q & ~members_q));
            all_rest_at_the_release:    assert (level == old_level_q || &(just | ~members_q));
            and_an_edge_later:          assert (old_level_q == older_level_q || &(before | ~members_q));
            the_machine_knows_when:     assert (toggled[0] == (level != old_level_q) &&
                                                (!toggled[1] || old_level_q != older_level_q));
            a_drop_is_a_release_next:   assert (!drops_q || (|members_q && ~|(~(stage2_q ^ {N{level}}) & members_q)));
        end
    end

    genvar n;
    generate
        for (n = 0; n < N; n = n + 1) begin : node
            reg [1:0] entered_q = 2'd0;
            reg [1:0] left_q    = 2'd0;

            // A member polls and enters until the edge at which members change, and again after that edge.
            wire acts   = members_q[n] && !set_mask_i;
            wire seen   = back_i[n] ? level : seen_q[n];
            wire leaves = acts && poll_i[n] && inside_q[n] && seen == wire_q[n];
            wire enters = acts && enter_i[n] && (leaves || !inside_q[n]);
            wire known  = leaves ? wire_q[n] : level_q[n];
            wire free   = !members_q[n] && !(set_mask_i && mask_i[n]);
            wire drives = enters ? !known : free ? noise_i[n] : wire_q[n];
            wire joins  = set_mask_i && mask_i[n];

            always @(posedge clk_i) begin
                wire_q[n]   <= drives;
                inside_q[n] <= (enters || (inside_q[n] && !leaves)) && !(drop_i && !mask_i[n]);
                level_q[n]  <= joins ? wire_q[n] : known;
                seen_q[n]   <= seen;
                pin_q[n]    <= forward_i[n] ? drives : pin_q[n];
                entered_q   <= joins ? released : entered_q + enters;
                left_q      <= joins ? released : left_q + leaves;
            end

            wire [1:0] entered_ahead = entered_q - released;
            wire [1:0] left_behind   = released - left_q;
            wire [1:0] still_inside  = entered_q - left_q;

            wire [5:0] way = {wire_q[n], pin_q[n], stage1_q[n], stage2_q[n], level, seen_q[n]};
            wire [4:0] changes = way[5:1] ^ way[4:0];

            assign count_entered[n] = !entered_ahead[1];
            assign count_left[n]    = !left_behind[1];
            assign one_change[n]    = (changes & (changes - 5'd1)) == 5'd0;
            assign still[n]         = inside_q[n] || (changes == 5'd0 && level_q[n] == level);
            assign other[n]         = !inside_q[n] || level_q[n] != wire_q[n];
            assign entries[n]       = entered_q[0] == wire_q[n];
            assign exits[n]         = left_q[0] == level_q[n];
            assign just[n]          = changes[4:1] == 4'd0 && inside_q[n];
            assign before[n]        = changes[2:1] == 2'd0;
            assign once[n]          = still_inside == {1'b0, inside_q[n]};
        end
    endgenerate
endmodule

`default_nettype wire
