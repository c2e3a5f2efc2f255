-- Start pulse of width_i cycles at a release, equivalent to start_pulse.v, which explains it.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

entity start_pulse is
  port (
    clk_i     : in  std_logic;
    rst_i     : in  std_logic;
    release_i : in  std_logic;
    width_i   : in  std_logic_vector(15 downto 0);
    invert_i  : in  std_logic;
    begins_o  : out std_logic;
    start_o   : out std_logic
  );
end entity;

architecture rtl of start_pulse is
  signal left_q    : unsigned(15 downto 0) := (others => '0');
  signal left      : unsigned(15 downto 0);
  signal start_q   : std_logic := '0';
  signal idle      : std_logic;
  signal has_width : std_logic;
  signal is_left   : std_logic;
begin
  idle      <= '1' when left_q = 0 else '0';
  has_width <= '0' when unsigned(width_i) = 0 else '1';
  is_left   <= '0' when left = 0 else '1';

  process (idle, left_q, width_i, release_i)
  begin
    left <= left_q - 1;
    if idle = '1' then
      left <= (others => '0');
      if release_i = '1' then
        left <= unsigned(width_i);
      end if;
    end if;
  end process;

  process (clk_i)
  begin
    if rising_edge(clk_i) then
      if rst_i = '1' then
        left_q  <= (others => '0');
        start_q <= '0';
      else
        left_q  <= left;
        start_q <= is_left xor invert_i;
      end if;
    end if;
  end process;

  begins_o <= idle and release_i and has_width;
  start_o  <= start_q;
end architecture;
