// Barrier version 2: C independent toggle barriers for N nodes, each for its own members, programmed over each node's serial lines.
//
// The eight data lines of a node's parallel port: D0..D4 arrivals, D5 serial clock, D6 serial data, D7 serial select.
// Four of its status lines are the releases of channels 0 to 3. The fifth is last_o: the release of channel 4
// or, while this node has a serial session, the reply. All nodes may share the release wires; last_o is separate for each node.
// In the Rust model: channels::ChannelMachine, which also documents the serial protocol.
`default_nettype none

module channel_barrier #(
    parameter N = 60,          // 1 to 64, the bits of a mask in a frame
    parameter C = 5,           // 1 to 5, the lines of a parallel port
    parameter LEASE_BITS = 24  // 4 to 31
) (
    input  wire           clk_i,      // 25.175 MHz on the ALTERA UP1 board
    input  wire           rst_i,      // synchronous; tie to 0 where power-on is enough
    input  wire [C*N-1:0] arrive_i,   // asynchronous, all nodes of channel 0 lowest
    input  wire [N-1:0]   select_i,   // asynchronous
    input  wire [N-1:0]   clock_i,    // asynchronous
    input  wire [N-1:0]   data_i,     // asynchronous
    output wire [C-1:0]   release_o,
    output wire [N-1:0]   last_o
);
    // An illegal parameter instantiates a missing module, so no tool elaborates the design.
    generate
        if (N < 1 || N > 64) begin : n_guard
            N_must_be_1_to_64 refused ();
        end
        if (C < 1 || C > 5) begin : c_guard
            C_must_be_1_to_5 refused ();
        end
        if (LEASE_BITS < 4 || LEASE_BITS > 31) begin : lease_bits_guard
            LEASE_BITS_must_be_4_to_31 refused ();
        end
    endgenerate

    wire [C*N-1:0] mask, arrived, late, not_idle;
    wire [C*16-1:0] counts;
    wire [C-1:0]   level, set_mask, set_limit, drop, overdue;
    wire [71:0]    request, reply;

    genvar c;
    generate
        for (c = 0; c < C; c = c + 1) begin : channel
            wire [N-1:0] line;

            synchroniser #(.N(N)) sync (
                .clk_i   (clk_i),
                .rst_i   (rst_i),
                .level_i (arrive_i[c*N +: N]),
                .level_o (line)
            );

            // All nodes are members of channel 0 after power-on, so a version 1 driver needs no programming.
            channel_machine #(.N(N), .POWER_ON({N{c == 0}})) machine (
                .clk_i       (clk_i),
                .rst_i       (rst_i),
                .line_i      (line),
                .set_mask_i  (set_mask[c]),
                // The value of the reply to a request for new members is their mask.
                .mask_i      (reply[N-1:0]),
                .set_limit_i (set_limit[c]),
                .limit_i     (request[31:0]),
                .drop_i      (drop[c]),
                .toggle_o    (),
                .expires_o   (),
                .early_now_o (),
                .level_o     (level[c]),
                .mask_o      (mask[c*N +: N]),
                .arrived_o   (arrived[c*N +: N]),
                .late_o      (late[c*N +: N]),
                .limit_o     (),
                .overdue_o   (overdue[c]),
                .expired_o   (counts[c*16 +: 8]),
                .early_o     (counts[c*16+8 +: 8])
            );

            assign not_idle[c*N +: N] = line ^ {N{level[c]}};
        end
    endgenerate

    wire [N-1:0] grant;
    wire         flush = ~|grant;
    wire         select, clock, data;
    reg          select_was_q = 1'b0;
    reg          clock_was_q  = 1'b0;

    // The lines of the granted node: all three pass equal filters, so their changes keep their order.
    channel_line select_line (
        .clk_i   (clk_i),
        .rst_i   (rst_i),
        .flush_i (flush),
        .line_i  (|(select_i & grant)),
        .level_o (select)
    );

    channel_line clock_line (
        .clk_i   (clk_i),
        .rst_i   (rst_i),
        .flush_i (flush),
        .line_i  (|(clock_i & grant)),
        .level_o (clock)
    );

    channel_line data_line (
        .clk_i   (clk_i),
        .rst_i   (rst_i),
        .flush_i (flush),
        .line_i  (|(data_i & grant)),
        .level_o (data)
    );

    always @(posedge clk_i) begin
        select_was_q <= select && !flush && !rst_i;
        clock_was_q  <= clock && !flush && !rst_i;
    end

    channel_arbiter #(.N(N), .LEASE_BITS(LEASE_BITS)) arbiter (
        .clk_i    (clk_i),
        .rst_i    (rst_i),
        .select_i (select_i),
        .held_i   (select),
        .moves_i  (clock != clock_was_q),
        .grant_o  (grant)
    );

    wire listening = select && !flush;
    wire execute, right, answer;

    channel_frame frame (
        .clk_i     (clk_i),
        .rst_i     (rst_i),
        .open_i    (listening),
        // A rising clock shifts a bit only if select was high before.
        // So a clock that is already high when the session opens shifts no bit.
        .tick_i    (select_was_q && clock && !clock_was_q),
        .data_i    (data),
        .execute_o (execute),
        .right_o   (right),
        .request_o (request),
        .reply_i   (reply),
        .bit_o     (answer)
    );

    channel_command #(.N(N), .C(C)) command (
        .execute_i   (execute),
        .right_i     (right),
        .request_i   (request),
        .node_i      (grant),
        .mask_i      (mask),
        .arrived_i   (arrived),
        .late_i      (late),
        .not_idle_i  (not_idle),
        .overdue_i   (overdue),
        .counts_i    (counts),
        .reply_o     (reply),
        .set_mask_o  (set_mask),
        .set_limit_o (set_limit),
        .drop_o      (drop)
    );

    wire last_release;
    generate
        if (C == 5) begin : shared
            assign last_release = level[4];
        end else begin : own
            assign last_release = 1'b0;
        end
    endgenerate

    wire [N-1:0] hears = grant & {N{listening}};
    assign release_o = level;
    assign last_o    = (hears & {N{answer}}) | (~hears & {N{last_release}});
endmodule

`default_nettype wire
