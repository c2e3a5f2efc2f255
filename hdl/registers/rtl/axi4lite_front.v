// AXI4-Lite front (bus adapter) of the register block: accepts a write when its address and its data are both valid, and a read immediately,
// if the response register of its channel is free or becomes free in this cycle.
//
// A write has its effect in the cycle in which it is accepted, so a response that waits for its READY does not repeat the effect.
`default_nettype none

module axi4lite_front #(
    parameter ADDRESS = 19  // bits of an address, 13 to 19
) (
    input  wire               clk_i,
    input  wire               rst_i,       // synchronous, the complement of ARESETn
    input  wire               awvalid_i,
    output wire               awready_o,
    input  wire [ADDRESS-1:0] awaddr_i,
    input  wire               wvalid_i,
    output wire               wready_o,
    input  wire [31:0]        wdata_i,
    input  wire [3:0]         wstrb_i,
    output wire               bvalid_o,
    input  wire               bready_i,
    output wire [1:0]         bresp_o,
    input  wire               arvalid_i,
    output wire               arready_o,
    input  wire [ADDRESS-1:0] araddr_i,
    output wire               rvalid_o,
    input  wire               rready_i,
    output wire [31:0]        rdata_o,
    output wire [1:0]         rresp_o,
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

    reg        bvalid_q = 1'b0;
    reg        berror_q = 1'b0;
    reg        rvalid_q = 1'b0;
    reg        rerror_q = 1'b0;
    reg [31:0] rdata_q  = 32'd0;

    wire writes = awvalid_i && wvalid_i && (!bvalid_q || bready_i) && !rst_i;
    wire reads  = arvalid_i && (!rvalid_q || rready_i) && !rst_i;

    always @(posedge clk_i) begin
        if (rst_i) begin
            bvalid_q <= 1'b0;
            rvalid_q <= 1'b0;
        end else begin
            bvalid_q <= writes || (bvalid_q && !bready_i);
            rvalid_q <= reads || (rvalid_q && !rready_i);
        end
        if (writes)
            berror_q <= werror_i;
        if (reads) begin
            rerror_q <= rerror_i;
            rdata_q  <= rdata_i;
        end
    end

    assign awready_o = writes;
    assign wready_o  = writes;
    assign bvalid_o  = bvalid_q;
    assign bresp_o   = {berror_q, 1'b0};  // OKAY or SLVERR
    assign arready_o = reads;
    assign rvalid_o  = rvalid_q;
    assign rresp_o   = {rerror_q, 1'b0};
    assign rdata_o   = rdata_q;

    assign write_o = writes;
    assign wdata_o = wdata_i;
    assign wstrb_o = wstrb_i;
    generate
        if (ADDRESS == 19) begin : whole
            assign waddr_o = awaddr_i;
            assign raddr_o = araddr_i;
        end else begin : extended
            assign waddr_o = {{19-ADDRESS{1'b0}}, awaddr_i};
            assign raddr_o = {{19-ADDRESS{1'b0}}, araddr_i};
        end
    endgenerate
endmodule

`default_nettype wire
