// Testbench of channel_barrier: reads one line "rst arrive select clock data" (hexadecimal) per clock edge from +stimulus=FILE,
// and writes to +trace=FILE one line with the outputs and every flip-flop after that edge.
// A test of crate hdl writes the stimulus and compares each field of the trace with the model.
`timescale 1ns / 1ps
`default_nettype none

module channel_trace_tb;
    parameter N = 60;
    parameter C = 5;
    parameter LEASE_BITS = 24;

    reg            clk = 1'b0;
    reg            rst = 1'b0;
    reg  [C*N-1:0] arrive = {C*N{1'b0}};
    reg  [N-1:0]   select = {N{1'b0}};
    reg  [N-1:0]   clock  = {N{1'b0}};
    reg  [N-1:0]   data   = {N{1'b0}};
    wire [C-1:0]   released;
    wire [N-1:0]   last;

    channel_barrier #(.N(N), .C(C), .LEASE_BITS(LEASE_BITS)) dut (
        .clk_i     (clk),
        .rst_i     (rst),
        .arrive_i  (arrive),
        .select_i  (select),
        .clock_i   (clock),
        .data_i    (data),
        .release_o (released),
        .last_o    (last)
    );

    wire [C*N-1:0]  stage1, stage2, mask, late;
    wire [C*32-1:0] limit, count;
    wire [C*8-1:0]  expired, early;
    wire [C-1:0]    overdue, toggled1, toggled2;
    genvar c;
    generate
        for (c = 0; c < C; c = c + 1) begin : seen
            assign stage1[c*N +: N]   = dut.channel[c].sync.stage1_q;
            assign stage2[c*N +: N]   = dut.channel[c].sync.stage2_q;
            assign mask[c*N +: N]     = dut.channel[c].machine.mask_q;
            assign late[c*N +: N]     = dut.channel[c].machine.late_q;
            assign limit[c*32 +: 32]  = dut.channel[c].machine.limit_q;
            assign count[c*32 +: 32]  = dut.channel[c].machine.count_q;
            assign expired[c*8 +: 8]  = dut.channel[c].machine.expired_q;
            assign early[c*8 +: 8]    = dut.channel[c].machine.early_q;
            assign overdue[c]         = dut.channel[c].machine.overdue_q;
            assign toggled1[c]        = dut.channel[c].machine.toggled1_q;
            assign toggled2[c]        = dut.channel[c].machine.toggled2_q;
        end
    endgenerate

    // One line of the serial receiver: its two synchroniser stages, its level, its count of differing samples.
    wire [4:0] select_line = {dut.select_line.stage1_q, dut.select_line.stage2_q, dut.select_line.level_q, dut.select_line.run_q};
    wire [4:0] clock_line  = {dut.clock_line.stage1_q, dut.clock_line.stage2_q, dut.clock_line.level_q, dut.clock_line.run_q};
    wire [4:0] data_line   = {dut.data_line.stage1_q, dut.data_line.stage2_q, dut.data_line.level_q, dut.data_line.run_q};

    reg [8*1024-1:0] stimulus_name;
    reg [8*1024-1:0] trace_name;
    integer          stimulus;
    integer          trace;

    initial begin
        if (!$value$plusargs("stimulus=%s", stimulus_name) || !$value$plusargs("trace=%s", trace_name)) begin
            $display("usage: +stimulus=FILE +trace=FILE");
            $finish;
        end
        stimulus = $fopen(stimulus_name, "r");
        trace    = $fopen(trace_name, "w");
        while ($fscanf(stimulus, "%h %h %h %h %h", rst, arrive, select, clock, data) == 5) begin
            // Half a period of 25.175 MHz (19.86 ns), so that the inputs are stable long before the edge.
            #19.86 clk = 1'b1;
            #19.86 clk = 1'b0;
            $fwrite(trace, "%h %h %h %h %h %h %h %h", released, last, stage1, stage2, mask, late, limit, count);
            $fwrite(trace, " %h %h %h %h %h", expired, early, overdue, toggled1, toggled2);
            $fwrite(trace, " %h %h %h %h %h", dut.arbiter.select1_q, dut.arbiter.select2_q,
                    dut.arbiter.grant_q, dut.arbiter.blocked_q, dut.arbiter.age_q);
            $fwrite(trace, " %h %h %h %h", select_line, clock_line, data_line, {dut.select_was_q, dut.clock_was_q});
            $fdisplay(trace, " %h %h %h %h", dut.frame.phase_q, dut.frame.count_q, dut.frame.check_q, dut.frame.shift_q);
        end
        $fclose(trace);
        $finish;
    end
endmodule

`default_nettype wire
