-- Rules for the requests of version 2 (the reply to a request and the changes that it makes), equivalent to channel_command.v, which explains them.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.barrier_logic.all;

entity channel_command is
  generic (
    N : positive range 1 to 64 := 60;
    C : positive range 1 to 5 := 5
  );
  port (
    execute_i   : in  std_logic;
    right_i     : in  std_logic;
    request_i   : in  std_logic_vector(71 downto 0);
    node_i      : in  std_logic_vector(N - 1 downto 0);
    mask_i      : in  std_logic_vector(C * N - 1 downto 0);
    arrived_i   : in  std_logic_vector(C * N - 1 downto 0);
    late_i      : in  std_logic_vector(C * N - 1 downto 0);
    not_idle_i  : in  std_logic_vector(C * N - 1 downto 0);
    overdue_i   : in  std_logic_vector(C - 1 downto 0);
    counts_i    : in  std_logic_vector(C * 16 - 1 downto 0);
    reply_o     : out std_logic_vector(71 downto 0);
    set_mask_o  : out std_logic_vector(C - 1 downto 0);
    set_limit_o : out std_logic_vector(C - 1 downto 0);
    drop_o      : out std_logic_vector(C - 1 downto 0)
  );
end entity;

architecture rtl of channel_command is
  subtype code is unsigned(3 downto 0);
  subtype word is std_logic_vector(63 downto 0);

  -- generated from hdl/channels/frame.txt: operations
  constant IDENTIFY     : code := "0001";
  constant SET_MASK     : code := "0010";
  constant SET_LIMIT    : code := "0011";
  constant READ_MASK    : code := "0100";
  constant READ_ARRIVED : code := "0101";
  constant READ_LATE    : code := "0110";
  constant DROP         : code := "0111";
  constant READ_COUNTS  : code := "1000";
  -- end of the generated text

  -- generated from hdl/channels/frame.txt: statuses
  constant DONE              : code := "0001";
  constant BAD_CHECK         : code := "0010";
  constant NO_SUCH_OPERATION : code := "0011";
  constant NO_SUCH_CHANNEL   : code := "0100";
  constant BAD_VALUE         : code := "0101";
  constant NOT_MEMBER        : code := "0110";
  constant TAKEN             : code := "0111";
  constant NOT_IDLE          : code := "1000";
  constant NOT_LATE          : code := "1001";
  constant MINORITY          : code := "1010";
  -- end of the generated text

  -- generated from hdl/channels/frame.txt: version
  constant VERSION : natural := 2;
  -- end of the generated text

  -- The part of a vector that belongs to the requested channel, extended to 64 bits for every N.
  function of_channel (all_of_them : std_logic_vector; channel : code) return std_logic_vector is
    variable result : word := (others => '0');
  begin
    for k in 0 to C - 1 loop
      if channel = to_unsigned(k, 4) then
        result(N - 1 downto 0) := all_of_them(k * N + N - 1 downto k * N);
      end if;
    end loop;
    return result;
  end function;

  -- Returns the number of high bits.
  function count_high (levels : word) return unsigned is
    variable result : unsigned(6 downto 0) := (others => '0');
  begin
    for k in 0 to N - 1 loop
      if levels(k) = '1' then
        result := result + 1;
      end if;
    end loop;
    return result;
  end function;

  signal operation : code;
  signal channel   : code;
  signal argument  : word;
  signal set_mask_now  : std_logic;
  signal set_limit_now : std_logic;
  signal drop_now      : std_logic;
begin
  -- generated from hdl/channels/frame.txt: request
  operation <= unsigned(request_i(71 downto 68));
  channel   <= unsigned(request_i(67 downto 64));
  argument  <= request_i(63 downto 0);
  -- end of the generated text

  process (right_i, request_i, operation, channel, argument, node_i, mask_i, arrived_i, late_i, not_idle_i, overdue_i, counts_i)
    variable mask, not_nodes, unquiet, concerned, me, value : word;
    variable arrived : word;
    variable status : code;
    variable overdue : std_logic;
  begin
    mask := of_channel(mask_i, channel);
    me   := (others => '0');
    me(N - 1 downto 0) := node_i;
    not_nodes := argument;
    not_nodes(N - 1 downto 0) := (others => '0');
    unquiet   := of_channel(not_idle_i, channel) and (mask or argument);
    if any_high(argument) = '1' then
      concerned := argument;
    else
      concerned := mask;
    end if;

    arrived  := of_channel(arrived_i, channel);
    overdue  := '0';
    for k in 0 to C - 1 loop
      if channel = to_unsigned(k, 4) then
        overdue := overdue_i(k);
      end if;
    end loop;
    status := DONE;
    value  := (others => '0');
    set_mask_now  <= '0';
    set_limit_now <= '0';
    drop_now      <= '0';
    if right_i = '0' then
      status := BAD_CHECK;
    elsif operation < IDENTIFY or operation > READ_COUNTS then
      status := NO_SUCH_OPERATION;
    elsif operation = IDENTIFY then
      value(23 downto 16) := std_logic_vector(to_unsigned(VERSION, 8));
      value(15 downto 8)  := std_logic_vector(to_unsigned(N, 8));
      value(7 downto 0)   := std_logic_vector(to_unsigned(C, 8));
    elsif channel >= C then
      status := NO_SUCH_CHANNEL;
    elsif operation = READ_MASK then
      value := mask;
    elsif operation = READ_ARRIVED then
      value := arrived;
    elsif operation = READ_LATE then
      value := of_channel(late_i, channel);
    elsif operation = READ_COUNTS then
      for k in 0 to C - 1 loop
        if channel = to_unsigned(k, 4) then
          value(15 downto 0) := counts_i(k * 16 + 15 downto k * 16);
        end if;
      end loop;
    elsif operation = DROP then
      if any_high(mask and me) = '0' then
        status := NOT_MEMBER;
        value  := mask;
      else
        value := arrived;
        if overdue = '0' or any_high(argument xor (mask and not arrived)) = '1' then
          status := NOT_LATE;
        elsif count_high(arrived) <= count_high(argument) then
          status := MINORITY;
        else
          drop_now <= '1';
        end if;
      end if;
    elsif operation = SET_LIMIT then
      if any_high(argument(63 downto 32)) = '1' then
        status := BAD_VALUE;
        value(63 downto 32) := argument(63 downto 32);
      elsif any_high(mask and me) = '0' then
        status := NOT_MEMBER;
        value  := mask;
      else
        value := argument;
        set_limit_now <= '1';
      end if;
    else
      if any_high(not_nodes) = '1' then
        status := BAD_VALUE;
        value  := not_nodes;
      elsif any_high(concerned) = '1' and any_high(concerned and me) = '0' then
        status := NOT_MEMBER;
        value  := mask;
      elsif any_high(argument xor mask) = '0' then
        value := mask;
      elsif any_high(argument) = '1' and any_high(mask) = '1' then
        status := TAKEN;
        value  := mask;
      elsif any_high(unquiet) = '1' then
        status := NOT_IDLE;
        value  := unquiet;
      else
        value := argument;
        set_mask_now <= '1';
      end if;
    end if;
    reply_o <= std_logic_vector(status) & request_i(67 downto 64) & value;
  end process;

  strobe : for k in 0 to C - 1 generate
    set_mask_o(k)  <= execute_i and set_mask_now when channel = to_unsigned(k, 4) else '0';
    set_limit_o(k) <= execute_i and set_limit_now when channel = to_unsigned(k, 4) else '0';
    drop_o(k)      <= execute_i and drop_now when channel = to_unsigned(k, 4) else '0';
  end generate;
end architecture;
