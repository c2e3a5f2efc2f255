// A PLL generates 25.125 MHz from the iCEBreaker's 12 MHz, 0.2 % below the oscillator of the prototype's board.
//
// The module has the name and the ports of ../ice40-hx8k-ct256/ice40_clock.v. Here the clock's pin is the PLL's dedicated pad,
// which only this kind of PLL may use.
//
// LOCK is not used. Before the PLL has locked, its output is at most 1066 MHz / 2^5 = 33.3 MHz, the maximum frequency of its
// oscillator divided by 2^DIVQ, at which every design here still works; and a barrier that was reset by a loss of lock in
// the middle of a job would release its nodes.
`default_nettype none

module ice40_clock (
    input  wire clk12_i,
    output wire clk_o
);
    // 12 MHz * (66 + 1) / 2^5, the values of `icepll -i 12 -o 25.175`.
    SB_PLL40_PAD #(
        .FEEDBACK_PATH ("SIMPLE"),
        .DIVR          (4'd0),
        .DIVF          (7'd66),
        .DIVQ          (3'd5),
        .FILTER_RANGE  (3'd1)
    ) pll (
        .PACKAGEPIN    (clk12_i),
        .PLLOUTGLOBAL  (clk_o),
        .RESETB        (1'b1),
        .BYPASS        (1'b0)
    );
endmodule

`default_nettype wire
