// The register block with an AXI4-Lite bus; parameters and the nodes' ports are those of barrier_regs.
// ADDRESS is the number of address bits, 13 to 19; 13 are enough if each node has a page of 64 bytes.
`default_nettype none

// generated from hdl/registers/rtl/axi4lite_front.v: unit
module barrier_axi4lite #(
    parameter ADDRESS = 19,
    parameter N = 4,
    parameter G = 1,
    parameter SYNC = 2,
    parameter STRIDE = 6,
    parameter STAMPS = 1,
    parameter PULSE = 1,
    parameter [31:0] CLOCK_HZ = 32'd0
) (
    input  wire               clk_i,
    input  wire               rst_i,
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
    input  wire [G*N-1:0]     node_i,
    input  wire [G*N-1:0]     enter_i,
    output wire [G-1:0]       level_o,
    output wire [G*N-1:0]     release_o,
    output wire [N-1:0]       wake_o,
    output wire               irq_o,
    output wire               start_o,
    output wire [31:0]        start_time_o
);
    wire [18:0] raddr, waddr;
    wire [31:0] rdata, wdata;
    wire [3:0]  wstrb;
    wire        rerror, write, werror;

    axi4lite_front #(.ADDRESS(ADDRESS)) front (
        .clk_i     (clk_i),
        .rst_i     (rst_i),
        .awvalid_i (awvalid_i),
        .awready_o (awready_o),
        .awaddr_i  (awaddr_i),
        .wvalid_i  (wvalid_i),
        .wready_o  (wready_o),
        .wdata_i   (wdata_i),
        .wstrb_i   (wstrb_i),
        .bvalid_o  (bvalid_o),
        .bready_i  (bready_i),
        .bresp_o   (bresp_o),
        .arvalid_i (arvalid_i),
        .arready_o (arready_o),
        .araddr_i  (araddr_i),
        .rvalid_o  (rvalid_o),
        .rready_i  (rready_i),
        .rdata_o   (rdata_o),
        .rresp_o   (rresp_o),
        .raddr_o   (raddr),
        .rdata_i   (rdata),
        .rerror_i  (rerror),
        .write_o   (write),
        .waddr_o   (waddr),
        .wdata_o   (wdata),
        .wstrb_o   (wstrb),
        .werror_i  (werror)
    );

    barrier_regs #(
        .N(N),
        .G(G),
        .SYNC(SYNC),
        .STRIDE(STRIDE),
        .STAMPS(STAMPS),
        .PULSE(PULSE),
        .CLOCK_HZ(CLOCK_HZ)
    ) regs (
        .clk_i        (clk_i),
        .rst_i        (rst_i),
        .raddr_i      (raddr),
        .rdata_o      (rdata),
        .rerror_o     (rerror),
        .write_i      (write),
        .waddr_i      (waddr),
        .wdata_i      (wdata),
        .wstrb_i      (wstrb),
        .werror_o     (werror),
        .node_i       (node_i),
        .enter_i      (enter_i),
        .level_o      (level_o),
        .release_o    (release_o),
        .wake_o       (wake_o),
        .irq_o        (irq_o),
        .start_o      (start_o),
        .start_time_o (start_time_o)
    );
endmodule
// end of the generated text

`default_nettype wire
