-- Barrier version 2, equivalent to channel_barrier.v, which explains it; `cargo test -p hdl` proves the equivalence.
library ieee;
use ieee.std_logic_1164.all;
use work.barrier_logic.all;

entity channel_barrier is
  generic (
    N          : positive range 1 to 64 := 60;
    C          : positive range 1 to 5 := 5;
    LEASE_BITS : positive range 4 to 31 := 24
  );
  port (
    clk_i     : in  std_logic;
    rst_i     : in  std_logic;
    arrive_i  : in  std_logic_vector(C * N - 1 downto 0);
    select_i  : in  std_logic_vector(N - 1 downto 0);
    clock_i   : in  std_logic_vector(N - 1 downto 0);
    data_i    : in  std_logic_vector(N - 1 downto 0);
    release_o : out std_logic_vector(C - 1 downto 0);
    last_o    : out std_logic_vector(N - 1 downto 0)
  );
end entity;

-- toggle_barrier.vhd explains the components and configurations.
architecture rtl of channel_barrier is
  component synchroniser
    generic (N : positive; STAGES : natural := 2);
    port (
      clk_i   : in  std_logic;
      rst_i   : in  std_logic;
      level_i : in  std_logic_vector(N - 1 downto 0);
      level_o : out std_logic_vector(N - 1 downto 0)
    );
  end component;

  component channel_machine
    generic (
      N        : positive;
      POWER_ON    : std_logic;
      EARLY_EDGES : positive := 2
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
  end component;

  component channel_line
    port (
      clk_i   : in  std_logic;
      rst_i   : in  std_logic;
      flush_i : in  std_logic;
      line_i  : in  std_logic;
      level_o : out std_logic
    );
  end component;

  component channel_arbiter
    generic (
      N          : positive;
      LEASE_BITS : positive
    );
    port (
      clk_i    : in  std_logic;
      rst_i    : in  std_logic;
      select_i : in  std_logic_vector(N - 1 downto 0);
      held_i   : in  std_logic;
      moves_i  : in  std_logic;
      grant_o  : out std_logic_vector(N - 1 downto 0)
    );
  end component;

  component channel_frame
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
  end component;

  component channel_command
    generic (
      N : positive;
      C : positive
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
  end component;

  for all : channel_line use entity work.channel_line(rtl);
  for all : channel_arbiter use entity work.channel_arbiter(rtl);
  for all : channel_frame use entity work.channel_frame(rtl);
  for all : channel_command use entity work.channel_command(rtl);

  -- After power-on all nodes are members of channel 0, and the other channels have no members.
  function power_on (channel : natural) return std_logic is
  begin
    if channel = 0 then
      return '1';
    end if;
    return '0';
  end function;

  signal mask, arrived, late, not_idle : std_logic_vector(C * N - 1 downto 0);
  signal counts                        : std_logic_vector(C * 16 - 1 downto 0);
  signal level, set_mask, set_limit    : std_logic_vector(C - 1 downto 0);
  signal drop, overdue                 : std_logic_vector(C - 1 downto 0);
  signal request, reply                : std_logic_vector(71 downto 0);

  signal grant        : std_logic_vector(N - 1 downto 0);
  signal flush        : std_logic;
  signal select_pin   : std_logic;
  signal clock_pin    : std_logic;
  signal data_pin     : std_logic;
  signal selected     : std_logic;
  signal clock        : std_logic;
  signal data         : std_logic;
  signal select_was_q : std_logic := '0';
  signal clock_was_q  : std_logic := '0';
  signal listening    : std_logic;
  signal moves        : std_logic;
  signal tick         : std_logic;
  signal execute      : std_logic;
  signal right        : std_logic;
  signal answer       : std_logic;
  signal last_release : std_logic;
begin
  channels : for k in 0 to C - 1 generate
    for all : synchroniser use entity work.synchroniser(rtl);
    for all : channel_machine use entity work.channel_machine(rtl);
    signal line   : std_logic_vector(N - 1 downto 0);
    signal levels : std_logic_vector(N - 1 downto 0);
  begin
    sync : synchroniser
      generic map (N => N)
      port map (clk_i => clk_i, rst_i => rst_i, level_i => arrive_i(k * N + N - 1 downto k * N), level_o => line);

    machine : channel_machine
      generic map (N => N, POWER_ON => power_on(k))
      port map (
        clk_i       => clk_i,
        rst_i       => rst_i,
        line_i      => line,
        set_mask_i  => set_mask(k),
        mask_i      => reply(N - 1 downto 0),
        set_limit_i => set_limit(k),
        limit_i     => request(31 downto 0),
        drop_i      => drop(k),
        level_o     => level(k),
        mask_o      => mask(k * N + N - 1 downto k * N),
        arrived_o   => arrived(k * N + N - 1 downto k * N),
        late_o      => late(k * N + N - 1 downto k * N),
        overdue_o   => overdue(k),
        expired_o   => counts(k * 16 + 7 downto k * 16),
        early_o     => counts(k * 16 + 15 downto k * 16 + 8)
      );

    levels <= (others => level(k));
    not_idle(k * N + N - 1 downto k * N) <= line xor levels;
  end generate;

  flush      <= not any_high(grant);
  select_pin <= any_high(select_i and grant);
  clock_pin  <= any_high(clock_i and grant);
  data_pin   <= any_high(data_i and grant);

  select_line : channel_line
    port map (clk_i => clk_i, rst_i => rst_i, flush_i => flush, line_i => select_pin, level_o => selected);

  clock_line : channel_line
    port map (clk_i => clk_i, rst_i => rst_i, flush_i => flush, line_i => clock_pin, level_o => clock);

  data_line : channel_line
    port map (clk_i => clk_i, rst_i => rst_i, flush_i => flush, line_i => data_pin, level_o => data);

  process (clk_i)
  begin
    if rising_edge(clk_i) then
      select_was_q <= selected and not flush and not rst_i;
      clock_was_q  <= clock and not flush and not rst_i;
    end if;
  end process;

  moves     <= clock xor clock_was_q;
  tick      <= select_was_q and clock and not clock_was_q;
  listening <= selected and not flush;

  arbiter : channel_arbiter
    generic map (N => N, LEASE_BITS => LEASE_BITS)
    port map (clk_i => clk_i, rst_i => rst_i, select_i => select_i, held_i => selected, moves_i => moves, grant_o => grant);

  frame : channel_frame
    port map (
      clk_i     => clk_i,
      rst_i     => rst_i,
      open_i    => listening,
      tick_i    => tick,
      data_i    => data,
      execute_o => execute,
      right_o   => right,
      request_o => request,
      reply_i   => reply,
      bit_o     => answer
    );

  command : channel_command
    generic map (N => N, C => C)
    port map (
      execute_i   => execute,
      right_i     => right,
      request_i   => request,
      node_i      => grant,
      mask_i      => mask,
      arrived_i   => arrived,
      late_i      => late,
      not_idle_i  => not_idle,
      overdue_i   => overdue,
      counts_i    => counts,
      reply_o     => reply,
      set_mask_o  => set_mask,
      set_limit_o => set_limit,
      drop_o      => drop
    );

  fifth : if C = 5 generate
    last_release <= level(C - 1);
  end generate;

  no_fifth : if C /= 5 generate
    last_release <= '0';
  end generate;

  -- Only the node that has the receiver gets the reply; all others get last_release.
  last : for k in 0 to N - 1 generate
    last_o(k) <= answer when grant(k) = '1' and listening = '1' else last_release;
  end generate;

  release_o <= level;
end architecture;
