-- Arbiter of the one serial receiver, equivalent to channel_arbiter.v, which explains it.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.barrier_logic.all;

entity channel_arbiter is
  generic (
    N          : positive := 60;
    LEASE_BITS : positive range 4 to 31 := 24
  );
  port (
    clk_i    : in  std_logic;
    rst_i    : in  std_logic;
    select_i : in  std_logic_vector(N - 1 downto 0);  -- asynchronous
    held_i   : in  std_logic;
    moves_i  : in  std_logic;
    grant_o  : out std_logic_vector(N - 1 downto 0)
  );
end entity;

architecture rtl of channel_arbiter is
  signal select1_q : std_logic_vector(N - 1 downto 0) := (others => '0');
  signal select2_q : std_logic_vector(N - 1 downto 0) := (others => '0');
  signal grant_q   : std_logic_vector(N - 1 downto 0) := (others => '0');
  signal blocked_q : std_logic_vector(N - 1 downto 0) := (others => '0');
  signal age_q     : unsigned(LEASE_BITS - 1 downto 0) := (others => '0');

  signal granted : std_logic;
  signal expired : std_logic;
  signal gone    : std_logic;
begin
  granted <= any_high(grant_q);
  expired <= granted and all_high(std_logic_vector(age_q));
  gone    <= not held_i and not any_high(select2_q and grant_q);

  process (clk_i)
    variable lost : std_logic_vector(N - 1 downto 0);
  begin
    if rising_edge(clk_i) then
      if rst_i = '1' then
        select1_q <= (others => '0');
        select2_q <= (others => '0');
        blocked_q <= (others => '0');
        grant_q   <= (others => '0');
      else
        lost      := (others => expired);
        select1_q <= select_i;
        select2_q <= select1_q;
        blocked_q <= (blocked_q and select2_q) or (grant_q and lost);
        if granted = '0' then
          grant_q <= lowest(select2_q and not blocked_q);
        elsif expired = '1' or gone = '1' then
          grant_q <= (others => '0');
        end if;
      end if;

      if rst_i = '1' or granted = '0' or moves_i = '1' then
        age_q <= (others => '0');
      else
        age_q <= age_q + 1;
      end if;
    end if;
  end process;

  grant_o <= grant_q;
end architecture;
