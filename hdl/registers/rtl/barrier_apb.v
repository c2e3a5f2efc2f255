// The register block with an APB3 or APB4 bus; parameters and the nodes' ports are those of barrier_regs.
// ADDRESS is the number of address bits, 13 to 19; 13 are enough if each node has a page of 64 bytes.
`default_nettype none

// generated from hdl/registers/rtl/apb_front.v: unit
module barrier_apb #(
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
    input  wire               psel_i,
    input  wire               penable_i,
    input  wire               pwrite_i,
    input  wire [ADDRESS-1:0] paddr_i,
    input  wire [31:0]        pwdata_i,
    input  wire [3:0]         pstrb_i,
    output wire [31:0]        prdata_o,
    output wire               pready_o,
    output wire               pslverr_o,
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

    apb_front #(.ADDRESS(ADDRESS)) front (
        .psel_i    (psel_i),
        .penable_i (penable_i),
        .pwrite_i  (pwrite_i),
        .paddr_i   (paddr_i),
        .pwdata_i  (pwdata_i),
        .pstrb_i   (pstrb_i),
        .prdata_o  (prdata_o),
        .pready_o  (pready_o),
        .pslverr_o (pslverr_o),
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
