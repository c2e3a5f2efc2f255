// The barrier as a register block: G groups of N nodes on a bus, with events, time limits and time stamps.
//
// A node enters by a store to its ARRIVE, by a pulse on enter_i or by a change of its wire. It has left when its line and the group's
// level are equal again. Each group is a channel_machine, whose members are in MASK. Addresses and fields: registers.txt, as tables in README.md.
//
// Reads and writes have separate ports. Both answer in the same cycle; a write takes effect at the edge that ends the cycle, a read has no effect.
// With SYNC = 0 the wires must belong to this clock domain; the level then changes one edge after the last line has changed.
`default_nettype none

module barrier_regs #(
    parameter N = 4,         // 1 to 64 nodes
    parameter G = 1,         // 1 to 8 groups
    parameter SYNC = 2,      // synchroniser stages of node_i: 0, 2 or 3
    parameter STRIDE = 6,    // 6 to 12: a node's page has 2^STRIDE bytes
    parameter STAMPS = 1,    // 0 omits the time and its stamps
    parameter PULSE = 1,     // 0 omits the start pulse
    parameter [31:0] CLOCK_HZ = 32'd0  // 0 if unknown; from 100 MHz on, SYNC = 2 is refused
) (
    input  wire           clk_i,
    input  wire           rst_i,       // synchronous
    // The bus: byte addresses, of which the lowest two bits are ignored.
    input  wire [18:0]    raddr_i,
    output wire [31:0]    rdata_o,
    output wire           rerror_o,    // there is no such register
    input  wire           write_i,
    input  wire [18:0]    waddr_i,
    input  wire [31:0]    wdata_i,
    input  wire [3:0]     wstrb_i,
    output wire           werror_o,    // this write has no effect
`ifdef FORMAL
    // Internal state, for regs_contract.v.
    output wire [G*N-1:0]  arrive_f_o,
    output wire [G*N-1:0]  line_f_o,
    output wire [G*N-1:0]  mask_f_o,
    output wire            enable_f_o,
    output wire [24:0]     intr_f_o,
    output wire [24:0]     events_f_o,
    output wire [16*N-1:0] node_intr_f_o,
    output wire [16*N-1:0] node_enable_f_o,
    output wire [31:0]     scratch_f_o,
    output wire [24:0]     intr_enable_f_o,
    output wire [63:0]     time_f_o,
    output wire [G*32-1:0] released_f_o,
    output wire [G*32-1:0] limit_f_o,
    output wire [G*32-1:0] first_f_o,
    output wire [G*32-1:0] last_f_o,
    output wire [G*33-1:0] began_f_o,
    output wire [24:0]     pulse_f_o,
    output wire [15:0]     left_f_o,
