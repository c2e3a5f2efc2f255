-- Level filter: SAMPLES successive samples make a level; equivalent to level_filter.v, which explains it.
library ieee;
use ieee.std_logic_1164.all;

entity level_filter is
  generic (
    N       : positive := 60;
    SAMPLES : positive range 1 to 256 := 4
  );
  port (
    clk_i   : in  std_logic;
    rst_i   : in  std_logic;
    level_i : in  std_logic_vector(N - 1 downto 0);
    level_o : out std_logic_vector(N - 1 downto 0)
  );
end entity;

architecture rtl of level_filter is
begin
  none : if SAMPLES = 1 generate
    level_o <= level_i;
  end generate;

  filter : if SAMPLES > 1 generate
    wires : for w in 0 to N - 1 generate
      signal held_q  : std_logic := '0';
      signal count_q : integer range 0 to SAMPLES - 1 := 0;
      signal differs : std_logic;
      signal level   : std_logic;
    begin
      differs <= level_i(w) xor held_q;
      level   <= level_i(w) when count_q = SAMPLES - 1 else held_q;

      process (clk_i)
      begin
        if rising_edge(clk_i) then
          if rst_i = '1' then
            held_q  <= '0';
            count_q <= 0;
          else
            held_q <= level;
            if differs = '1' and count_q /= SAMPLES - 1 then
              count_q <= count_q + 1;
            else
              count_q <= 0;
            end if;
          end if;
        end if;
      end process;

      level_o(w) <= level;
    end generate;
  end generate;
end architecture;
