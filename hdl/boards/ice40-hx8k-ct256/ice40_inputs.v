// Input pads of all iCE40 top levels, each with its weak pull-up.
//
// The pull-ups keep unconnected pads from floating: they read high. The receivers of
// ../WIRING.md always drive their pads, so the weak pull-ups do not matter; the 10 kohm pull-ups on the cable side of these receivers
// then determine what an unplugged cable reads.
`default_nettype none

module ice40_inputs #(
    parameter LINES = 60
) (
    input  wire [LINES-1:0] wire_i,
    output wire [LINES-1:0] pad_o
);
    // An illegal parameter instantiates a missing module, so no tool elaborates the design.
    generate
        if (LINES < 1) begin : lines_guard
            LINES_must_be_1_or_more refused ();
        end
    endgenerate

    genvar n;
    generate
        for (n = 0; n < LINES; n = n + 1) begin : line
            SB_IO #(
                .PIN_TYPE (6'b0000_01),  // input without a register
                .PULLUP   (1'b1)
            ) pin (
                .PACKAGE_PIN (wire_i[n]),
                .D_IN_0      (pad_o[n])
            );
        end
    endgenerate
endmodule

`default_nettype wire
