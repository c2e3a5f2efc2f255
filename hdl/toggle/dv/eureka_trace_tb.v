// Testbench of eureka_line. Reads one line "rst release inputs" (hexadecimal) per clock edge from +stimulus=FILE,
// and writes to +trace=FILE one line "found first stage1 stage2 seen" with the values after that edge.
// "seen" are the filtered levels that the machine evaluates at the next edge.
// A test of crate hdl writes the stimulus and compares the trace with the model.
`timescale 1ns / 1ps
`default_nettype none

module eureka_trace_tb;
    parameter N = 60;
    parameter FILTER = 1;

    reg          clk = 1'b0;
    reg          rst = 1'b0;
    reg          level = 1'b0;
    reg  [N-1:0] node_in = {N{1'b0}};
    wire         found;
    wire [N-1:0] first;

    eureka_line #(.N(N), .FILTER(FILTER)) dut (
        .clk_i     (clk),
        .rst_i     (rst),
        .release_i (level),
        .node_i    (node_in),
        .found_o   (found),
        .first_o   (first)
    );

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
        while ($fscanf(stimulus, "%h %h %h", rst, level, node_in) == 3) begin
            // Half a period of 25.175 MHz (19.86 ns), so that the inputs are stable long before the edge.
            #19.86 clk = 1'b1;
            #19.86 clk = 1'b0;
            $fdisplay(trace, "%h %h %h %h %h", found, first, dut.sync.stage1_q, dut.sync.stage2_q, dut.says);
        end
        $fclose(trace);
        $finish;
    end
endmodule

`default_nettype wire