`endif
    // The nodes: node n of group g is bit g * N + n.
    input  wire [G*N-1:0] node_i,      // the nodes' wires; tie to 0 for a node without a wire
    input  wire [G*N-1:0] enter_i,     // pulses of one cycle: the node enters, or withdraws its arrival
    output wire [G-1:0]   level_o,     // the level of each group, for nodes with a wire
    output wire [G*N-1:0] release_o,   // pulses of one cycle: a member is released
    output wire [N-1:0]   wake_o,      // an enabled event of the node is pending
    output wire           irq_o,       // an enabled event of the block is pending
    // Outputs for instruments.
    output wire           start_o,     // the start pulse; the register PULSE configures it
    output wire [31:0]    start_time_o // the register START
);
    // An illegal parameter instantiates a missing module, so no tool elaborates the design.
    generate
        if (N < 1 || N > 64) begin : n_guard
            N_must_be_1_to_64 refused ();
        end
        if (G < 1 || G > 8) begin : g_guard
            G_must_be_1_to_8 refused ();
        end
        if (SYNC != 0 && SYNC != 2 && SYNC != 3) begin : sync_guard
            SYNC_must_be_0_2_or_3 refused ();
        end
        if (SYNC == 2 && CLOCK_HZ >= 32'd100000000) begin : stages_guard
            SYNC_must_be_3_at_100_MHz refused ();
        end
        if (STRIDE < 6 || STRIDE > 12) begin : stride_guard
            STRIDE_must_be_6_to_12 refused ();
        end
        if (STAMPS < 0 || STAMPS > 1) begin : stamps_guard
            STAMPS_must_be_0_or_1 refused ();
        end
        if (PULSE < 0 || PULSE > 1) begin : pulse_guard
            PULSE_must_be_0_or_1 refused ();
        end
    endgenerate

    // generated from hdl/registers/registers.txt: constants
    localparam [31:0] IDENTITY           = 32'h52414254;
    localparam [31:0] VERSION            = 32'h00010100;
    localparam [31:0] GROUP_BASE         = 32'h00000100;
    localparam [31:0] NODE_BASE          = 32'h00001000;
    localparam [3:0]  GLOBAL_ID          = 4'h0;
    localparam [3:0]  GLOBAL_VERSION     = 4'h1;
    localparam [3:0]  GLOBAL_CAPS        = 4'h2;
    localparam [3:0]  GLOBAL_SIZES       = 4'h3;
    localparam [3:0]  GLOBAL_CLOCK_HZ    = 4'h4;
    localparam [3:0]  GLOBAL_SCRATCH     = 4'h5;
    localparam [3:0]  GLOBAL_CTRL        = 4'h6;
    localparam [3:0]  GLOBAL_INTR_STATE  = 4'h8;
    localparam [3:0]  GLOBAL_INTR_ENABLE = 4'h9;
    localparam [3:0]  GLOBAL_INTR_TEST   = 4'ha;
    localparam [3:0]  GLOBAL_TIME_LO     = 4'hc;
    localparam [3:0]  GLOBAL_TIME_HI     = 4'hd;
    localparam [3:0]  GLOBAL_PULSE       = 4'he;
    localparam [3:0]  GLOBAL_START       = 4'hf;
    localparam [4:0]  GROUP_MASK0        = 5'h0;
    localparam [4:0]  GROUP_MASK1        = 5'h1;
    localparam [4:0]  GROUP_ARRIVED0     = 5'h4;
    localparam [4:0]  GROUP_ARRIVED1     = 5'h5;
    localparam [4:0]  GROUP_LATE0        = 5'h8;
    localparam [4:0]  GROUP_LATE1        = 5'h9;
    localparam [4:0]  GROUP_STATUS       = 5'hc;
    localparam [4:0]  GROUP_RELEASES     = 5'hd;
    localparam [4:0]  GROUP_LIMIT        = 5'he;
    localparam [4:0]  GROUP_COUNTS       = 5'hf;
    localparam [4:0]  GROUP_FIRST        = 5'h10;
    localparam [4:0]  GROUP_LAST         = 5'h12;
    localparam [4:0]  GROUP_ACTION       = 5'h16;
    localparam [3:0]  NODE_ARRIVE        = 4'h0;
    localparam [3:0]  NODE_LEVEL         = 4'h1;
    localparam [3:0]  NODE_DONE          = 4'h2;
    localparam [3:0]  NODE_INTR_STATE    = 4'h4;
    localparam [3:0]  NODE_INTR_ENABLE   = 4'h5;
    localparam [3:0]  NODE_INTR_TEST     = 4'h6;
    localparam [3:0]  NODE_TOGGLE        = 4'hb;
    // end of the generated text

    localparam [31:0] NODES     = N;
    localparam [31:0] GROUPS    = G;
    localparam [31:0] LOG_PAGE  = STRIDE;
    localparam [31:0] STAGES    = SYNC;
    localparam [31:0] HAS_TIME  = STAMPS;
    localparam [31:0] HAS_PULSE = PULSE;
    // Page size and first page of the nodes in units of 64 bytes; first group in units of 128 bytes.
    localparam [31:0] PAGE      = 32'd1 << (STRIDE - 6);
    localparam [31:0] PAGES     = NODE_BASE >> 6;
    localparam [31:0] SETS      = GROUP_BASE >> 7;
    localparam [7:0]  ALL       = 8'd255 >> (8 - G);
    localparam [15:0] NODE_INTR = {ALL, ALL};
    localparam [24:0] INTR      = {1'b1, ALL, ALL, ALL};

    // ------------------------------------------------------------------------------------------------ decoding

    // A write without an enabled byte has no effect and no error; a write of some bytes of a word is an error.
    wire whole = &wstrb_i;
    wire none  = ~|wstrb_i;

    wire        global_write = write_i && whole && waddr_i[18:6] == 13'd0;
    wire [3:0]  global_word  = waddr_i[5:2];
    wire [G-1:0] group_here;
    wire [N-1:0] node_here;
    wire [4:0]  group_word   = waddr_i[6:2];
    wire [3:0]  node_word    = waddr_i[5:2];

    genvar g, n;
    generate
        for (g = 0; g < G; g = g + 1) begin : group_decoder
            localparam [31:0] PLACE = SETS + g;
            assign group_here[g] = waddr_i[18:7] == PLACE[11:0];
        end
        for (n = 0; n < N; n = n + 1) begin : node_decoder
            localparam [31:0] PLACE = PAGES + n * PAGE;
            assign node_here[n] = waddr_i[18:6] == PLACE[12:0];
        end
    endgenerate

    wire [G-1:0] group_write = group_here & {G{write_i && whole}};
    wire [N-1:0] node_write  = node_here & {N{write_i && whole}};

    // ------------------------------------------------------------------------------------------------ registers of the whole block

    reg         enable_q      = 1'b0;
    reg  [31:0] scratch_q     = 32'd0;
    reg  [24:0] intr_q        = 25'd0;
    reg  [24:0] intr_enable_q = 25'd0;
    wire [63:0] time_now;

    wire [G-1:0] releases, expires, early, refusals;
    wire         refused = |refusals;
    reg  [24:0]  events;
    always @* begin
        events = 25'd0;
        events[G-1:0]   = releases;
        events[8 +: G]  = expires;
        events[16 +: G] = early;
        events[24]      = refused;
    end

    wire clears_intr = global_write && global_word == GLOBAL_INTR_STATE;
    wire tests_intr  = global_write && global_word == GLOBAL_INTR_TEST;
    wire [24:0] cleared = {25{clears_intr}} & wdata_i[24:0];
    wire [24:0] tested  = {25{tests_intr}} & wdata_i[24:0] & INTR;

    always @(posedge clk_i) begin
        if (rst_i) begin
            enable_q      <= 1'b0;
            scratch_q     <= 32'd0;
            intr_q        <= 25'd0;
            intr_enable_q <= 25'd0;
        end else begin
            if (global_write && global_word == GLOBAL_CTRL)
                enable_q <= wdata_i[0];
            if (global_write && global_word == GLOBAL_SCRATCH)
                scratch_q <= wdata_i;
            if (global_write && global_word == GLOBAL_INTR_ENABLE)
                intr_enable_q <= wdata_i[24:0] & INTR;
            // An event in the cycle in which it is cleared stays set.
            intr_q <= (intr_q & ~cleared) | tested | events;
        end
    end

    assign irq_o = |(intr_q & intr_enable_q);

    generate
        if (STAMPS == 1) begin : clock
            reg [63:0] time_q = 64'd0;
            always @(posedge clk_i)
                time_q <= rst_i ? 64'd0 : time_q + 64'd1;
            assign time_now = time_q;
        end else begin : no_clock
            assign time_now = 64'd0;
        end
    endgenerate

    // ------------------------------------------------------------------------------------------------ the start pulse

    // The fields GROUPS, INVERT and WIDTH of the register PULSE.
    wire [24:0] pulse;
    wire [31:0] started;
    generate
        if (PULSE == 1) begin : starter
            reg  [24:0] pulse_q = 25'd0;
            reg  [31:0] start_time_q = 32'd0;
            wire        begins;
            always @(posedge clk_i) begin
                if (rst_i)
                    pulse_q <= 25'd0;
                else if (global_write && global_word == GLOBAL_PULSE)
                    pulse_q <= {wdata_i[31:24] & ALL, wdata_i[16:0]};
                if (rst_i)
                    start_time_q <= 32'd0;
                else if (begins)
                    start_time_q <= time_now[31:0];
            end

            start_pulse line (
                .clk_i     (clk_i),
                .rst_i     (rst_i),
                .release_i (|(releases & pulse_q[17 +: G])),
                .width_i   (pulse_q[15:0]),
                .invert_i  (pulse_q[16]),
`ifdef FORMAL
                .left_f_o  (left_f_o),
