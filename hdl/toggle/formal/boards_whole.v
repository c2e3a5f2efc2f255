// Proof of a root with B boards of N nodes below it, all as RTL and without contracts, at a small size.
//
// All boards have one clock here; a cable between them settles when a free input is high, which also covers any phase of a clock.
// The claims are those of toggle_protocol.v: entered and released differ by 0 or 1, released and left differ by 0 or 1.
`default_nettype none

module boards_whole #(
    parameter B = 2,
    parameter N = 2,
    // 0: asserts only the claims, without the lemmas; for mutants.
    parameter LEMMAS = 1
) (
    input wire           clk_i,
    input wire [B*N-1:0] poll_i,
    input wire [B*N-1:0] enter_i,
    input wire [B*N-1:0] forward_i,
    input wire [B*N-1:0] back_i,
    input wire [B-1:0]   link_i     // the cable from the board to the root takes its driver's level
);
    reg  [B*N-1:0] wire_q = 0, inside_q = 0, pin_q = 0, seen_q = 0;
    reg  [B-1:0]   link_q = 0;
    wire [B-1:0]   below;
    wire [B-1:0]   root_o;
    wire           root = root_o[0];
    reg            old_root_q = 1'b0;
    reg  [1:0]     released_q = 2'd0;
    wire [1:0]     released = released_q + (root != old_root_q);

    always @(posedge clk_i) begin
        old_root_q <= root;
        released_q <= released;
        link_q     <= (link_i & below) | (~link_i & link_q);
    end

    toggle_barrier #(.N(B)) top (
        .clk_i  (clk_i),
        .rst_i  (1'b0),
        .node_i (link_q),
        .node_o (root_o)
    );

    // The levels in the root's synchronisers, modelled independently of the design.
    reg [B-1:0] up1_q = 0, up2_q = 0;
    always @(posedge clk_i) begin
        up1_q <= link_q;
        up2_q <= up1_q;
    end

    wire [B*N-1:0] count_entered, count_left, one_change, still, entries, once;

    always @* begin
        enters_before_the_release: assert (&count_entered);
        leaves_after_the_release:  assert (&count_left);
        if (LEMMAS) begin
            releases_have_the_levels: assert (released[0] == root);
            one_change_on_the_way:    assert (&one_change);
            outside_all_is_still:     assert (&still);
            levels_count_entries:     assert (&entries);
            inside_means_one_more:    assert (&once);
        end
    end

    genvar b, n;
    generate
        for (b = 0; b < B; b = b + 1) begin : board
            wire [N-1:0] out;
            reg  [N-1:0] stage1_q = 0, stage2_q = 0;
            assign below[b] = out[0];

            toggle_barrier #(.N(N)) dut (
                .clk_i  (clk_i),
                .rst_i  (1'b0),
                .node_i (pin_q[b*N +: N]),
                .node_o (out)
            );

            always @(posedge clk_i) begin
                stage1_q <= pin_q[b*N +: N];
                stage2_q <= stage1_q;
            end

            for (n = b * N; n < (b + 1) * N; n = n + 1) begin : node
                reg [1:0] entered_q = 2'd0;
                reg [1:0] left_q    = 2'd0;

                wire seen   = back_i[n] ? root : seen_q[n];
                wire leaves = poll_i[n] && inside_q[n] && seen == wire_q[n];
                wire enters = enter_i[n] && (leaves || !inside_q[n]);

                always @(posedge clk_i) begin
                    wire_q[n]   <= wire_q[n] ^ enters;
                    inside_q[n] <= enters || (inside_q[n] && !leaves);
                    seen_q[n]   <= seen;
                    pin_q[n]    <= forward_i[n] ? wire_q[n] ^ enters : pin_q[n];
                    entered_q   <= entered_q + enters;
                    left_q      <= left_q + leaves;
                end

                wire [1:0] entered_ahead = entered_q - released;
                wire [1:0] left_behind   = released - left_q;
                wire [1:0] still_inside  = entered_q - left_q;
                wire [9:0] way = {wire_q[n], pin_q[n], stage1_q[n-b*N], stage2_q[n-b*N], below[b],
                                  link_q[b], up1_q[b], up2_q[b], root, seen_q[n]};
                wire [8:0] changes = way[9:1] ^ way[8:0];

                assign count_entered[n] = !entered_ahead[1];
                assign count_left[n]    = !left_behind[1];
                assign one_change[n]    = (changes & (changes - 9'd1)) == 9'd0;
                assign still[n]         = inside_q[n] || changes == 9'd0;
                assign entries[n]       = entered_q[0] == wire_q[n];
                assign once[n]          = still_inside == {1'b0, inside_q[n]};
            end
        end
    endgenerate
endmodule

`default_nettype wire
