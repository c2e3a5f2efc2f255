// Wishbone B4 classic front (bus adapter) of the register block: each transfer takes two cycles.
//
// In the first cycle the block is read. In the second one ACK or ERR ends the transfer, and a write has its effect;
// so a master that holds STB longer does not repeat a write, and a request withdrawn before the end has no effect.
// The address counts bytes; a master with word addresses must be connected two bits higher.
`default_nettype none

module wishbone_front #(
    parameter ADDRESS = 19  // bits of an address, 13 to 19
) (
    input  wire               clk_i,
    input  wire               rst_i,
    input  wire               cyc_i,
    input  wire               stb_i,
    input  wire               we_i,
    input  wire [ADDRESS-1:0] adr_i,
    input  wire [31:0]        dat_i,
    input  wire [3:0]         sel_i,
    output wire [31:0]        dat_o,
    output wire               ack_o,
    output wire               err_o,
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

    reg        second_q = 1'b0;
    reg        rerror_q = 1'b0;
    reg [31:0] rdata_q  = 32'd0;

    wire asks  = cyc_i && stb_i;
    wire ends  = asks && second_q && !rst_i;
    wire error = we_i ? werror_i : rerror_q;

    always @(posedge clk_i) begin
        second_q <= asks && !second_q && !rst_i;
        rerror_q <= rerror_i;
        rdata_q  <= rdata_i;
    end

    assign dat_o = rdata_q;
    assign ack_o = ends && !error;
    assign err_o = ends && error;

    assign write_o = ends && we_i;
    assign wdata_o = dat_i;
    assign wstrb_o = sel_i;
    generate
        if (ADDRESS == 19) begin : whole
            assign waddr_o = adr_i;
        end else begin : extended
            assign waddr_o = {{19-ADDRESS{1'b0}}, adr_i};
        end
    endgenerate
    assign raddr_o = waddr_o;
endmodule

`default_nettype wire
