// APB front (bus adapter) of the register block, without wait states: data, error and effect are in the cycle of PENABLE.
//
// For APB3, which has no PSTRB, tie the input of PSTRB high.
`default_nettype none

module apb_front #(
    parameter ADDRESS = 19  // bits of an address, 13 to 19
) (
    input  wire               psel_i,
    input  wire               penable_i,
    input  wire               pwrite_i,
    input  wire [ADDRESS-1:0] paddr_i,
    input  wire [31:0]        pwdata_i,
    input  wire [3:0]         pstrb_i,
    output wire [31:0]        prdata_o,
    output wire               pready_o,
    output wire               pslverr_o,
    // Bus of the register block.
    output wire [18:0]        raddr_o,
    input  wire [31:0]        rdata_i,
    input  wire               rerror_i,
    output wire               write_o,
    output wire [18:0]        waddr_o,
    output wire [31:0]        wdata_o,
    output wire [3:0]         wstrb_o,
    input  wire               werror_i
);
    // An illegal parameter instantiates a missing module, so no tool elaborates the design.
    generate
        if (ADDRESS < 13 || ADDRESS > 19) begin : address_guard
            ADDRESS_must_be_13_to_19 refused ();
        end
    endgenerate

    wire access = psel_i && penable_i;

    assign prdata_o  = rdata_i;
    assign pready_o  = 1'b1;
    assign pslverr_o = access && (pwrite_i ? werror_i : rerror_i);

    assign write_o = access && pwrite_i;
    assign wdata_o = pwdata_i;
    assign wstrb_o = pstrb_i;
    generate
        if (ADDRESS == 19) begin : whole
            assign waddr_o = paddr_i;
        end else begin : extended
            assign waddr_o = {{19-ADDRESS{1'b0}}, paddr_i};
        end
    endgenerate
    assign raddr_o = waddr_o;
endmodule

`default_nettype wire