`endif
                .begins_o  (begins),
                .start_o   (start_o)
            );
            assign pulse   = pulse_q;
            assign started = start_time_q;
        end else begin : no_starter
`ifdef FORMAL
            assign left_f_o = 16'd0;
`endif
            assign pulse   = 25'd0;
            assign started = 32'd0;
            assign start_o = 1'b0;
        end
    endgenerate
    assign start_time_o = started;

    // ------------------------------------------------------------------------------------------------ lines of the nodes

    // Node n's level in group g is bit g * N + n.
    reg  [G*N-1:0] arrive_q = {G*N{1'b0}};
    wire [G*N-1:0] stored, toggled, wires;
    wire [G*N-1:0] mask, arrived, late;
    wire [G*N-1:0] line = arrive_q ^ wires;

    generate
        for (g = 0; g < G; g = g + 1) begin : store
            for (n = 0; n < N; n = n + 1) begin : node
                wire stores  = node_write[n] && node_word == NODE_ARRIVE;
                wire toggles = node_write[n] && node_word == NODE_TOGGLE;
                assign stored[g*N+n]  = stores ? wdata_i[g] : arrive_q[g*N+n];
                assign toggled[g*N+n] = (toggles && wdata_i[g]) ^ enter_i[g*N+n];
            end
        end
    endgenerate

    always @(posedge clk_i)
        arrive_q <= rst_i ? {G*N{1'b0}} : stored ^ toggled;

    generate
        if (SYNC == 0) begin : same_clock
            assign wires = node_i;
        end else begin : crossing
            synchroniser #(.N(G*N), .STAGES(SYNC)) sync (
                .clk_i   (clk_i),
                .rst_i   (rst_i),
                .level_i (node_i),
                .level_o (wires)
            );
        end
    endgenerate

    // ------------------------------------------------------------------------------------------------ groups

    wire [G-1:0]    level, overdue;
    wire [G*16-1:0] counts;
    wire [G*32-1:0] limit, released, first, last;

    generate
        for (g = 0; g < G; g = g + 1) begin : group
            wire         here    = group_write[g];
            wire [N-1:0] members = mask[g*N +: N];
            wire [N-1:0] not_idle = line[g*N +: N] ^ {N{level[g]}};

            // The members after a write of MASK0 or MASK1.
            wire         sets_low  = here && group_word == GROUP_MASK0;
            wire         sets_high = here && group_word == GROUP_MASK1;
            reg  [63:0]  wanted;
            always @* begin
                wanted = 64'd0;
                wanted[N-1:0] = members;
                if (sets_low)
                    wanted[31:0] = wdata_i;
                if (sets_high)
                    wanted[63:32] = wdata_i;
            end
            wire         unused    = |wanted;
            wire         at_rest   = ~|(not_idle & (members | wanted[N-1:0]));
            wire         sets_mask = (sets_low || sets_high) && at_rest;

            wire         acts      = here && group_word == GROUP_ACTION;
            wire         drops     = acts && wdata_i == 32'hA5000001 && overdue[g];
            wire         sets_limit = here && group_word == GROUP_LIMIT;

            assign refusals[g] = ((sets_low || sets_high) && !at_rest) || (acts && !drops);

            channel_machine #(.N(N), .EARLY_EDGES(1)) machine (
                .clk_i       (clk_i),
                .rst_i       (rst_i),
                .line_i      (enable_q ? line[g*N +: N] : {N{level[g]}}),
                .set_mask_i  (sets_mask),
                .mask_i      (drops ? arrived[g*N +: N] : wanted[N-1:0]),
                .set_limit_i (sets_limit),
                .limit_i     (wdata_i),
                .drop_i      (drops),
                .toggle_o    (releases[g]),
                .expires_o   (expires[g]),
                .early_now_o (early[g]),
                .level_o     (level[g]),
                .mask_o      (mask[g*N +: N]),
                .arrived_o   (arrived[g*N +: N]),
                .late_o      (late[g*N +: N]),
                .limit_o     (limit[g*32 +: 32]),
                .overdue_o   (overdue[g]),
                .expired_o   (counts[g*16 +: 8]),
                .early_o     (counts[g*16+8 +: 8])
            );

            reg [31:0]  released_q = 32'd0;
            reg [N-1:0] release_q  = {N{1'b0}};
            always @(posedge clk_i) begin
                release_q <= members & {N{releases[g] && !rst_i}};
                if (rst_i)
                    released_q <= 32'd0;
                else if (releases[g])
                    released_q <= released_q + 32'd1;
            end
            assign released[g*32 +: 32] = released_q;
            assign release_o[g*N +: N]  = release_q;

            if (STAMPS == 1) begin : stamps
                reg [31:0] began_q = 32'd0;
                reg [31:0] first_q = 32'd0;
                reg [31:0] last_q  = 32'd0;
                reg        busy_q  = 1'b0;
                wire       busy    = |arrived[g*N +: N];
                // The last arrival may also be the first one.
                wire [31:0] began  = busy_q ? began_q : time_now[31:0];
                always @(posedge clk_i) begin
                    busy_q  <= busy && !releases[g] && !rst_i;
                    began_q <= began;
                    if (rst_i) begin
                        first_q <= 32'd0;
                        last_q  <= 32'd0;
                    end else if (releases[g]) begin
                        first_q <= began;
                        last_q  <= time_now[31:0];
                    end
                end
`ifdef FORMAL
                assign began_f_o[g*33 +: 33] = {busy_q, began_q};
