// Frame of the serial protocol: receives 88 bits, executes the request in one edge, sends 88 bits; a closed session clears all state.
//
// At each rise of the clock one bit is read and the next bit is driven. The check is CRC-16/IBM-3740 over the 72 bits of the body;
// over all 88 bits of a correct frame it is 0. In the Rust model: channels::Serial and channels::frame.
`default_nettype none

module channel_frame (
    input  wire        clk_i,
    input  wire        rst_i,
    input  wire        open_i,      // a node has the receiver and its select is high
    input  wire        tick_i,      // that node's clock has risen
    input  wire        data_i,
    output wire        execute_o,   // the request is executed at this edge
    output wire        right_o,     // the request's check is right
    output wire [71:0] request_o,   // operation, channel, argument
    input  wire [71:0] reply_i,     // status, channel, value: read at the edge of execute_o
    output wire        bit_o
);
    localparam [1:0] RECEIVE = 2'd0;
    localparam [1:0] EXECUTE = 2'd1;
    localparam [1:0] REPLY   = 2'd2;
    localparam [1:0] OVER    = 2'd3;

    // generated from hdl/channels/frame.txt: format
    localparam [6:0]  BODY_BITS  = 7'd72;
    localparam [6:0]  LAST       = 7'd87;
    localparam [15:0] START      = 16'hffff;
    localparam [15:0] POLYNOMIAL = 16'h1021;
    // end of the generated text

    reg [1:0]  phase_q = RECEIVE;
    reg [6:0]  count_q = 7'd0;
    reg [15:0] check_q = START;
    reg [71:0] shift_q = 72'd0;

    wire body    = count_q < BODY_BITS;
    wire replies = phase_q == REPLY;
    wire checked = replies ? shift_q[71] : data_i;
    wire [15:0] check_next = {check_q[14:0], 1'b0} ^ (POLYNOMIAL & {16{check_q[15] ^ checked}});

    always @(posedge clk_i) begin
        if (rst_i || !open_i) begin
            phase_q <= RECEIVE;
            count_q <= 7'd0;
            check_q <= START;
        end else if (phase_q == EXECUTE) begin
            phase_q <= REPLY;
            check_q <= START;
        end else if (tick_i && phase_q != OVER) begin
            // In a reply the computed check is shifted out; in a request the received check enters the computation.
            check_q <= (replies && !body) ? {check_q[14:0], 1'b0} : check_next;
            count_q <= (count_q == LAST) ? 7'd0 : count_q + 7'd1;
            if (count_q == LAST)
                phase_q <= replies ? OVER : EXECUTE;
        end
    end

    always @(posedge clk_i) begin
        if (rst_i)
            shift_q <= 72'd0;
        else if (open_i && phase_q == EXECUTE)
            shift_q <= reply_i;
        else if (open_i && tick_i && body && phase_q != OVER)
            shift_q <= {shift_q[70:0], replies ? 1'b0 : data_i};
    end

    assign execute_o = open_i && phase_q == EXECUTE;
    assign right_o   = ~|check_q;
    assign request_o = shift_q;
    assign bit_o     = replies && (body ? shift_q[71] : check_q[15]);
endmodule

`default_nettype wire
