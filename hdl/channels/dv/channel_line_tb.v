// Testbench that measures which pulse widths pass channel_line: high pulses of up to five clock periods, in steps of 1/100
// period, each at ten delays after a clock edge. For each width it counts the pulses that appear at the filtered output.
//
// The trace has one line per width: the width in 1/100 period, the number of pulses, the number that appeared at the output.
// The testbench ignores the stimulus.
`timescale 1ns / 1ps
`default_nettype none

module channel_line_tb;
    localparam PERIOD = 100;  // time units per clock period, arbitrary
    localparam STEP   = 10;

    reg  clk  = 1'b0;
    reg  line = 1'b0;
    wire level;

    channel_line dut (
        .clk_i   (clk),
        .rst_i   (1'b0),
        .flush_i (1'b0),
        .line_i  (line),
        .level_o (level)
    );

    reg [8*256-1:0] name;
    integer         trace, width, phase, counted;
    reg             rose;

    always #(PERIOD / 2) clk = ~clk;
    always @(posedge level) rose = 1'b1;

    initial begin
        if (!$value$plusargs("trace=%s", name))
            $finish;
        trace = $fopen(name, "w");
        for (width = 1; width <= 5 * PERIOD; width = width + 1) begin
            counted = 0;
            // Pulses begin and end half a time unit beside the clock edges, so that no change coincides with a sample.
            for (phase = 0; phase < PERIOD; phase = phase + STEP) begin
                rose = 1'b0;
                @(posedge clk);
                #(phase + 0.5) line = 1'b1;
                #(width) line = 1'b0;
                repeat (16) @(posedge clk);
                if (rose)
                    counted = counted + 1;
            end
            $fdisplay(trace, "%0d %0d %0d", width, PERIOD / STEP, counted);
        end
        $finish;
    end
endmodule

`default_nettype wire
