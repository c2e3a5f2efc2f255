-- One channel of version 2, equivalent to channel_machine.v, which explains it.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.barrier_logic.all;

entity channel_machine is
  generic (
    N        : positive := 60;
    POWER_ON : std_logic := '0';  -- whether all nodes are members after power-on
    EARLY_EDGES : positive range 1 to 2 := 2
  );
  port (
    clk_i       : in  std_logic;
    rst_i       : in  std_logic;
    line_i      : in  std_logic_vector(N - 1 downto 0);
    set_mask_i  : in  std_logic;
    mask_i      : in  std_logic_vector(N - 1 downto 0);
    set_limit_i : in  std_logic;
    limit_i     : in  std_logic_vector(31 downto 0);
    drop_i      : in  std_logic;
    toggle_o    : out std_logic;
    expires_o   : out std_logic;
    early_now_o : out std_logic;
    level_o     : out std_logic;
    mask_o      : out std_logic_vector(N - 1 downto 0);
    arrived_o   : out std_logic_vector(N - 1 downto 0);
    late_o      : out std_logic_vector(N - 1 downto 0);
    limit_o     : out std_logic_vector(31 downto 0);
    overdue_o   : out std_logic;
    expired_o   : out std_logic_vector(7 downto 0);
    early_o     : out std_logic_vector(7 downto 0)
  );
end entity;

architecture rtl of channel_machine is
  signal level_q : std_logic := '0';
  signal mask_q  : std_logic_vector(N - 1 downto 0) := (others => POWER_ON);
  signal late_q  : std_logic_vector(N - 1 downto 0) := (others => '0');
  signal limit_q : unsigned(31 downto 0) := (others => '0');
  signal count_q : unsigned(31 downto 0) := (others => '0');

  signal expired_q  : unsigned(7 downto 0) := (others => '0');
  signal early_q    : unsigned(7 downto 0) := (others => '0');
  signal overdue_q  : std_logic := '0';
  signal toggled1_q : std_logic := '0';
  signal toggled2_q : std_logic := '0';

  signal levels   : std_logic_vector(N - 1 downto 0);
  signal arrived  : std_logic_vector(N - 1 downto 0);
  signal missing  : std_logic_vector(N - 1 downto 0);
  signal toggle   : std_logic;
  signal waiting  : std_logic;
  signal at_limit : std_logic;
  signal overdue  : std_logic;
  signal early    : std_logic;
begin
  levels   <= (others => level_q);
  arrived  <= (line_i xor levels) and mask_q;
  missing  <= mask_q and not arrived;
  toggle   <= any_high(mask_q) and not any_high(missing);
  waiting  <= any_high(arrived) and not toggle;
  at_limit <= not any_high(std_logic_vector(count_q) xor std_logic_vector(limit_q));
  overdue  <= waiting and at_limit and any_high(std_logic_vector(limit_q));
  two_edges : if EARLY_EDGES = 2 generate
    early <= any_high(arrived) and (toggled1_q or toggled2_q);
  end generate;
  one_edge : if EARLY_EDGES = 1 generate
    early <= any_high(arrived) and toggled1_q;
  end generate;

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
      elsif set_mask_i = '1' or drop_i = '1' then
        mask_q <= mask_i;
      end if;

      if rst_i = '1' or set_mask_i = '1' then
        limit_q <= (others => '0');
      elsif set_limit_i = '1' then
        limit_q <= unsigned(limit_i);
      end if;

      if rst_i = '1' or set_mask_i = '1' or set_limit_i = '1' or drop_i = '1' or waiting = '0' then
        count_q <= (others => '0');
      elsif at_limit = '0' then
        count_q <= count_q + 1;
      end if;

      if rst_i = '1' or set_mask_i = '1' or set_limit_i = '1' or drop_i = '1' then
        late_q <= (others => '0');
      elsif overdue = '1' and any_high(late_q) = '0' then
        late_q <= missing;
      end if;

      if rst_i = '1' or set_mask_i = '1' then
        expired_q <= (others => '0');
      elsif overdue = '1' and overdue_q = '0' and any_high(not std_logic_vector(expired_q)) = '1' then
        expired_q <= expired_q + 1;
      end if;

      if rst_i = '1' or set_mask_i = '1' then
        early_q <= (others => '0');
      elsif early = '1' and any_high(not std_logic_vector(early_q)) = '1' then
        early_q <= early_q + 1;
      end if;

      overdue_q  <= overdue and not rst_i;
      toggled1_q <= toggle and not rst_i;
      toggled2_q <= toggled1_q and not any_high(arrived) and not rst_i;
    end if;
  end process;

  toggle_o    <= toggle;
  expires_o   <= overdue and not overdue_q;
  early_now_o <= early;

  level_o   <= level_q;
  mask_o    <= mask_q;
  arrived_o <= arrived;
  late_o    <= late_q;
  limit_o   <= std_logic_vector(limit_q);
  overdue_o <= overdue;
  expired_o <= std_logic_vector(expired_q);
  early_o   <= std_logic_vector(early_q);
end architecture;
