// Testbench that applies a text of inputs, one line of W bits per clock edge, to the generated module `play`, which contains any design.
//
// +stimulus=FILE is the text; +trace=FILE receives the outputs just before the next inputs; +vcd=FILE receives all signals of the design.
// The inputs change at the falling edge, so a netlist with delays has half a period to settle.
`timescale 1ns / 1ps
`default_nettype none

module play_tb;
    parameter W = 1;
    parameter V = 1;
    parameter HALF = 20000;  // picoseconds

    reg          clk = 1'b0;
    reg  [W-1:0] in  = {W{1'b0}};
    wire [V-1:0] out;

    play part (
        .clk_i (clk),
        .in_i  (in),
        .out_o (out)
    );

    reg [8*1024-1:0] stimulus_name;
    reg [8*1024-1:0] trace_name;
    reg [8*1024-1:0] vcd_name;
    integer          stimulus;
    integer          trace;

    initial begin
        if (!$value$plusargs("stimulus=%s", stimulus_name) || !$value$plusargs("trace=%s", trace_name)) begin
            $display("usage: +stimulus=FILE +trace=FILE [+vcd=FILE]");
            $finish;
        end
        if ($value$plusargs("vcd=%s", vcd_name)) begin
            $dumpfile(vcd_name);
            $dumpvars(0, part.dut);
        end
        stimulus = $fopen(stimulus_name, "r");
        trace    = $fopen(trace_name, "w");
        while ($fscanf(stimulus, "%b", in) == 1) begin
            #(HALF / 1000.0) clk = 1'b1;
            #(HALF / 1000.0) $fdisplay(trace, "%b", out);
            clk = 1'b0;
        end
        $fclose(trace);
        $finish;
    end
endmodule

`default_nettype wire
