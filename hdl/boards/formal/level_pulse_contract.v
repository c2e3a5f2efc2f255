// Contract of level_pulse: a level change outside of a pulse makes the output pair active for exactly WIDTH cycles, for any input.
`default_nettype none

module level_pulse_contract #(
    parameter [31:0] WIDTH = 32'd5
) (
    input wire clk_i,
    input wire level_i
);
    wire start, start_n;

    level_pulse #(.WIDTH(WIDTH)) dut (
        .clk_i     (clk_i),
        .level_i   (level_i),
        .start_o   (start),
        .start_n_o (start_n)
    );

    reg       level_q = 1'b0;
    reg       is_first_q = 1'b1;
    reg [7:0] left_q  = 8'd0;
    always @(posedge clk_i) begin
        is_first_q <= 1'b0;
        level_q    <= level_i;
        left_q     <= left_q != 8'd0 ? left_q - 8'd1 : level_i != level_q ? WIDTH[7:0] : 8'd0;
    end

    always @* begin
        a_change_starts_a_pulse_of_its_width: assert (start == (left_q != 8'd0));
        no_pulse_is_longer:                   assert (left_q <= WIDTH);
        the_other_pin_is_the_inverse:         assert (start_n == (!is_first_q && !start));
    end
endmodule

`default_nettype wire
