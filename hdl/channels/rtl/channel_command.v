// Rules for the requests of version 2, combinational: the reply to a request, and its changes of a channel's members or time limit.
//
// A refused request changes nothing. Operations and status numbers: fpga-model, channels::frame.
`default_nettype none

module channel_command #(
    parameter N = 60,
    parameter C = 5
) (
    input  wire           execute_i,
    input  wire           right_i,      // the checksum of the request is right
    input  wire [71:0]    request_i,    // operation, channel, argument
    input  wire [N-1:0]   node_i,       // the requesting node
    input  wire [C*N-1:0] mask_i,       // of all channels, channel 0 lowest
    input  wire [C*N-1:0] arrived_i,
    input  wire [C*N-1:0] late_i,
    input  wire [C*N-1:0] not_idle_i,   // lines that are not at their channel's level
    input  wire [C-1:0]   overdue_i,    // barriers that have reached their limit
    input  wire [C*16-1:0] counts_i,    // early releases and expired limits, 8 bits each
    output wire [71:0]    reply_o,      // status, channel, value
    output wire [C-1:0]   set_mask_o,
    output wire [C-1:0]   set_limit_o,
    output wire [C-1:0]   drop_o
);
    // An illegal parameter instantiates a missing module, so no tool elaborates the design.
    generate
        if (N < 1 || N > 64) begin : n_guard
            N_must_be_1_to_64 refused ();
        end
        if (C < 1 || C > 5) begin : c_guard
            C_must_be_1_to_5 refused ();
        end
    endgenerate

    // generated from hdl/channels/frame.txt: operations
    localparam [3:0] IDENTIFY     = 4'd1;
    localparam [3:0] SET_MASK     = 4'd2;
    localparam [3:0] SET_LIMIT    = 4'd3;
    localparam [3:0] READ_MASK    = 4'd4;
    localparam [3:0] READ_ARRIVED = 4'd5;
    localparam [3:0] READ_LATE    = 4'd6;
    localparam [3:0] DROP         = 4'd7;
    localparam [3:0] READ_COUNTS  = 4'd8;
    // end of the generated text

    // generated from hdl/channels/frame.txt: statuses
    localparam [3:0] DONE              = 4'd1;
    localparam [3:0] BAD_CHECK         = 4'd2;
    localparam [3:0] NO_SUCH_OPERATION = 4'd3;
    localparam [3:0] NO_SUCH_CHANNEL   = 4'd4;
    localparam [3:0] BAD_VALUE         = 4'd5;
    localparam [3:0] NOT_MEMBER        = 4'd6;
    localparam [3:0] TAKEN             = 4'd7;
    localparam [3:0] NOT_IDLE          = 4'd8;
    localparam [3:0] NOT_LATE          = 4'd9;
    localparam [3:0] MINORITY          = 4'd10;
    // end of the generated text

    // generated from hdl/channels/frame.txt: version
    localparam [7:0] VERSION = 8'd2;
    // end of the generated text

    localparam [31:0] ALL_NODES    = N;
    localparam [31:0] ALL_CHANNELS = C;
    localparam [7:0]  NODES        = ALL_NODES[7:0];
    localparam [7:0]  CHANNELS     = ALL_CHANNELS[7:0];

    // generated from hdl/channels/frame.txt: request
    wire [3:0]  operation = request_i[71:68];
    wire [3:0]  channel   = request_i[67:64];
    wire [63:0] argument  = request_i[63:0];
    // end of the generated text
    wire        exists    = {4'd0, channel} < CHANNELS;

    // State of the addressed channel, zero-extended to 64 bits like the argument.
    reg  [63:0] mask, arrived, late, not_idle;
    reg  [15:0] counts;
    reg         overdue;
    integer     c;
    always @* begin
        mask     = 64'd0;
        arrived  = 64'd0;
        late     = 64'd0;
        not_idle = 64'd0;
        counts   = 16'd0;
        overdue  = 1'b0;
        for (c = 0; c < C; c = c + 1)
            if (channel == c[3:0]) begin
                mask[N-1:0]     = mask_i[c*N +: N];
                arrived[N-1:0]  = arrived_i[c*N +: N];
                late[N-1:0]     = late_i[c*N +: N];
                not_idle[N-1:0] = not_idle_i[c*N +: N];
                counts          = counts_i[c*16 +: 16];
                overdue         = overdue_i[c];
            end
    end

    wire [63:0] nodes  = {64{1'b1}} >> (64 - N);
    reg  [63:0] me;
    always @* begin
        me = 64'd0;
        me[N-1:0] = node_i;
    end

    wire [63:0] not_nodes = argument & ~nodes;
    wire [63:0] unquiet   = not_idle & (mask | argument);
    // The node must be a new member to take a free channel, and a present member to free a channel.
    wire [63:0] concerned = (|argument) ? argument : mask;
    wire        member    = |(mask & me);

    // Members may be dropped if the limit has expired and they are exactly the missing ones; they must be fewer than the arrived ones.
    wire        awaited = overdue && argument == (mask & ~arrived);

    // Counts the ones of a 64-bit word, in groups of four, which takes fewer adders than one bit at a time.
    function [6:0] high;
        input [63:0] lines;
        integer      n;
        reg   [5:0]  four;
        begin
            high = 7'd0;
            for (n = 0; n < 64; n = n + 4) begin
                four = {5'd0, lines[n]} + {5'd0, lines[n+1]} + {5'd0, lines[n+2]} + {5'd0, lines[n+3]};
                high = high + {1'b0, four};
            end
        end
    endfunction

    wire [6:0] stay = high(arrived);
    wire [6:0] go   = high(argument & nodes);

    reg [3:0]  status;
    reg [63:0] value;
    reg        set_mask, set_limit, drop;
    always @* begin
        status    = DONE;
        value     = 64'd0;
        set_mask  = 1'b0;
        set_limit = 1'b0;
        drop      = 1'b0;
        if (!right_i)
            status = BAD_CHECK;
        else if (operation < IDENTIFY || operation > READ_COUNTS)
            status = NO_SUCH_OPERATION;
        else if (operation == IDENTIFY)
            value = {40'd0, VERSION, NODES, CHANNELS};
        else if (!exists)
            status = NO_SUCH_CHANNEL;
        else case (operation)
            READ_MASK:
                value = mask;
            READ_ARRIVED:
                value = arrived;
            READ_LATE:
                value = late;
            READ_COUNTS:
                value = {48'd0, counts};
            DROP:
                if (!member) begin
                    status = NOT_MEMBER;
                    value  = mask;
                end else begin
                    value  = arrived;
                    status = !awaited ? NOT_LATE : stay <= go ? MINORITY : DONE;
                    drop   = awaited && stay > go;
                end
            SET_LIMIT:
                if (|argument[63:32]) begin
                    status = BAD_VALUE;
                    value  = {argument[63:32], 32'd0};
                end else if (!member) begin
                    status = NOT_MEMBER;
                    value  = mask;
                end else begin
                    value     = argument;
                    set_limit = 1'b1;
                end
            SET_MASK:
                if (|not_nodes) begin
                    status = BAD_VALUE;
                    value  = not_nodes;
                end else if ((|concerned) && !(|(concerned & me))) begin
                    status = NOT_MEMBER;
                    value  = mask;
                end else if (argument == mask) begin
                    value = mask;
                end else if ((|argument) && (|mask)) begin
                    status = TAKEN;
                    value  = mask;
                end else if (|unquiet) begin
                    status = NOT_IDLE;
                    value  = unquiet;
                end else begin
                    value    = argument;
                    set_mask = 1'b1;
                end
            // Never reached (handled above), but a case without a default would infer a latch.
            // verilator coverage_off
            default:
                status = NO_SUCH_OPERATION;
            // verilator coverage_on
        endcase
    end

    genvar k;
    generate
        for (k = 0; k < C; k = k + 1) begin : strobe
            assign set_mask_o[k]  = execute_i && set_mask  && channel == k;
            assign set_limit_o[k] = execute_i && set_limit && channel == k;
            assign drop_o[k]      = execute_i && drop      && channel == k;
        end
    endgenerate

    assign reply_o = {status, channel, value};
endmodule

`default_nettype wire
