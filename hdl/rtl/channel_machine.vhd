-- One channel; the twin of channel_machine.v, which says why.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.barrier_logic.all;

entity channel_machine is
  generic (
    N        : positive := 60;
    POWER_ON : std_logic := '0'  -- whether all nodes are members after power-on
  );
  port (
    clk_i       : in  std_logic;
    rst_i       : in  std_logic;
    line_i      : in  std_logic_vector(N - 1 downto 0);
    set_mask_i  : in  std_logic;
    mask_i      : in  std_logic_vector(N - 1 downto 0);
    set_limit_i : in  std_logic;
    limit_i     : in  std_logic_vector(31 downto 0);
    level_o     : out std_logic;
    mask_o      : out std_logic_vector(N - 1 downto 0);
    arrived_o   : out std_logic_vector(N - 1 downto 0);
    late_o      : out std_logic_vector(N - 1 downto 0)
  );
end entity;

architecture rtl of channel_machine is
  signal level_q : std_logic := '0';
  signal mask_q  : std_logic_vector(N - 1 downto 0) := (others => POWER_ON);
  signal late_q  : std_logic_vector(N - 1 downto 0) := (others => '0');
  signal limit_q : unsigned(31 downto 0) := (others => '0');
  signal count_q : unsigned(31 downto 0) := (others => '0');

  signal levels   : std_logic_vector(N - 1 downto 0);
  signal arrived  : std_logic_vector(N - 1 downto 0);
  signal missing  : std_logic_vector(N - 1 downto 0);
  signal toggle   : std_logic;
  signal waiting  : std_logic;
  signal at_limit : std_logic;
  signal expired  : std_logic;
begin
  levels   <= (others => level_q);
  arrived  <= (line_i xor levels) and mask_q;
  missing  <= mask_q and not arrived;
  toggle   <= any_high(mask_q) and not any_high(missing);
  waiting  <= any_high(arrived) and not toggle;
  at_limit <= not any_high(std_logic_vector(count_q) xor std_logic_vector(limit_q));
  expired  <= waiting and at_limit and any_high(std_logic_vector(limit_q));

  process (clk_i)
  begin
    if rising_edge(clk_i) then
      if rst_i = '1' then
        level_q <= '0';
      elsif toggle = '1' then
        level_q <= not level_q;
      end if;

      if rst_i = '1' then
        mask_q <= (others => POWER_ON);
      elsif set_mask_i = '1' then
        mask_q <= mask_i;
      end if;

      if rst_i = '1' or set_mask_i = '1' then
        limit_q <= (others => '0');
      elsif set_limit_i = '1' then
        limit_q <= unsigned(limit_i);
      end if;

      if rst_i = '1' or set_mask_i = '1' or set_limit_i = '1' or waiting = '0' then
        count_q <= (others => '0');
      elsif at_limit = '0' then
        count_q <= count_q + 1;
      end if;

      if rst_i = '1' or set_mask_i = '1' or set_limit_i = '1' then
        late_q <= (others => '0');
      elsif expired = '1' and any_high(late_q) = '0' then
        late_q <= missing;
      end if;
    end if;
  end process;

  level_o   <= level_q;
  mask_o    <= mask_q;
  arrived_o <= arrived;
  late_o    <= late_q;
end architecture;
