-- Frame of the serial protocol, equivalent to channel_frame.v, which explains it.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.barrier_logic.all;

entity channel_frame is
  port (
    clk_i     : in  std_logic;
    rst_i     : in  std_logic;
    open_i    : in  std_logic;
    tick_i    : in  std_logic;
    data_i    : in  std_logic;
    execute_o : out std_logic;
    right_o   : out std_logic;
    request_o : out std_logic_vector(71 downto 0);
    reply_i   : in  std_logic_vector(71 downto 0);
    bit_o     : out std_logic
  );
end entity;

architecture rtl of channel_frame is
  constant RECEIVE : std_logic_vector(1 downto 0) := "00";
  constant EXECUTE : std_logic_vector(1 downto 0) := "01";
  constant REPLY   : std_logic_vector(1 downto 0) := "10";
  constant OVER    : std_logic_vector(1 downto 0) := "11";

  -- generated from hdl/channels/frame.txt: format
  constant BODY_BITS  : unsigned(6 downto 0) := to_unsigned(72, 7);
  constant LAST       : unsigned(6 downto 0) := to_unsigned(87, 7);
  constant START      : std_logic_vector(15 downto 0) := "1111111111111111";
  constant POLYNOMIAL : std_logic_vector(15 downto 0) := "0001000000100001";
  -- end of the generated text

  signal phase_q : std_logic_vector(1 downto 0)  := RECEIVE;
  signal count_q : unsigned(6 downto 0)          := to_unsigned(0, 7);
  signal check_q : std_logic_vector(15 downto 0) := START;
  signal shift_q : std_logic_vector(71 downto 0) := (others => '0');

  signal in_body  : std_logic;
  signal replies  : std_logic;
  signal checked  : std_logic;
  signal feedback : std_logic_vector(15 downto 0);
  signal next_in  : std_logic;
begin
  in_body  <= '1' when count_q < BODY_BITS else '0';
  replies  <= '1' when phase_q = REPLY else '0';
  checked  <= shift_q(71) when replies = '1' else data_i;
  next_in  <= data_i and not replies;
  feedback <= POLYNOMIAL when (check_q(15) xor checked) = '1' else (others => '0');

  process (clk_i)
  begin
    if rising_edge(clk_i) then
      if rst_i = '1' or open_i = '0' then
        phase_q <= RECEIVE;
        count_q <= to_unsigned(0, 7);
        check_q <= START;
      elsif phase_q = EXECUTE then
        phase_q <= REPLY;
        check_q <= START;
      elsif tick_i = '1' and phase_q /= OVER then
        if replies = '1' and in_body = '0' then
          check_q <= check_q(14 downto 0) & '0';
        else
          check_q <= (check_q(14 downto 0) & '0') xor feedback;
        end if;
        if count_q = LAST then
          count_q <= to_unsigned(0, 7);
          if replies = '1' then
            phase_q <= OVER;
          else
            phase_q <= EXECUTE;
          end if;
        else
          count_q <= count_q + 1;
        end if;
      end if;

      if rst_i = '1' then
        shift_q <= (others => '0');
      elsif open_i = '1' and phase_q = EXECUTE then
        shift_q <= reply_i;
      elsif open_i = '1' and tick_i = '1' and in_body = '1' and phase_q /= OVER then
        shift_q <= shift_q(70 downto 0) & next_in;
      end if;
    end if;
  end process;

  execute_o <= '1' when open_i = '1' and phase_q = EXECUTE else '0';
  right_o   <= not any_high(check_q);
  request_o <= shift_q;
  bit_o     <= (replies and shift_q(71)) when in_body = '1' else (replies and check_q(15));
end architecture;
