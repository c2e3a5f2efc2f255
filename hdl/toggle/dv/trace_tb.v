// Testbench of toggle_barrier. Reads one line "rst inputs" (hexadecimal) per clock edge from +stimulus=FILE,
// and writes to +trace=FILE one line "outputs stage1 stage2 seen" with the values after that edge.
// "seen" are the filtered levels that the machine evaluates at the next edge.
// A test of crate hdl writes the stimulus and compares the trace with the model.
`timescale 1ns / 1ps
`default_nettype none

module trace_tb;
    parameter N = 60;
    parameter FILTER = 1;

    reg          clk = 1'b0;
    reg          rst = 1'b0;
    reg  [N-1:0] node_in = {N{1'b0}};
    wire [N-1:0] node_out;

    toggle_barrier #(.N(N), .FILTER(FILTER)) dut (
        .clk_i  (clk),
        .rst_i  (rst),
        .node_i (node_in),
        .node_o (node_out)
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
        while ($fscanf(stimulus, "%h %h", rst, node_in) == 2) begin
            // Half a period of 25.175 MHz (19.86 ns), so that the inputs are stable long before the edge.
            #19.86 clk = 1'b1;
            #19.86 clk = 1'b0;
            $fdisplay(trace, "%h %h %h %h", node_out, dut.sync.stage1_q, dut.sync.stage2_q, dut.arrived);
        end
        $fclose(trace);
        $finish;
    end
endmodule

`default_nettype wire
