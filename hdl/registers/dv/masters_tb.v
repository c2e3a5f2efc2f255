// Testbench of several bus masters that pass barriers through the register block. WAY selects how they enter and wait:
//
//   0  a store to ARRIVE, then loads of DONE                       (any bus, nothing else connected)
//   1  a store to ARRIVE, then sleep until wake_o, then one store that clears the event
//   2  a pulse on enter_i, then sleep until the pulse on release_o (a core's own instruction)
//
// The masters share a Wishbone through a round-robin arbiter. SYNC is 0: masters and block have one clock.
// Each master counts its entries before it enters. When it leaves, it compares its count with those of the others, which detects an early release.
// Each release starts a pulse of WIDTH cycles on start_o.
// It prints one line: WAY, the numbers of masters, barriers, early releases and bus errors; the minimum and maximum number of cycles from
// the arrival of the last master at the block until a master detects the release; the number of start pulses, the minimum and maximum
// number of cycles from that arrival until a pulse begins, and the minimum and maximum width of a pulse in cycles.
`default_nettype none
`timescale 1ns / 1ps

module masters_tb;
    parameter N      = 4;
    parameter WAY    = 0;
    parameter ROUNDS = 500;
    parameter WIDTH  = 2;

    reg clk = 1'b0;
    reg rst = 1'b1;
    always #5 clk = !clk;

    // The current bus request of each master.
    reg  [N-1:0]    asks = {N{1'b0}};
    reg  [N-1:0]    stores = {N{1'b0}};
    reg  [18:0]     address [0:N-1];
    reg  [31:0]     data [0:N-1];
    integer         turn = 0;
    wire            ack, err;
    wire [31:0]     answer;
    wire [N-1:0]    wake, released;
    reg  [N-1:0]    enter = {N{1'b0}};
    wire            level, irq, start;
    wire [31:0]     start_time;

    reg             set_up = 1'b0;
    reg             manager_asks = 1'b1;
    reg  [18:0]     manager_address = 19'h100;
    reg  [31:0]     manager_data = 32'd0;

    wire            cyc = set_up ? asks[turn] : manager_asks;
    wire            we  = set_up ? stores[turn] : 1'b1;
    wire [18:0]     adr = set_up ? address[turn] : manager_address;
    wire [31:0]     dat = set_up ? data[turn] : manager_data;

    barrier_wishbone #(.N(N), .SYNC(0)) dut (
        .clk_i     (clk),
        .rst_i     (rst),
        .cyc_i     (cyc && !rst),
        .stb_i     (cyc && !rst),
        .we_i      (we),
        .adr_i     (adr),
        .dat_i     (dat),
        .sel_i     (4'hf),
        .dat_o     (answer),
        .ack_o     (ack),
        .err_o     (err),
        .node_i    ({N{1'b0}}),
        .enter_i   (enter),
        .level_o   (level),
        .release_o (released),
        .wake_o    (wake),
        .irq_o     (irq),
        .start_o   (start),
        .start_time_o (start_time)
    );

    // The set-up sequence writes: members, start pulse, enable, then each node's event enable.
    localparam [15:0] PULSE_WIDTH = WIDTH;
    integer step = 0;
    always @(posedge clk) if (!rst && !set_up && ack) begin
        step <= step + 1;
        case (step)
            0: begin manager_address <= 19'h038; manager_data <= {8'd1, 8'd0, PULSE_WIDTH}; end
            1: begin manager_address <= 19'h018; manager_data <= 32'd1; end
            default: begin
                manager_address <= 19'h1014 + 19'h40 * (step - 2);
                manager_data    <= 32'd1;
                if (step == N + 2)
                    set_up <= 1'b1;
            end
        endcase
    end

    // The present cycle, and the cycle in which the last arrival of a barrier reached the block.
    integer now = 0, arrived_at = 0, barriers = 0, early = 0, errors = 0, least = 1000000, most = 0, left = 0, known;
    integer entered [0:N-1];
    integer seed = 1;
    always @(posedge clk) begin
        now <= now + 1;
        if (set_up && ack && stores[turn] && address[turn][5:0] == 6'h00)
            arrived_at <= now;
        if (|enter)
            arrived_at <= now;
        if (err)
            errors = errors + 1;
    end

    // The start pulses: their number, their widths in cycles, and the cycles from the last arrival to the begin of a pulse.
    integer pulses = 0, width = 0, narrowest = 1000000, widest = 0, soonest = 1000000, latest = 0, began;
    reg     active = 1'b0;
    always @(posedge clk) begin
        active <= start;
        if (start && !active) begin
            pulses = pulses + 1;
            began = now - arrived_at;
            if (began < soonest) soonest = began;
            if (began > latest) latest = began;
        end
        if (start)
            width = width + 1;
        else if (active) begin
            if (width < narrowest) narrowest = width;
            if (width > widest) widest = width;
            width = 0;
        end
    end

    // The arbiter selects the next master if the current one has no request or was answered.
    always @(posedge clk)
        if (set_up && (!asks[turn] || ack || err))
            turn <= turn == N - 1 ? 0 : turn + 1;

    genvar m;
    generate
        for (m = 0; m < N; m = m + 1) begin : master
            localparam [18:0] PAGE = 19'h1000 + 19'h40 * m;
            integer state = 0, pause = 0, k;
            reg     mine = 1'b0;
            wire    answered = ack && turn == m;

            task leave;
                begin
                    known = now - arrived_at;
                    if (known < least) least = known;
                    if (known > most) most = known;
                    for (k = 0; k < N; k = k + 1)
                        if (entered[k] < entered[m])
                            early = early + 1;
                    left = left + 1;
                    pause <= $random(seed) & 15;
                    state <= 0;
                end
            endtask

            initial entered[m] = 0;
            always @(posedge clk) if (set_up) begin
                enter[m] <= 1'b0;
                case (state)
                    0: if (pause != 0) pause <= pause - 1; else if (entered[m] < ROUNDS) begin
                        entered[m] = entered[m] + 1;
                        mine <= !mine;
                        if (WAY == 2) begin
                            enter[m] <= 1'b1;
                            state <= 4;
                        end else begin
                            asks[m]    <= 1'b1;
                            stores[m]  <= 1'b1;
                            address[m] <= PAGE;
                            data[m]    <= {31'd0, !mine};
                            state <= 1;
                        end
                    end
                    1: if (answered) begin
                        stores[m]  <= 1'b0;
                        asks[m]    <= WAY == 0;
                        address[m] <= PAGE + 19'h08;
                        state <= WAY == 0 ? 2 : 3;
                    end
                    2: if (answered && answer[0]) begin
                        asks[m] <= 1'b0;
                        leave;
                    end
                    3: if (wake[m]) begin
                        leave;
                        asks[m]    <= 1'b1;
                        stores[m]  <= 1'b1;
                        address[m] <= PAGE + 19'h10;
                        data[m]    <= 32'd1;
                        state <= 5;
                    end
                    4: if (released[m]) leave;
                    default: if (answered) begin
                        asks[m] <= 1'b0;
                        state <= 0;
                    end
                endcase
            end
        end
    endgenerate

    initial begin
        manager_data = {32{1'b1}} >> (32 - N);
        #42 rst = 1'b0;
        wait (left == N * ROUNDS);
        repeat (WIDTH + 2) @(posedge clk);
        $display("way %0d: %0d masters, %0d barriers, %0d early, %0d errors, %0d to %0d cycles, %0d pulses, %0d to %0d cycles, %0d to %0d wide",
                 WAY, N, ROUNDS, early, errors, least, most, pulses, soonest, latest, narrowest, widest);
        $finish;
    end

    initial begin
        #(ROUNDS * N * 2000);
        $display("way %0d: hangs after %0d of %0d", WAY, left, N * ROUNDS);
        $finish;
    end
endmodule

`default_nettype wire