`endif
                assign first[g*32 +: 32] = first_q;
                assign last[g*32 +: 32]  = last_q;
            end else begin : no_stamps
`ifdef FORMAL
                assign began_f_o[g*33 +: 33] = 33'd0;
`endif
                assign first[g*32 +: 32] = 32'd0;
                assign last[g*32 +: 32]  = 32'd0;
            end
        end
    endgenerate

    assign level_o = level;

    // ------------------------------------------------------------------------------------------------ events of the nodes

    // The two event bytes of node n start at bit 16 * n.
    reg  [16*N-1:0] node_intr_q   = {16*N{1'b0}};
    reg  [16*N-1:0] node_enable_q = {16*N{1'b0}};
    reg  [16*N-1:0] node_events;
    wire [16*N-1:0] node_cleared, node_tested;

    integer i, k;
    always @* begin
        node_events = {16*N{1'b0}};
        for (i = 0; i < N; i = i + 1)
            for (k = 0; k < G; k = k + 1) begin
                node_events[16*i+k]   = releases[k] && mask[k*N+i];
                node_events[16*i+8+k] = expires[k] && mask[k*N+i];
            end
    end

    generate
        for (n = 0; n < N; n = n + 1) begin : node
            wire clears = node_write[n] && node_word == NODE_INTR_STATE;
            wire tests  = node_write[n] && node_word == NODE_INTR_TEST;
            assign node_cleared[16*n +: 16] = {16{clears}} & wdata_i[15:0];
            assign node_tested[16*n +: 16]  = {16{tests}} & wdata_i[15:0] & NODE_INTR;

            always @(posedge clk_i) begin
                if (rst_i)
                    node_enable_q[16*n +: 16] <= 16'd0;
                else if (node_write[n] && node_word == NODE_INTR_ENABLE)
                    node_enable_q[16*n +: 16] <= wdata_i[15:0] & NODE_INTR;
            end

            assign wake_o[n] = |(node_intr_q[16*n +: 16] & node_enable_q[16*n +: 16]);
        end
    endgenerate

    always @(posedge clk_i)
        node_intr_q <= rst_i ? {16*N{1'b0}} : (node_intr_q & ~node_cleared) | node_tested | node_events;

    // ------------------------------------------------------------------------------------------------ reads

    reg [31:0] rdata;
    reg        found;
    reg [63:0] members_of, arrived_of, late_of;
    always @* begin
        rdata = 32'd0;
        found = 1'b0;
        members_of = 64'd0;
        arrived_of = 64'd0;
        late_of    = 64'd0;

        if (raddr_i[18:6] == 13'd0) begin
            found = 1'b1;
            case (raddr_i[5:2])
                GLOBAL_ID:          rdata = IDENTITY;
                GLOBAL_VERSION:     rdata = VERSION;
                GLOBAL_CAPS:        rdata = {25'd0, HAS_PULSE[0], 2'd0, HAS_TIME[0], 1'b0, STAGES[1:0]};
                GLOBAL_SIZES:       rdata = {11'd0, LOG_PAGE[4:0], 4'd0, GROUPS[3:0], 1'b0, NODES[6:0]};
                GLOBAL_CLOCK_HZ:    rdata = CLOCK_HZ;
                GLOBAL_SCRATCH:     rdata = scratch_q;
                GLOBAL_CTRL:        rdata = {31'd0, enable_q};
                GLOBAL_INTR_STATE:  rdata = {7'd0, intr_q};
                GLOBAL_INTR_ENABLE: rdata = {7'd0, intr_enable_q};
                GLOBAL_INTR_TEST:   rdata = 32'd0;
                GLOBAL_TIME_LO:     rdata = time_now[31:0];
                GLOBAL_TIME_HI:     rdata = time_now[63:32];
                GLOBAL_PULSE:       rdata = {pulse[24:17], 7'd0, pulse[16:0]};
                GLOBAL_START:       rdata = started;
                default:            found = 1'b0;
            endcase
        end

        for (k = 0; k < G; k = k + 1)
            if ({20'd0, raddr_i[18:7]} == SETS + k) begin
                found = 1'b1;
                members_of[N-1:0] = mask[k*N +: N];
                arrived_of[N-1:0] = arrived[k*N +: N];
                late_of[N-1:0]    = late[k*N +: N];
                case (raddr_i[6:2])
                    GROUP_MASK0:    rdata = members_of[31:0];
                    GROUP_MASK1:    rdata = members_of[63:32];
                    GROUP_ARRIVED0: rdata = arrived_of[31:0];
                    GROUP_ARRIVED1: rdata = arrived_of[63:32];
                    GROUP_LATE0:    rdata = late_of[31:0];
                    GROUP_LATE1:    rdata = late_of[63:32];
                    GROUP_STATUS:   rdata = {29'd0, overdue[k], |arrived[k*N +: N], level[k]};
                    GROUP_RELEASES: rdata = released[k*32 +: 32];
                    GROUP_LIMIT:    rdata = limit[k*32 +: 32];
                    GROUP_COUNTS:   rdata = {8'd0, counts[k*16+8 +: 8], 8'd0, counts[k*16 +: 8]};
                    GROUP_FIRST:    rdata = first[k*32 +: 32];
                    GROUP_LAST:     rdata = last[k*32 +: 32];
                    GROUP_ACTION:   rdata = 32'd0;
                    default:        found = 1'b0;
                endcase
            end

        for (i = 0; i < N; i = i + 1)
            if ({19'd0, raddr_i[18:6]} == PAGES + i * PAGE) begin
                found = 1'b1;
                case (raddr_i[5:2])
                    NODE_ARRIVE:      for (k = 0; k < G; k = k + 1) rdata[k] = arrive_q[k*N+i];
                    NODE_LEVEL:       rdata[G-1:0] = level;
                    NODE_DONE:        for (k = 0; k < G; k = k + 1) rdata[k] = line[k*N+i] == level[k];
                    NODE_INTR_STATE:  rdata[15:0] = node_intr_q[16*i +: 16];
                    NODE_INTR_ENABLE: rdata[15:0] = node_enable_q[16*i +: 16];
                    NODE_INTR_TEST:   rdata = 32'd0;
                    NODE_TOGGLE:      rdata = 32'd0;
                    default:          found = 1'b0;
                endcase
            end
    end

    assign rdata_o  = rdata;
    assign rerror_o = !found;

    // ------------------------------------------------------------------------------------------------ errors of writes

    reg writable;
    always @* begin
        writable = 1'b0;
        if (waddr_i[18:6] == 13'd0)
            writable = global_word == GLOBAL_SCRATCH || global_word == GLOBAL_CTRL || global_word == GLOBAL_INTR_STATE ||
                       global_word == GLOBAL_INTR_ENABLE || global_word == GLOBAL_INTR_TEST || global_word == GLOBAL_PULSE;
        else if (|group_here)
            writable = group_word == GROUP_MASK0 || group_word == GROUP_MASK1 || group_word == GROUP_LIMIT || group_word == GROUP_ACTION;
        else if (|node_here)
            writable = node_word == NODE_ARRIVE || node_word == NODE_INTR_STATE || node_word == NODE_INTR_ENABLE ||
                       node_word == NODE_INTR_TEST || node_word == NODE_TOGGLE;
    end

    assign werror_o = !none && (!whole || !writable || refused);

`ifdef FORMAL
    assign arrive_f_o      = arrive_q;
    assign line_f_o        = line;
    assign mask_f_o        = mask;
    assign enable_f_o      = enable_q;
    assign intr_f_o        = intr_q;
    assign events_f_o      = events;
    assign node_intr_f_o   = node_intr_q;
    assign node_enable_f_o = node_enable_q;
    assign scratch_f_o     = scratch_q;
    assign intr_enable_f_o = intr_enable_q;
    assign time_f_o        = time_now;
    assign released_f_o    = released;
    assign limit_f_o       = limit;
    assign first_f_o       = first;
    assign last_f_o        = last;
    assign pulse_f_o       = pulse;
`endif

    wire unused = |raddr_i[1:0] || |waddr_i[1:0];
endmodule

`default_nettype wire
