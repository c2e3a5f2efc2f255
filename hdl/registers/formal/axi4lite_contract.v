// Contract of an AXI4-Lite slave (AMBA IHI 0022, A3 and B1), for any master that obeys the protocol and any register block behind it.
//
// Counters hold the transfers accepted on each channel minus the responses; the assumptions about the master are those of A3.2.1.
`default_nettype none

module axi4lite_contract (
    input wire        clk_i,
    input wire        rst_i,
    input wire        awvalid_i,
    input wire [18:0] awaddr_i,
    input wire        wvalid_i,
    input wire [31:0] wdata_i,
    input wire [3:0]  wstrb_i,
    input wire        bready_i,
    input wire        arvalid_i,
    input wire [18:0] araddr_i,
    input wire        rready_i,
    // Read data and error flags of the register block; they are arbitrary.
    input wire [31:0] rdata_i,
    input wire        rerror_i,
    input wire        werror_i
);
    wire        awready, wready, bvalid, arready, rvalid, write;
    wire [1:0]  bresp, rresp;
    wire [31:0] rdata, wdata;
    wire [18:0] raddr, waddr;
    wire [3:0]  wstrb;

    axi4lite_front dut (
        .clk_i     (clk_i),
        .rst_i     (rst_i),
        .awvalid_i (awvalid_i),
        .awready_o (awready),
        .awaddr_i  (awaddr_i),
        .wvalid_i  (wvalid_i),
        .wready_o  (wready),
        .wdata_i   (wdata_i),
        .wstrb_i   (wstrb_i),
        .bvalid_o  (bvalid),
        .bready_i  (bready_i),
        .bresp_o   (bresp),
        .arvalid_i (arvalid_i),
        .arready_o (arready),
        .araddr_i  (araddr_i),
        .rvalid_o  (rvalid),
        .rready_i  (rready_i),
        .rdata_o   (rdata),
        .rresp_o   (rresp),
        .raddr_o   (raddr),
        .rdata_i   (rdata_i),
        .rerror_i  (rerror_i),
        .write_o   (write),
        .waddr_o   (waddr),
        .wdata_o   (wdata),
        .wstrb_o   (wstrb),
        .werror_i  (werror_i)
    );

    // State of the previous cycle.
    reg        rst_q = 1'b1, bwaits_q = 1'b0, rwaits_q = 1'b0, awwaits_q = 1'b0, wwaits_q = 1'b0, arwaits_q = 1'b0;
    reg        took_read_q = 1'b0, took_write_q = 1'b0, rerror_q = 1'b0, werror_q = 1'b0;
    reg [1:0]  bresp_q = 2'd0, rresp_q = 2'd0;
    reg [31:0] rdata_q = 32'd0, answer_q = 32'd0, wdata_q = 32'd0;
    reg [18:0] awaddr_q = 19'd0, araddr_q = 19'd0;
    reg [3:0]  wstrb_q = 4'd0;
    // Numbers of transfers without a response yet.
    reg [1:0]  aw_q = 2'd0, w_q = 2'd0, ar_q = 2'd0;

    wire aw = awvalid_i && awready;
    wire w  = wvalid_i && wready;
    wire b  = bvalid && bready_i;
    wire ar = arvalid_i && arready;
    wire r  = rvalid && rready_i;

    always @(posedge clk_i) begin
        rst_q     <= rst_i;
        bwaits_q  <= bvalid && !bready_i && !rst_i;
        rwaits_q  <= rvalid && !rready_i && !rst_i;
        awwaits_q <= awvalid_i && !awready && !rst_i;
        wwaits_q  <= wvalid_i && !wready && !rst_i;
        arwaits_q <= arvalid_i && !arready && !rst_i;
        took_read_q  <= ar && !rst_i;
        took_write_q <= write && !rst_i;
        werror_q <= werror_i;
        rerror_q <= rerror_i;
        answer_q <= rdata_i;
        bresp_q  <= bresp;
        rresp_q  <= rresp;
        rdata_q  <= rdata;
        wdata_q  <= wdata_i;
        wstrb_q  <= wstrb_i;
        awaddr_q <= awaddr_i;
        araddr_q <= araddr_i;
        aw_q <= rst_i ? 2'd0 : aw_q + aw - b;
        w_q  <= rst_i ? 2'd0 : w_q + w - b;
        ar_q <= rst_i ? 2'd0 : ar_q + ar - r;
    end

    always @* begin
        // The master keeps a request stable until it is accepted or a reset occurs.
        assume (!awwaits_q || (awvalid_i && awaddr_i == awaddr_q));
        assume (!wwaits_q || (wvalid_i && wdata_i == wdata_q && wstrb_i == wstrb_q));
        assume (!arwaits_q || (arvalid_i && araddr_i == araddr_q));

        no_response_after_a_reset:          assert (!rst_q || (!bvalid && !rvalid));
        a_write_response_waits:             assert (!bwaits_q || rst_q || (bvalid && bresp == bresp_q));
        a_read_response_waits:              assert (!rwaits_q || rst_q || (rvalid && rresp == rresp_q && rdata == rdata_q));
        one_response_for_each_address:      assert (aw_q == {1'b0, bvalid} || rst_q);
        one_response_for_each_data:         assert (w_q == {1'b0, bvalid} || rst_q);
        one_response_for_each_read:         assert (ar_q == {1'b0, rvalid} || rst_q);
        responses_are_okay_or_slverr:       assert (!bresp[0] && !rresp[0]);
        a_write_is_taken_once_and_whole:    assert (write == (aw && w) && aw == w);
        with_its_own_address_and_data:      assert (!write || (waddr == awaddr_i && wdata == wdata_i && wstrb == wstrb_i));
        its_error_is_the_response:          assert (!took_write_q || rst_q || (bvalid && bresp[1] == werror_q));
        a_read_is_of_its_address:           assert (!ar || raddr == araddr_i);
        its_data_are_the_response:          assert (!took_read_q || rst_q || (rvalid && rdata == answer_q && rresp[1] == rerror_q));
        a_write_never_waits_for_long:       assert (rst_i || !(awvalid_i && wvalid_i && (!bvalid || bready_i)) || write);
        a_read_never_waits_for_long:        assert (rst_i || !(arvalid_i && (!rvalid || rready_i)) || ar);
        nothing_is_taken_in_a_reset:        assert (!rst_i || (!aw && !w && !ar));
    end
endmodule

`default_nettype wire
