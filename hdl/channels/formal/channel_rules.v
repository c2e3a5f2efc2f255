// Proof of the rules for requests that change a channel's members or time limit, for any request by any node in any state of the channels.
//
// channel_command has no flip-flops, so a proof of one clock edge holds at all times. Only its strobes change a channel's members
// and time limit, so assertions about the strobes hold for every such change.
// The copy `other` gets the same request and the same state of channel WATCHED, but any other state of the other channels.
`default_nettype none

module channel_rules #(
    parameter N = 60,
    parameter C = 5,
    parameter WATCHED = 1,
    // 0: all assertions except these_are_the_majority
    parameter MAJORITY = 0
) (
    input wire           clk_i,
    input wire           execute_i,
    input wire           right_i,
    input wire [71:0]    request_i,
    input wire [N-1:0]   node_i,
    input wire [C*N-1:0] mask_i,
    input wire [C*N-1:0] arrived_i,
    input wire [C*N-1:0] late_i,
    input wire [C*N-1:0] not_idle_i,
    input wire [C-1:0]   overdue_i,
    input wire [C*16-1:0] counts_i,
    input wire [C*N-1:0] other_mask_i,
    input wire [C*N-1:0] other_not_idle_i
);
    localparam [C*N-1:0] KEPT = {{C*N-N{1'b0}}, {N{1'b1}}} << (WATCHED * N);

    wire [71:0]  reply, other_reply;
    wire [C-1:0] set_mask, set_limit, drop, other_mask, other_limit, other_drop;

    channel_command #(.N(N), .C(C)) dut (
        .execute_i   (execute_i),
        .right_i     (right_i),
        .request_i   (request_i),
        .node_i      (node_i),
        .mask_i      (mask_i),
        .arrived_i   (arrived_i),
        .late_i      (late_i),
        .not_idle_i  (not_idle_i),
        .overdue_i   (overdue_i),
        .counts_i    (counts_i),
        .reply_o     (reply),
        .set_mask_o  (set_mask),
        .set_limit_o (set_limit),
        .drop_o      (drop)
    );

    channel_command #(.N(N), .C(C)) other (
        .execute_i   (execute_i),
        .right_i     (right_i),
        .request_i   (request_i),
        .node_i      (node_i),
        .mask_i      ((mask_i & KEPT) | (other_mask_i & ~KEPT)),
        .arrived_i   (arrived_i),
        .late_i      (late_i),
        .not_idle_i  ((not_idle_i & KEPT) | (other_not_idle_i & ~KEPT)),
        .overdue_i   (overdue_i),
        .counts_i    (counts_i),
        .reply_o     (other_reply),
        .set_mask_o  (other_mask),
        .set_limit_o (other_limit),
        .drop_o      (other_drop)
    );

    wire [N-1:0] asked    = request_i[N-1:0];
    wire [C-1:0] strobes  = set_mask | set_limit | drop;
    wire         done     = reply[71:68] == 4'd1;

    wire [C-1:0] rests, taken_or_returned, by_member, limited_by_member;
    wire [C-1:0] dropped_are_late, others_wait, others_are_more, kept_right;
    genvar c;
    generate
        for (c = 0; c < C; c = c + 1) begin : channel
            wire [N-1:0] mask = mask_i[c*N +: N];
            assign rests[c]             = ~|(not_idle_i[c*N +: N] & (mask | asked));
            assign taken_or_returned[c] = (|mask) != (|asked);
            assign by_member[c]         = |((mask | asked) & node_i);
            assign limited_by_member[c] = |(mask & node_i);
            // The rule that fewer than half of the members may be dropped, with counts of nodes, unlike in the design.
            wire [N-1:0] arrived = arrived_i[c*N +: N];
            reg  [7:0]   members, lost;
            integer      n;
            always @* begin
                members = 8'd0;
                lost    = 8'd0;
                for (n = 0; n < N; n = n + 1) begin
                    members = members + {7'd0, mask[n]};
                    lost    = lost + {7'd0, mask[n] && asked[n]};
                end
            end
            assign dropped_are_late[c]  = overdue_i[c] && ~|(asked & ~(mask & ~arrived));
            assign kept_right[c]        = !drop[c] || reply[N-1:0] == (mask & ~asked);
            assign others_wait[c]       = ~|(mask & ~asked & ~arrived);
            assign others_are_more[c]   = MAJORITY == 0 || {lost, 1'b0} < {1'b0, members};
        end
    endgenerate

    always @* begin
        // Only members arrive: an assumption here, which channel_machine guarantees.
        assume (~|(arrived_i & ~mask_i));
        a_wrong_frame_changes_nothing:   assert ((execute_i && right_i) || ~|strobes);
        one_request_changes_one_thing:   assert (~|(strobes & (strobes - 1'b1)) && ~|(set_mask & set_limit) &&
                                                 ~|(drop & (set_mask | set_limit)));
        a_change_is_answered_as_done:    assert (~|strobes || done);
        members_change_only_at_rest:     assert (~|(set_mask & ~rests));
        a_channel_is_taken_or_returned:  assert (~|(set_mask & ~taken_or_returned));
        members_change_by_a_member:      assert (~|(set_mask & ~by_member));
        limits_change_by_a_member:       assert (~|(set_limit & ~limited_by_member));
        members_are_who_was_asked_for:   assert (~|set_mask || reply[63:0] == request_i[63:0]);
        or_all_but_those:                assert (~|drop || &kept_right);
        members_are_dropped_by_a_member: assert (~|(drop & ~limited_by_member));
        only_the_late_are_dropped:       assert (~|(drop & ~dropped_are_late));
        they_are_while_all_others_wait:  assert (~|(drop & ~others_wait));
        these_are_the_majority:          assert (~|(drop & ~others_are_more));
        strangers_become_no_members:     assert (~|set_mask || N == 64 || ~|(request_i[63:0] >> N));
        other_channels_do_not_matter:    assert (set_mask[WATCHED] == other_mask[WATCHED] &&
                                                 set_limit[WATCHED] == other_limit[WATCHED] &&
                                                 drop[WATCHED] == other_drop[WATCHED]);
    end
endmodule

`default_nettype wire
