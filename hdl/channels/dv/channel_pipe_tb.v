// Testbench of barrier version 2 on standard input and output:
// the driver runs against the RTL through a pipe.
//
// Reads lines "edges arrive select clock data" (edges decimal, levels hexadecimal) from standard input.
// For each line it applies the levels for that many clock edges and then prints "release last" on standard output.
`timescale 1ns / 1ps
`default_nettype none

module channel_pipe_tb;
    parameter N = 10;
    parameter C = 5;

    localparam STDIN = 32'h8000_0000;

    reg            clk = 1'b0;
    reg  [C*N-1:0] arrive = {C*N{1'b0}};
    reg  [N-1:0]   select = {N{1'b0}};
    reg  [N-1:0]   clock  = {N{1'b0}};
    reg  [N-1:0]   data   = {N{1'b0}};
    wire [C-1:0]   released;
    wire [N-1:0]   last;
    integer        edges;

    channel_barrier #(.N(N), .C(C)) dut (
        .clk_i     (clk),
        .rst_i     (1'b0),
        .arrive_i  (arrive),
        .select_i  (select),
        .clock_i   (clock),
        .data_i    (data),
        .release_o (released),
        .last_o    (last)
    );

    initial begin
        while ($fscanf(STDIN, "%d %h %h %h %h", edges, arrive, select, clock, data) == 5) begin
            repeat (edges) begin
                #19.86 clk = 1'b1;
                #19.86 clk = 1'b0;
            end
            // The outputs settle in zero time, but only after this process has yielded.
            #1 $display("%h %h", released, last);
            $fflush;
        end
        $finish;
    end
endmodule

`default_nettype wire
