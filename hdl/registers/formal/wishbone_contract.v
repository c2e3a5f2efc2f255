// Contract of a Wishbone B4 classic slave, for any master, also one that withdraws a request, and any register block behind it.
`default_nettype none

module wishbone_contract (
    input wire        clk_i,
    input wire        rst_i,
    input wire        cyc_i,
    input wire        stb_i,
    input wire        we_i,
    input wire [18:0] adr_i,
    input wire [31:0] dat_i,
    input wire [3:0]  sel_i,
    input wire [31:0] rdata_i,
    input wire        rerror_i,
    input wire        werror_i
);
    wire        ack, err, write;
    wire [31:0] dat, wdata;
    wire [18:0] raddr, waddr;
    wire [3:0]  wstrb;

    wishbone_front dut (
        .clk_i    (clk_i),
        .rst_i    (rst_i),
        .cyc_i    (cyc_i),
        .stb_i    (stb_i),
        .we_i     (we_i),
        .adr_i    (adr_i),
        .dat_i    (dat_i),
        .sel_i    (sel_i),
        .dat_o    (dat),
        .ack_o    (ack),
        .err_o    (err),
        .raddr_o  (raddr),
        .rdata_i  (rdata_i),
        .rerror_i (rerror_i),
        .write_o  (write),
        .waddr_o  (waddr),
        .wdata_o  (wdata),
        .wstrb_o  (wstrb),
        .werror_i (werror_i)
    );

    wire ends = ack || err;

    // State of the previous cycle. waits_q is high if its request was not answered.
    reg        rst_q = 1'b1, waits_q = 1'b0, waited_q = 1'b0, ended_q = 1'b0, we_q = 1'b0, rerror_q = 1'b0;
    reg [18:0] adr_q = 19'd0;
    reg [31:0] dat_q = 32'd0, answer_q = 32'd0;
    reg [3:0]  sel_q = 4'd0;
    always @(posedge clk_i) begin
        rst_q    <= rst_i;
        waits_q  <= cyc_i && stb_i && !ends && !rst_i;
        waited_q <= waits_q && cyc_i && stb_i && !ends && !rst_i;
        ended_q  <= ends && !rst_i;
        we_q     <= we_i;
        adr_q    <= adr_i;
        dat_q    <= dat_i;
        sel_q    <= sel_i;
        answer_q <= rdata_i;
        rerror_q <= rerror_i;
    end

    always @* begin
        // The master keeps a request stable while it holds CYC and STB.
        assume (!waits_q || !cyc_i || !stb_i || (we_i == we_q && adr_i == adr_q && dat_i == dat_q && sel_i == sel_q));

        an_end_needs_a_request:      assert (!ends || (cyc_i && stb_i && !rst_i));
        there_is_one_end:            assert (!(ack && err));
        an_end_needs_a_second_cycle: assert (!ends || waits_q);
        the_second_cycle_is_the_end: assert (!(waits_q && cyc_i && stb_i && !rst_i) || ends);
        nothing_waits_for_longer:    assert (!waited_q);
        a_write_is_its_end:          assert (write == (ends && we_i));
        with_its_address_and_data:   assert (!write || (waddr == adr_i && wdata == dat_i && wstrb == sel_i));
        its_error_is_the_end:        assert (!write || err == werror_i);
        a_read_is_of_its_address:    assert (raddr == adr_i);
        it_returns_what_was_read:    assert (!ends || we_i || (dat == answer_q && err == rerror_q));
    end
endmodule

`default_nettype wire
