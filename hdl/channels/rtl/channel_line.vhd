-- Filter of one serial line, equivalent to channel_line.v, which explains it.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

entity channel_line is
  port (
    clk_i   : in  std_logic;
    rst_i   : in  std_logic;
    flush_i : in  std_logic;
    line_i  : in  std_logic;
    level_o : out std_logic
  );
end entity;

architecture rtl of channel_line is
  signal stage1_q : std_logic := '0';
  signal stage2_q : std_logic := '0';
  signal level_q  : std_logic := '0';
  signal run_q    : unsigned(1 downto 0) := "00";
begin
  process (clk_i)
  begin
    if rising_edge(clk_i) then
      if rst_i = '1' or flush_i = '1' then
        stage1_q <= '0';
        stage2_q <= '0';
        level_q  <= '0';
        run_q    <= "00";
      else
        stage1_q <= line_i;
        stage2_q <= stage1_q;
        if stage2_q = level_q then
          run_q <= "00";
        else
          run_q <= run_q + 1;
          if run_q = "11" then
            level_q <= stage2_q;
          end if;
        end if;
      end if;
    end if;
  end process;

  level_o <= level_q;
end architecture;
