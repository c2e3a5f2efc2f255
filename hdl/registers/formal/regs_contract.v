// Contract of the register block, for any traffic on its bus, any wires, any pulses and any resets.
//
// Addresses and bits are literal numbers here, so the proof does not depend on the description from which the design's addresses are generated.
// State and inputs "before" are those of the cycle before the last edge; the assertions compare them with the present state.
//
// * Each group's level is that of a toggle_machine whose inputs are the members' lines. Nodes that are not members have the inverse of the
//   level as input, so they never delay a release. In a group without members, or if the block is not enabled, all inputs have the level.
// * An event in the cycle in which it is cleared stays set, bit by bit, for the block and for each node.
// * An arrival is never lost: a store, a toggle and a pulse in one cycle all count.
// * A release of a group in GROUPS makes start_o active for exactly WIDTH cycles if start_o is inactive; START is then the time of that release.
// * Members change only at rest; a refused write has no effect and returns an error.
`default_nettype none

module regs_contract #(
    parameter N = 3,
    parameter G = 2,
    parameter SYNC = 0,
    parameter STRIDE = 6
) (
    input wire           clk_i,
    input wire           rst_i,
    input wire [18:0]    raddr_i,
    input wire           write_i,
    input wire [18:0]    waddr_i,
    input wire [31:0]    wdata_i,
    input wire [3:0]     wstrb_i,
    input wire [G*N-1:0] node_i,
    input wire [G*N-1:0] enter_i
);
    wire [31:0]     rdata;
    wire            rerror, werror, enable, irq;
    wire [G-1:0]    level;
    wire [G*N-1:0]  released, arrive, line, mask;
    wire [N-1:0]    wake;
    wire [24:0]     intr, events;
    wire [16*N-1:0] node_intr, node_enable;
    wire [31:0]     scratch;
    wire [24:0]     intr_enable;
    wire [63:0]     cycles;
    wire [G*32-1:0] count, limit, first, last;
    wire [G*33-1:0] began;
    wire [24:0]     pulse;
    wire [15:0]     left;
    wire            start;
    wire [31:0]     start_time;

    barrier_regs #(.N(N), .G(G), .SYNC(SYNC), .STRIDE(STRIDE)) dut (
        .clk_i           (clk_i),
        .rst_i           (rst_i),
        .raddr_i         (raddr_i),
        .rdata_o         (rdata),
        .rerror_o        (rerror),
        .write_i         (write_i),
        .waddr_i         (waddr_i),
        .wdata_i         (wdata_i),
        .wstrb_i         (wstrb_i),
        .werror_o        (werror),
        .arrive_f_o      (arrive),
        .line_f_o        (line),
        .mask_f_o        (mask),
        .enable_f_o      (enable),
        .intr_f_o        (intr),
        .events_f_o      (events),
        .node_intr_f_o   (node_intr),
        .node_enable_f_o (node_enable),
        .scratch_f_o     (scratch),
        .intr_enable_f_o (intr_enable),
        .time_f_o        (cycles),
        .released_f_o    (count),
        .limit_f_o       (limit),
        .first_f_o       (first),
        .last_f_o        (last),
        .began_f_o       (began),
        .pulse_f_o       (pulse),
        .left_f_o        (left),
        .node_i          (node_i),
        .enter_i         (enter_i),
        .level_o         (level),
        .release_o       (released),
        .wake_o          (wake),
        .irq_o           (irq),
        .start_o         (start),
        .start_time_o    (start_time)
    );

    // State and inputs of the previous cycle.
    reg            rst_q    = 1'b1;
    reg            write_q  = 1'b0;
    reg [18:0]     waddr_q  = 19'd0;
    reg [31:0]     wdata_q  = 32'd0;
    reg            werror_q = 1'b0;
    reg            enable_q = 1'b0;
    reg [G-1:0]    level_q  = {G{1'b0}};
    reg [G*N-1:0]  arrive_q = {G*N{1'b0}};
    reg [G*N-1:0]  line_q   = {G*N{1'b0}};
    reg [G*N-1:0]  mask_q   = {G*N{1'b0}};
    reg [G*N-1:0]  enter_q  = {G*N{1'b0}};
    reg [24:0]     intr_q   = 25'd0;
    reg [24:0]     events_q = 25'd0;
    reg [16*N-1:0] node_intr_q = {16*N{1'b0}};
    reg [16*N-1:0] node_enable_q = {16*N{1'b0}};
    reg [31:0]     scratch_q = 32'd0;
    reg [24:0]     intr_enable_q = 25'd0;
    reg [63:0]     cycles_q = 64'd0;
    reg [G*32-1:0] count_q = {G*32{1'b0}};
    reg [G*32-1:0] limit_q = {G*32{1'b0}};
    reg [G*32-1:0] first_q = {G*32{1'b0}};
    reg [G*32-1:0] last_q = {G*32{1'b0}};
    reg [24:0]     pulse_q = 25'd0;
    reg [15:0]     left_q = 16'd0;
    reg [31:0]     start_time_q = 32'd0;

    wire takes = write_i && &wstrb_i;

    always @(posedge clk_i) begin
        rst_q       <= rst_i;
        write_q     <= takes;
        waddr_q     <= {waddr_i[18:2], 2'b00};
        wdata_q     <= wdata_i;
        werror_q    <= werror;
        enable_q    <= enable;
        level_q     <= level;
        arrive_q    <= arrive;
        line_q      <= line;
        mask_q      <= mask;
        enter_q     <= enter_i;
        intr_q      <= intr;
        events_q    <= events;
        node_intr_q <= node_intr;
        node_enable_q <= node_enable;
        scratch_q   <= scratch;
        intr_enable_q <= intr_enable;
        cycles_q    <= cycles;
        count_q     <= count;
        limit_q     <= limit;
        first_q     <= first;
        last_q      <= last;
        pulse_q     <= pulse;
        left_q      <= left;
        start_time_q <= start_time;
    end

    // ------------------------------------------------------------------------------------------------ equality with the toggle machine

    wire [G-1:0] as_toggle_machine, releases_once, changes_at_rest, kept_without_a_write, pulses_members, busy_is_refused;
    wire [G-1:0] counts_releases, keeps_limit, stamps_right, follows_first;
    localparam [7:0] ALL = 8'd255 >> (8 - G);
    genvar g, n;
    generate
        for (g = 0; g < G; g = g + 1) begin : group
            wire [N-1:0] members = mask[g*N +: N];
            wire         machine;
            wire [N-1:0] counted = !enable || members == {N{1'b0}} ? {N{machine}}
                                                                   : (line[g*N +: N] & members) | ({N{!machine}} & ~members);
            toggle_machine #(.N(N)) reference (
                .clk_i   (clk_i),
                .rst_i   (rst_i),
                .level_i (counted),
                .level_o (machine)
            );
            assign as_toggle_machine[g] = level[g] == machine;

            // The release event, the release pulses and the level change at the same edge.
            wire toggled = !rst_q && level[g] != level_q[g];
            assign releases_once[g]  = (events_q[g] && !rst_q) == toggled && (!toggled || intr[g]);
            assign pulses_members[g] = released[g*N +: N] == (toggled ? mask_q[g*N +: N] : {N{1'b0}});

            // Members change by a write of MASK0 while all old and new members are at the level, or by a DROP_LATE, which only removes.
            wire [N-1:0] old      = mask_q[g*N +: N];
            wire [N-1:0] away     = line_q[g*N +: N] ^ {N{level_q[g]}};
            wire         set      = write_q && waddr_q == 19'h100 + 19'h80 * g;
            wire         acted    = write_q && waddr_q == 19'h158 + 19'h80 * g && wdata_q == 32'hA5000001;
            wire         rest     = ((old | wdata_q[N-1:0]) & away) == {N{1'b0}};
            assign changes_at_rest[g] = rst_q || members == old || (set && rest && members == wdata_q[N-1:0] && !werror_q) ||
                                        (acted && members == (old & away) && !werror_q);
            assign busy_is_refused[g] = rst_q || !set || rest || (werror_q && intr[24] && members == old);
            assign kept_without_a_write[g] = rst_q || write_q || members == old;

            // Release counter and time limit of the group.
            wire [31:0]  before = count_q[g*32 +: 32];
            assign counts_releases[g] = count[g*32 +: 32] == (rst_q ? 32'd0 : before + {31'd0, toggled});
            wire         limits = write_q && waddr_q == 19'h138 + 19'h80 * g;
            // N is at most 32 here, so a write of the second word of the mask sets the same members again.
            wire         high   = write_q && waddr_q == 19'h104 + 19'h80 * g && (old & away) == {N{1'b0}};
            assign keeps_limit[g] = limit[g*32 +: 32] == (rst_q || (set && rest) || high ? 32'd0 : limits ? wdata_q : limit_q[g*32 +: 32]);

            // The cycle of the first arrival, which may be the cycle of the last arrival too.
            wire         busy   = enable && ((line[g*N +: N] ^ {N{level[g]}}) & members) != {N{1'b0}};
            reg          busy_q = 1'b0;
            reg  [31:0]  began_q = 32'd0;
            wire [31:0]  starts  = busy_q ? began_q : cycles[31:0];
            reg  [31:0]  starts_q = 32'd0;
            always @(posedge clk_i) begin
                busy_q   <= busy && !rst_i && !events[g];
                began_q  <= starts;
                starts_q <= starts;
            end
            assign follows_first[g] = began[g*33 +: 33] == {busy_q, began_q};
            assign stamps_right[g]  = rst_q ? first[g*32 +: 32] == 32'd0 && last[g*32 +: 32] == 32'd0
                                    : toggled ? first[g*32 +: 32] == starts_q && last[g*32 +: 32] == cycles_q[31:0]
                                              : first[g*32 +: 32] == first_q[g*32 +: 32] && last[g*32 +: 32] == last_q[g*32 +: 32];
        end
    endgenerate

    // ------------------------------------------------------------------------------------------------ each node

    wire [N-1:0] node_enables,  node_tests_set;
    wire [N-1:0] node_events_kept, node_events_fall_by_a_clear, wakes, hears_release;
    wire [G*N-1:0] arrives;
    wire [G*N-1:0] wire_is_seen;
    generate
        for (n = 0; n < N; n = n + 1) begin : node
            localparam [18:0] PAGE = 19'h1000 + (n << STRIDE);
            wire         stores  = write_q && waddr_q == PAGE;
            wire         toggles = write_q && waddr_q == PAGE + 19'h2C;
            wire         clears  = write_q && waddr_q == PAGE + 19'h10;
            wire         tests   = write_q && waddr_q == PAGE + 19'h18;
            wire [15:0]  now     = node_intr[16*n +: 16];
            wire [15:0]  was     = node_intr_q[16*n +: 16];
            wire [15:0]  cleared = clears ? wdata_q[15:0] : 16'd0;
            wire [15:0]  event_q;
            wire [G-1:0] told;
            for (g = 0; g < 8; g = g + 1) begin : group
                if (g < G) begin : has
                    wire entered = (stores ? wdata_q[g] : arrive_q[g*N+n] ^ (toggles && wdata_q[g])) ^ enter_q[g*N+n];
                    assign arrives[g*N+n] = arrive[g*N+n] == (!rst_q && entered);
                    assign event_q[g]     = events_q[g] && mask_q[g*N+n];
                    assign event_q[8+g]   = events_q[8+g] && mask_q[g*N+n];
                    assign told[g]        = rst_q || level[g] == level_q[g] || !mask_q[g*N+n] || now[g];
                end else begin : has_not
                    assign event_q[g]   = 1'b0;
                    assign event_q[8+g] = 1'b0;
                end
            end
            assign hears_release[n]    = &told;
            assign node_events_kept[n] = rst_q || (event_q & ~now) == 16'd0;
            assign node_events_fall_by_a_clear[n] = rst_q || (was & ~now & ~cleared) == 16'd0;
            wire         enables = write_q && waddr_q == PAGE + 19'h14;
            wire [15:0]  tested  = tests ? wdata_q[15:0] & {ALL, ALL} : 16'd0;
            assign node_enables[n]   = node_enable[16*n +: 16] == (rst_q ? 16'd0 : enables ? wdata_q[15:0] & {ALL, ALL} : node_enable_q[16*n +: 16]);
            assign node_tests_set[n] = now == (rst_q ? 16'd0 : (was & ~cleared) | tested | event_q);
            assign wakes[n]            = wake[n] == |(now & node_enable[16*n +: 16]);
        end
    endgenerate

    // ------------------------------------------------------------------------------------------------ wires

    // The wires delayed by one and by two edges; with SYNC = 3 also by three.
    reg [G*N-1:0] wire1_q = {G*N{1'b0}};
    reg [G*N-1:0] wire2_q = {G*N{1'b0}};
    reg [G*N-1:0] wire3_q = {G*N{1'b0}};
    always @(posedge clk_i) begin
        wire1_q <= rst_i ? {G*N{1'b0}} : node_i;
        wire2_q <= rst_i ? {G*N{1'b0}} : wire1_q;
        wire3_q <= rst_i ? {G*N{1'b0}} : wire2_q;
    end
    wire [G*N-1:0] wires = SYNC == 0 ? node_i : SYNC == 2 ? wire2_q : wire3_q;

    // ------------------------------------------------------------------------------------------------ reads

    // Expected value of a read, and whether the register exists. `known` is 0 for counts and late members: the machine's proofs cover them.
    reg        there, known;
    reg [31:0] expected;
    integer    i, k;
    wire [18:0] asked = {raddr_i[18:2], 2'b00};
    always @* begin
        there    = 1'b0;
        known    = 1'b1;
        expected = 32'd0;
        case (asked)
            19'h00: begin there = 1'b1; expected = 32'h52414254; end
            19'h04: begin there = 1'b1; expected = 32'h00010100; end
            19'h08: begin there = 1'b1; expected = 72 + SYNC; end
            19'h0C: begin there = 1'b1; expected = N + 256 * G + 65536 * STRIDE; end
            19'h10: there = 1'b1;
            19'h14: begin there = 1'b1; expected = scratch; end
            19'h18: begin there = 1'b1; expected = {31'd0, enable}; end
            19'h20: begin there = 1'b1; expected = {7'd0, intr}; end
            19'h24: begin there = 1'b1; expected = {7'd0, intr_enable}; end
            19'h28: there = 1'b1;
            19'h30: begin there = 1'b1; expected = cycles[31:0]; end
            19'h34: begin there = 1'b1; expected = cycles[63:32]; end
            19'h38: begin there = 1'b1; expected = {pulse[24:17], 7'd0, pulse[16:0]}; end
            19'h3C: begin there = 1'b1; expected = start_time; end
            default: there = 1'b0;
        endcase
        for (k = 0; k < G; k = k + 1)
            case (asked - (19'h100 + 19'h80 * k))
                19'h00: begin there = 1'b1; expected = {{32-N{1'b0}}, mask[k*N +: N]}; end
                19'h10: begin there = 1'b1; expected = {{32-N{1'b0}}, {N{enable}} & mask[k*N +: N] & (line[k*N +: N] ^ {N{level[k]}})}; end
                19'h04, 19'h14, 19'h24, 19'h58: there = 1'b1;
                19'h20, 19'h3C: begin there = 1'b1; known = 1'b0; end
                19'h30: begin
                    there = 1'b1;
                    expected[0] = level[k];
                    expected[1] = enable && (mask[k*N +: N] & (line[k*N +: N] ^ {N{level[k]}})) != {N{1'b0}};
                    expected[2] = rdata[2];
                end
                19'h34: begin there = 1'b1; expected = count[k*32 +: 32]; end
                19'h38: begin there = 1'b1; expected = limit[k*32 +: 32]; end
                19'h40: begin there = 1'b1; expected = first[k*32 +: 32]; end
                19'h48: begin there = 1'b1; expected = last[k*32 +: 32]; end
                default: ;
            endcase
        for (i = 0; i < N; i = i + 1)
            case (asked - (19'h1000 + (i << STRIDE)))
                19'h00: begin there = 1'b1; for (k = 0; k < G; k = k + 1) expected[k] = arrive[k*N+i]; end
                19'h04: begin there = 1'b1; expected[G-1:0] = level; end
                19'h08: begin there = 1'b1; for (k = 0; k < G; k = k + 1) expected[k] = line[k*N+i] == level[k]; end
                19'h10: begin there = 1'b1; expected = {16'd0, node_intr[16*i +: 16]}; end
                19'h14: begin there = 1'b1; expected = {16'd0, node_enable[16*i +: 16]}; end
                19'h18, 19'h2C: there = 1'b1;
                default: ;
            endcase
    end
    wire reads_right = rerror == !there && (!known || rdata == expected);

    wire        clears_intr = write_q && waddr_q == 19'h20;
    wire [24:0] cleared     = clears_intr ? wdata_q[24:0] : 25'd0;
    wire [24:0] tested      = write_q && waddr_q == 19'h28 ? wdata_q[24:0] & {1'b1, ALL, ALL, ALL} : 25'd0;
    wire        enables_intr = write_q && waddr_q == 19'h24;
    wire        scratches   = write_q && waddr_q == 19'h14;
    wire        controls    = write_q && waddr_q == 19'h18;

    // The start pulse: a release starts a pulse of WIDTH cycles unless a pulse is in progress.
    // `left` counts the remaining cycles of the pulse down.
    wire        sets_pulse  = write_q && waddr_q == 19'h38;
    wire        starts      = (events_q[7:0] & pulse_q[24:17]) != 8'd0 && left_q == 16'd0 && pulse_q[15:0] != 16'd0;
    wire [15:0] remains     = starts ? pulse_q[15:0] : left_q == 16'd0 ? 16'd0 : left_q - 16'd1;

    always @* begin
        every_group_is_a_toggle_machine:   assert (&as_toggle_machine);
        a_release_is_one_edge_and_an_event: assert (&releases_once);
        each_member_gets_one_pulse:        assert (&pulses_members);
        members_change_only_at_rest:       assert (&changes_at_rest);
        a_change_in_a_barrier_is_refused:  assert (&busy_is_refused);
        members_change_only_by_a_write:    assert (&kept_without_a_write);
        every_arrival_counts:              assert (&arrives);
        a_line_is_its_register_and_wire:   assert (line == (arrive ^ wires));
        an_event_survives_its_clear:       assert (rst_q || (events_q & ~intr) == 25'd0);
        events_fall_by_a_clear_alone:      assert (rst_q || (intr_q & ~intr & ~cleared) == 25'd0);
        a_clear_without_an_event_clears:   assert (rst_q || (intr & cleared & ~events_q) == 25'd0);
        each_member_hears_the_release:     assert (&hears_release);
        a_nodes_event_survives_its_clear:  assert (&node_events_kept);
        a_nodes_events_fall_by_a_clear:    assert (&node_events_fall_by_a_clear);
        a_pending_event_wakes:             assert (&wakes);
        registers_read_as_described:       assert (reads_right);
        a_write_in_error_changes_nothing:  assert (rst_q || !werror_q || (arrive == (arrive_q ^ enter_q) && mask == mask_q &&
                                                   enable == enable_q));
        all_of_it_is_one_equation:         assert (intr == (rst_q ? 25'd0 : (intr_q & ~cleared) | tested | events_q));
        and_so_it_is_at_each_node:         assert (&node_tests_set);
        enables_are_what_was_written:      assert (intr_enable == (rst_q ? 25'd0 : enables_intr ? wdata_q[24:0] & {1'b1, ALL, ALL, ALL} : intr_enable_q));
        also_at_each_node:                 assert (&node_enables);
        an_enabled_event_interrupts:       assert (irq == |(intr & intr_enable));
        the_scratch_register_keeps:        assert (scratch == (rst_q ? 32'd0 : scratches ? wdata_q : scratch_q));
        the_enable_is_what_was_written:    assert (enable == (rst_q ? 1'b0 : controls ? wdata_q[0] : enable_q));
        time_counts_cycles:                assert (cycles == (rst_q ? 64'd0 : cycles_q + 64'd1));
        releases_are_counted:              assert (&counts_releases);
        limits_are_what_was_written:       assert (&keeps_limit);
        the_first_arrival_is_followed:     assert (&follows_first);
        stamps_are_of_the_last_release:    assert (&stamps_right);
        the_pulse_is_what_was_written:     assert (pulse == (rst_q ? 25'd0 : sets_pulse ? {wdata_q[31:24] & ALL, wdata_q[16:0]} : pulse_q));
        a_pulse_has_its_width:             assert (left == (rst_q ? 16'd0 : remains));
        the_line_is_active_in_a_pulse:     assert (start == (!rst_q && ((left != 16'd0) != pulse_q[16])));
        start_is_the_time_of_its_release:  assert (start_time == (rst_q ? 32'd0 : starts ? cycles_q[31:0] : start_time_q));
        a_reset_disables:                  assert (!rst_q || (!enable && level == {G{1'b0}} && intr == 25'd0));
    end
endmodule

`default_nettype wire
