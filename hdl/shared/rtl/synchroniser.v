// Synchroniser: two or three flip-flops per wire bring an asynchronous level into this clock domain; none if the wires belong to it.
//
// The first flip-flop may become metastable if its input changes near the clock edge; it has a whole period to settle
// before the second one samples it. No other logic may read stage1_q.
// At 100 MHz and more, two stages can fail within minutes, see the table in README.md of hdl; a third stage squares that time.
// In the Rust model: Registers::stage1 and Registers::stage2.
`default_nettype none

module synchroniser #(
    parameter N      = 60,
    parameter STAGES = 2   // 0, 2 or 3
) (
    input  wire         clk_i,
    input  wire         rst_i,
    input  wire [N-1:0] level_i,
    output wire [N-1:0] level_o
);
    // An illegal parameter instantiates a missing module, so no tool elaborates the design.
    generate
        if (N < 1) begin : n_guard
            N_must_be_1_or_more refused ();
        end
        if (STAGES != 0 && STAGES != 2 && STAGES != 3) begin : stages_guard
            STAGES_must_be_0_2_or_3 refused ();
        end
    endgenerate

    // Power-on levels: FPGA configuration clears every flip-flop.
    // The attributes make Vivado keep the stages side by side, move no logic between them and infer no shift register; other tools
    // ignore them.
    (* ASYNC_REG = "TRUE", SHREG_EXTRACT = "NO" *)
    reg [N-1:0] stage1_q = {N{1'b0}};
    (* ASYNC_REG = "TRUE", SHREG_EXTRACT = "NO" *)
    reg [N-1:0] stage2_q = {N{1'b0}};

    always @(posedge clk_i) begin
        if (rst_i) begin
            stage1_q <= {N{1'b0}};
            stage2_q <= {N{1'b0}};
        end else begin
            stage1_q <= level_i;
            stage2_q <= stage1_q;
        end
    end

    generate
        if (STAGES == 3) begin : third
            (* ASYNC_REG = "TRUE", SHREG_EXTRACT = "NO" *)
            reg [N-1:0] stage3_q = {N{1'b0}};
            always @(posedge clk_i)
                stage3_q <= rst_i ? {N{1'b0}} : stage2_q;
            assign level_o = stage3_q;
        end else if (STAGES == 2) begin : second
            assign level_o = stage2_q;
        end else begin : none
            assign level_o = level_i;
            wire unused = |stage2_q;
        end
    endgenerate
endmodule

`default_nettype wire
