// Wrapper of barrier_axi4lite with the signal names of cocotbext-axi.
`default_nettype none

module axi4lite_names #(
    parameter N = 4,
    parameter G = 1
) (
    input  wire           clk,
    input  wire           rst,
    input  wire                 s_axi_awvalid,
    output wire                 s_axi_awready,
    input  wire [18:0]          s_axi_awaddr,
    input  wire [2:0]           s_axi_awprot,
    input  wire                 s_axi_wvalid,
    output wire                 s_axi_wready,
    input  wire [31:0]          s_axi_wdata,
    input  wire [3:0]           s_axi_wstrb,
    output wire                 s_axi_bvalid,
    input  wire                 s_axi_bready,
    output wire [1:0]           s_axi_bresp,
    input  wire                 s_axi_arvalid,
    output wire                 s_axi_arready,
    input  wire [18:0]          s_axi_araddr,
    input  wire [2:0]           s_axi_arprot,
    output wire                 s_axi_rvalid,
    input  wire                 s_axi_rready,
    output wire [31:0]          s_axi_rdata,
    output wire [1:0]           s_axi_rresp,
    input  wire [G*N-1:0] enter,
    output wire [G-1:0]   level,
    output wire [G*N-1:0] released,
    output wire [N-1:0]   wake,
    output wire           irq
);
    barrier_axi4lite #(.N(N), .G(G), .SYNC(0)) dut (
        .clk_i     (clk),
        .rst_i     (rst),
        .awvalid_i (s_axi_awvalid),
        .awready_o (s_axi_awready),
        .awaddr_i  (s_axi_awaddr),
        .wvalid_i  (s_axi_wvalid),
        .wready_o  (s_axi_wready),
        .wdata_i   (s_axi_wdata),
        .wstrb_i   (s_axi_wstrb),
        .bvalid_o  (s_axi_bvalid),
        .bready_i  (s_axi_bready),
        .bresp_o   (s_axi_bresp),
        .arvalid_i (s_axi_arvalid),
        .arready_o (s_axi_arready),
        .araddr_i  (s_axi_araddr),
        .rvalid_o  (s_axi_rvalid),
        .rready_i  (s_axi_rready),
        .rdata_o   (s_axi_rdata),
        .rresp_o   (s_axi_rresp),
        .node_i    ({G*N{1'b0}}),
        .enter_i   (enter),
        .level_o   (level),
        .release_o (released),
        .wake_o    (wake),
        .irq_o     (irq)
    );

    wire unused = |s_axi_awprot | (|s_axi_arprot);
endmodule

`default_nettype wire
