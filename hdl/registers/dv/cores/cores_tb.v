// Testbench of several PicoRV32 cores of one chip that pass barriers through the register block; each has cores.c in its own memory.
//
// The cores share a Wishbone through a round-robin arbiter; the block runs on their clock (SYNC is 0). A core polls LEVEL or sleeps with the
// instruction waitirq, with wake_o as its interrupt. Each core counts its entries before it enters; when it leaves, the testbench compares
// its count with those of the other cores, which detects an early release.
// It prints one line: whether the cores sleep, the numbers of cores, barriers, early releases and bus errors, and the minimum and maximum
// number of cycles from the arrival of the last core at the block to the wake line, to the core's first fetch after its sleep, and to its
// first store after the barrier. The first two pairs of numbers are 0 if the cores do not sleep.
`default_nettype none
`timescale 1ns / 1ps

module cores_tb;
    parameter N      = 4;
    parameter SLEEPS = 0;
    parameter ROUNDS = 10;

    reg clk = 1'b0;
    reg rst = 1'b1;
    always #5 clk = !clk;

    wire [N-1:0]    asks, writes;
    wire [N*32-1:0] addresses, data;
    integer         turn = 0;
    wire            ack, err, level, irq, start;
    wire [31:0]     answer, start_time;
    wire [N-1:0]    wake, released;
    wire [31:0]     address = addresses[turn*32 +: 32];

    barrier_wishbone #(.N(N), .SYNC(0)) dut (
        .clk_i     (clk),
        .rst_i     (rst),
        .cyc_i     (asks[turn]),
        .stb_i     (asks[turn]),
        .we_i      (writes[turn]),
        .adr_i     (address[18:0]),
        .dat_i     (data[turn*32 +: 32]),
        .sel_i     (4'hf),
        .dat_o     (answer),
        .ack_o     (ack),
        .err_o     (err),
        .node_i    ({N{1'b0}}),
        .enter_i   ({N{1'b0}}),
        .level_o   (level),
        .release_o (released),
        .wake_o    (wake),
        .irq_o     (irq),
        .start_o   (start),
        .start_time_o (start_time)
    );

    integer now = 0, arrived_at = 0, early = 0, errors = 0, left = 0, finished = 0;
    integer to_wake_least = 1000000, to_wake_most = 0, to_run_least = 1000000, to_run_most = 0, to_leave_least = 1000000, to_leave_most = 0;
    integer entered [0:N-1];
    always @(posedge clk) begin
        now <= now + 1;
        if (ack && writes[turn] && address[18:12] != 7'd0 && address[5:0] == 6'h00)
            arrived_at <= now;
        if (err)
            errors = errors + 1;
        if (!asks[turn] || ack || err)
            turn <= turn == N - 1 ? 0 : turn + 1;
    end

    genvar m;
    generate
        for (m = 0; m < N; m = m + 1) begin : core
            wire        valid, instr;
            wire [31:0] where, what;
            wire [3:0]  strobes;
            reg         ready = 1'b0, awake = 1'b1, woken = 1'b0, fetched = 1'b1;
            reg  [31:0] value;
            reg  [31:0] memory [0:511];
            integer     k;

            picorv32 #(
                .ENABLE_COUNTERS(0),
                .ENABLE_IRQ(1),
                .ENABLE_IRQ_QREGS(0),
                .ENABLE_IRQ_TIMER(0),
                .LATCHED_IRQ(32'd0)
            ) cpu (
                .clk       (clk),
                .resetn    (!rst),
                .mem_valid (valid),
                .mem_instr (instr),
                .mem_ready (ready),
                .mem_addr  (where),
                .mem_wdata (what),
                .mem_wstrb (strobes),
                .mem_rdata (value),
                .pcpi_wr   (1'b0),
                .pcpi_rd   (32'd0),
                .pcpi_wait (1'b0),
                .pcpi_ready (1'b0),
                .irq       ({31'd0, wake[m]})
            );

            assign asks[m]                = valid && !ready && where[31:28] == 4'h1;
            assign writes[m]              = |strobes;
            assign addresses[m*32 +: 32]  = where;
            assign data[m*32 +: 32]       = what;

            initial begin
                entered[m] = 0;
                $readmemh("cores.hex", memory);
            end

            always @(posedge clk) begin
                ready <= 1'b0;
                woken <= wake[m];
                if (wake[m] && !woken) begin
                    if (now - arrived_at < to_wake_least) to_wake_least = now - arrived_at;
                    if (now - arrived_at > to_wake_most) to_wake_most = now - arrived_at;
                    fetched <= 1'b0;
                end
                if (!fetched && valid && instr) begin
                    fetched <= 1'b1;
                    if (now - arrived_at < to_run_least) to_run_least = now - arrived_at;
                    if (now - arrived_at > to_run_most) to_run_most = now - arrived_at;
                end
                if (valid && !ready) case (where[31:28])
                    4'h0: begin
                        ready <= 1'b1;
                        value <= memory[where[10:2]];
                        for (k = 0; k < 4; k = k + 1)
                            if (strobes[k])
                                memory[where[10:2]][8*k +: 8] <= what[8*k +: 8];
                    end
                    4'h1: if (turn == m) begin
                        ready <= ack || err;
                        value <= answer;
                    end
                    default: begin
                        ready <= 1'b1;
                        case (where[4:2])
                            3'd0: value <= m;
                            3'd1: value <= N;
                            3'd2: value <= SLEEPS;
                            3'd3: value <= ROUNDS;
                            3'd4: entered[m] = what;
                            3'd5: begin
                                if (now - arrived_at < to_leave_least) to_leave_least = now - arrived_at;
                                if (now - arrived_at > to_leave_most) to_leave_most = now - arrived_at;
                                for (k = 0; k < N; k = k + 1)
                                    if (entered[k] < entered[m])
                                        early = early + 1;
                                left = left + 1;
                            end
                            default: finished = finished + 1;
                        endcase
                    end
                endcase
            end
        end
    endgenerate

    initial begin
        #42 rst = 1'b0;
        wait (finished == N);
        $display("sleeps %0d: %0d cores, %0d barriers, %0d early, %0d errors, %0d to %0d cycles to wake, %0d to %0d to run, %0d to %0d to leave",
                 SLEEPS, N, left / N, early, errors, SLEEPS ? to_wake_least : 0, to_wake_most, SLEEPS ? to_run_least : 0, to_run_most,
                 to_leave_least, to_leave_most);
        $finish;
    end

    initial begin
        #(ROUNDS * 100000);
        $display("the cores hang after %0d of %0d", left, N * ROUNDS);
        $finish;
    end
endmodule

`default_nettype wire
