// Clock of the breakout board: a PLL makes 25.125 MHz from its 12 MHz, 0.2 % below the oscillator of the prototype's board.
//
// The PLL's LOCK output is not used. Before lock the PLL runs at most at 1066 MHz / 2^5 = 33.3 MHz, the maximum frequency of its
// oscillator divided by 2^DIVQ, at which every design in this folder still works. LOCK as a reset would do harm: if lock were lost
// in the middle of a job, the reset barrier would release its nodes.
`default_nettype none

module ice40_clock (
    input  wire clk12_i,
    output wire clk_o
);
    // 12 MHz * (66 + 1) / 2^5, the values of `icepll -i 12 -o 25.175`.
    SB_PLL40_CORE #(
        .FEEDBACK_PATH ("SIMPLE"),
        .DIVR          (4'd0),
        .DIVF          (7'd66),
        .DIVQ          (3'd5),
        .FILTER_RANGE  (3'd1)
    ) pll (
        .REFERENCECLK (clk12_i),
        .PLLOUTGLOBAL (clk_o),
        .RESETB       (1'b1),
        .BYPASS       (1'b0)
    );
endmodule

`default_nettype wire
