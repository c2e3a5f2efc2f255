// The input pads, each with its weak pull-up; every iCE40 top level uses them.
//
// The pull-up is for unconnected pads: they read high and do not float. Behind the receivers of
// ../WIRING.md, which always drive the pad, it has no effect; there the pull-ups of 10 kohms on the cable side of the receivers
// determine what an unplugged cable reads.
`default_nettype none

module ice40_inputs #(
    parameter LINES = 60
) (
    input  wire [LINES-1:0] wire_i,
    output wire [LINES-1:0] pad_o
);
    // An illegal parameter names a module that does not exist, so no tool elaborates the design.
    generate
        if (LINES < 1) begin : lines_guard
            LINES_must_be_1_or_more refused ();
        end
    endgenerate

    genvar n;
    generate
        for (n = 0; n < LINES; n = n + 1) begin : line
            SB_IO #(
                .PIN_TYPE (6'b0000_01),  // plain input
                .PULLUP   (1'b1)
            ) pin (
                .PACKAGE_PIN (wire_i[n]),
                .D_IN_0      (pad_o[n])
            );
        end
    endgenerate
endmodule

`default_nettype wire
