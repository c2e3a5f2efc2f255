// Contract of an APB slave (AMBA IHI 0024), for any inputs of the front (bus adapter) and any register block behind it.
`default_nettype none

module apb_contract (
    input wire        clk_i,
    input wire        psel_i,
    input wire        penable_i,
    input wire        pwrite_i,
    input wire [18:0] paddr_i,
    input wire [31:0] pwdata_i,
    input wire [3:0]  pstrb_i,
    input wire [31:0] rdata_i,
    input wire        rerror_i,
    input wire        werror_i
);
    wire [31:0] prdata, wdata;
    wire        pready, pslverr, write;
    wire [18:0] raddr, waddr;
    wire [3:0]  wstrb;

    apb_front dut (
        .psel_i    (psel_i),
        .penable_i (penable_i),
        .pwrite_i  (pwrite_i),
        .paddr_i   (paddr_i),
        .pwdata_i  (pwdata_i),
        .pstrb_i   (pstrb_i),
        .prdata_o  (prdata),
        .pready_o  (pready),
        .pslverr_o (pslverr),
        .raddr_o   (raddr),
        .rdata_i   (rdata_i),
        .rerror_i  (rerror_i),
        .write_o   (write),
        .waddr_o   (waddr),
        .wdata_o   (wdata),
        .wstrb_o   (wstrb),
        .werror_i  (werror_i)
    );

    // A transfer has one cycle of SETUP and one of ACCESS; then the master returns to SETUP or to idle.
    reg access_q = 1'b0, setup_q = 1'b0;
    always @(posedge clk_i) begin
        setup_q  <= psel_i && !penable_i;
        access_q <= psel_i && penable_i;
    end

    wire access = psel_i && penable_i;
    always @* begin
        assume (!penable_i || (psel_i && setup_q));

        an_access_is_one_cycle:    assert (!(access && access_q));
        it_ends_at_once:           assert (!access || pready);
        a_write_is_its_access:     assert (write == (access && pwrite_i));
        with_its_address_and_data: assert (!write || (waddr == paddr_i && wdata == pwdata_i && wstrb == pstrb_i));
        its_error_is_the_answer:   assert (!write || pslverr == werror_i);
        a_read_is_of_its_address:  assert (!access || pwrite_i || (raddr == paddr_i && prdata == rdata_i && pslverr == rerror_i));
        no_error_elsewhere:        assert (access || !pslverr);
    end
endmodule

`default_nettype wire
