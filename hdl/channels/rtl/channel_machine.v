// One channel of version 2: a toggle barrier for its members, with a time limit that latches the missing members,
// and with two counters: how often the limit expired, and how many releases were early.
//
// The input must be synchronised. The level toggles when the line of every member differs from it; other nodes' lines are ignored.
// A channel without members never toggles. In the Rust model: channels::Channel.
`default_nettype none

module channel_machine #(
    parameter N = 60,
    parameter [N-1:0] POWER_ON = {N{1'b0}},  // the members after power-on
    parameter EARLY_EDGES = 2  // 1 or 2: edges after a release in which an arrival cannot be an answer to it
) (
    input  wire         clk_i,
    input  wire         rst_i,
    input  wire [N-1:0] line_i,       // synchronised arrival lines
    input  wire         set_mask_i,   // at this edge the members change; allowed only while all lines are at the level
    input  wire [N-1:0] mask_i,
    input  wire         set_limit_i,  // at this edge the time limit changes
    input  wire [31:0]  limit_i,      // in clock edges; 0 for no limit
    input  wire         drop_i,       // at this edge only the nodes in mask_i stay members, in the middle of a barrier
`ifdef FORMAL
    output wire [1:0]   toggled_o,    // for the proof: the level toggled at the last edge but one, and at the last
`endif
    output wire         toggle_o,     // at this edge the level toggles
    output wire         expires_o,    // at this edge an expired limit is counted
    output wire         early_now_o,  // at this edge an early release is counted
    output wire         level_o,
    output wire [N-1:0] mask_o,
    output wire [N-1:0] arrived_o,    // members that have arrived in the barrier in progress
    output wire [N-1:0] late_o,       // the missing members when the limit first expired
    output wire [31:0]  limit_o,
    output wire         overdue_o,    // the barrier in progress has reached its limit
    output wire [7:0]   expired_o,    // number of expired limits, up to 255, since the members were set
    output wire [7:0]   early_o       // number of lines that left the level again before their node can have seen the release
);
    // An illegal parameter instantiates a missing module, so no tool elaborates the design.
    generate
        if (N < 1) begin : n_guard
            N_must_be_1_or_more refused ();
        end
        if (EARLY_EDGES < 1 || EARLY_EDGES > 2) begin : early_edges_guard
            EARLY_EDGES_must_be_1_or_2 refused ();
        end
    endgenerate

    reg         level_q = 1'b0;
    reg [N-1:0] mask_q  = POWER_ON;
    reg [N-1:0] late_q  = {N{1'b0}};
    reg [31:0]  limit_q = 32'd0;
    reg [31:0]  count_q = 32'd0;
    reg [7:0]   expired_q  = 8'd0;
    reg [7:0]   early_q    = 8'd0;
    reg         overdue_q  = 1'b0;
    reg         toggled1_q = 1'b0;  // the level has toggled at the last edge,
    reg         toggled2_q = 1'b0;  // and at the last but one

    wire [N-1:0] arrived = (line_i ^ {N{level_q}}) & mask_q;
    wire         toggle  = (|mask_q) && arrived == mask_q;
    wire         waiting = (|arrived) && !toggle;
    wire         at_limit = count_q == limit_q;
    wire         overdue = waiting && at_limit && (|limit_q);
    // An arrival in answer to a release returns at the earliest three edges after the release leaves the board
    // (two edges without synchronisers); an earlier one did not wait for the release.
    wire         early   = (|arrived) && (toggled1_q || (EARLY_EDGES == 2 && toggled2_q));

    always @(posedge clk_i) begin
        if (rst_i)
            level_q <= 1'b0;
        else if (toggle)
            level_q <= ~level_q;
    end

    always @(posedge clk_i) begin
        if (rst_i)
            mask_q <= POWER_ON;
        else if (set_mask_i || drop_i)
            mask_q <= mask_i;
    end

    // New members start without the time limit that was set for the old ones.
    always @(posedge clk_i) begin
        if (rst_i || set_mask_i)
            limit_q <= 32'd0;
        else if (set_limit_i)
            limit_q <= limit_i;
    end

    always @(posedge clk_i) begin
        if (rst_i || set_mask_i || set_limit_i || drop_i || !waiting)
            count_q <= 32'd0;
        else if (!at_limit)
            count_q <= count_q + 32'd1;
    end

    always @(posedge clk_i) begin
        if (rst_i || set_mask_i || set_limit_i || drop_i)
            late_q <= {N{1'b0}};
        else if (overdue && !(|late_q))
            late_q <= mask_q & ~arrived;
    end

    always @(posedge clk_i) begin
        if (rst_i || set_mask_i)
            expired_q <= 8'd0;
        else if (overdue && !overdue_q && !(&expired_q))
            expired_q <= expired_q + 8'd1;
    end

    always @(posedge clk_i) begin
        if (rst_i || set_mask_i)
            early_q <= 8'd0;
        else if (early && !(&early_q))
            early_q <= early_q + 8'd1;
    end

    always @(posedge clk_i) begin
        overdue_q  <= overdue && !rst_i;
        toggled1_q <= toggle && !rst_i;
        // Counts each release at most once as early.
        toggled2_q <= toggled1_q && !(|arrived) && !rst_i;
    end

`ifdef FORMAL
    assign toggled_o = {toggled2_q, toggled1_q};
`endif
    assign toggle_o    = toggle;
    assign expires_o   = overdue && !overdue_q;
    assign early_now_o = early;

    assign level_o   = level_q;
    assign mask_o    = mask_q;
    assign arrived_o = arrived;
    assign late_o    = late_q;
    assign limit_o   = limit_q;
    assign overdue_o = overdue;
    assign expired_o = expired_q;
    assign early_o   = early_q;
endmodule

`default_nettype wire
