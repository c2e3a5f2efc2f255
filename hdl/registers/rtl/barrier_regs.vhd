-- The barrier as a register block, equivalent to barrier_regs.v, which explains it; `cargo test -p hdl` proves the equivalence.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.barrier_logic.all;

entity barrier_regs is
  generic (
    N        : positive range 1 to 64 := 4;
    G        : positive range 1 to 8 := 1;
    SYNC     : natural range 0 to 3 := 2;   -- 0, 2 or 3
    STRIDE   : positive range 6 to 12 := 6;
    STAMPS   : natural range 0 to 1 := 1;
    PULSE    : natural range 0 to 1 := 1;
    CLOCK_HZ : natural := 0
  );
  port (
    clk_i        : in  std_logic;
    rst_i        : in  std_logic;
    raddr_i      : in  std_logic_vector(18 downto 0);
    rdata_o      : out std_logic_vector(31 downto 0);
    rerror_o     : out std_logic;
    write_i      : in  std_logic;
    waddr_i      : in  std_logic_vector(18 downto 0);
    wdata_i      : in  std_logic_vector(31 downto 0);
    wstrb_i      : in  std_logic_vector(3 downto 0);
    werror_o     : out std_logic;
    node_i       : in  std_logic_vector(G * N - 1 downto 0);
    enter_i      : in  std_logic_vector(G * N - 1 downto 0);
    level_o      : out std_logic_vector(G - 1 downto 0);
    release_o    : out std_logic_vector(G * N - 1 downto 0);
    wake_o       : out std_logic_vector(N - 1 downto 0);
    irq_o        : out std_logic;
    start_o      : out std_logic;
    start_time_o : out std_logic_vector(31 downto 0)
  );
end entity;

-- toggle_barrier.vhd explains the components and configurations.
architecture rtl of barrier_regs is
  component synchroniser
    generic (N : positive; STAGES : natural);
    port (
      clk_i   : in  std_logic;
      rst_i   : in  std_logic;
      level_i : in  std_logic_vector(N - 1 downto 0);
      level_o : out std_logic_vector(N - 1 downto 0)
    );
  end component;

  component channel_machine
    generic (
      N           : positive;
      POWER_ON    : std_logic := '0';
      EARLY_EDGES : positive
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

  component start_pulse
    port (
      clk_i     : in  std_logic;
      rst_i     : in  std_logic;
      release_i : in  std_logic;
      width_i   : in  std_logic_vector(15 downto 0);
      invert_i  : in  std_logic;
      begins_o  : out std_logic;
      start_o   : out std_logic
    );
  end component;

  for all : synchroniser use entity work.synchroniser(rtl);

  -- generated from hdl/registers/registers.txt: constants
  constant IDENTITY           : std_logic_vector(31 downto 0) := x"52414254";
  constant VERSION            : std_logic_vector(31 downto 0) := x"00010100";
  constant GROUP_BASE         : natural := 16#0100#;
  constant NODE_BASE          : natural := 16#1000#;
  constant GLOBAL_ID          : natural := 0;
  constant GLOBAL_VERSION     : natural := 1;
  constant GLOBAL_CAPS        : natural := 2;
  constant GLOBAL_SIZES       : natural := 3;
  constant GLOBAL_CLOCK_HZ    : natural := 4;
  constant GLOBAL_SCRATCH     : natural := 5;
  constant GLOBAL_CTRL        : natural := 6;
  constant GLOBAL_INTR_STATE  : natural := 8;
  constant GLOBAL_INTR_ENABLE : natural := 9;
  constant GLOBAL_INTR_TEST   : natural := 10;
  constant GLOBAL_TIME_LO     : natural := 12;
  constant GLOBAL_TIME_HI     : natural := 13;
  constant GLOBAL_PULSE       : natural := 14;
  constant GLOBAL_START       : natural := 15;
  constant GROUP_MASK0        : natural := 0;
  constant GROUP_MASK1        : natural := 1;
  constant GROUP_ARRIVED0     : natural := 4;
  constant GROUP_ARRIVED1     : natural := 5;
  constant GROUP_LATE0        : natural := 8;
  constant GROUP_LATE1        : natural := 9;
  constant GROUP_STATUS       : natural := 12;
  constant GROUP_RELEASES     : natural := 13;
  constant GROUP_LIMIT        : natural := 14;
  constant GROUP_COUNTS       : natural := 15;
  constant GROUP_FIRST        : natural := 16;
  constant GROUP_LAST         : natural := 18;
  constant GROUP_ACTION       : natural := 22;
  constant NODE_ARRIVE        : natural := 0;
  constant NODE_LEVEL         : natural := 1;
  constant NODE_DONE          : natural := 2;
  constant NODE_INTR_STATE    : natural := 4;
  constant NODE_INTR_ENABLE   : natural := 5;
  constant NODE_INTR_TEST     : natural := 6;
  constant NODE_TOGGLE        : natural := 11;
  -- end of the generated text

  -- Page size and first page of the nodes in units of 64 bytes; first group in units of 128 bytes.
  constant PAGE  : natural := 2 ** (STRIDE - 6);
  constant PAGES : natural := NODE_BASE / 64;
  constant SETS  : natural := GROUP_BASE / 128;

  function mask_of_groups return std_logic_vector is
    variable result : std_logic_vector(7 downto 0) := (others => '0');
  begin
    for k in 0 to G - 1 loop
      result(k) := '1';
    end loop;
    return result;
  end function;

  constant ALL_GROUPS : std_logic_vector(7 downto 0) := mask_of_groups;
  constant NODE_INTR  : std_logic_vector(15 downto 0) := ALL_GROUPS & ALL_GROUPS;
  constant INTR       : std_logic_vector(24 downto 0) := '1' & ALL_GROUPS & ALL_GROUPS & ALL_GROUPS;

  -- Only one return statement: `ghdl --synth` 2.0.0 writes an X for each path that returns earlier.
  function bit_of (condition : boolean) return std_logic is
    variable result : std_logic := '0';
  begin
    if condition then
      result := '1';
    end if;
    return result;
  end function;

  -- Returns the value as a word. Reads are a chain of ifs, each of which assigns a whole word: in a case,
  -- `ghdl --synth` 2.0.0 omits the branch `others` and confuses parts of constants.
  function word_of (value : std_logic_vector) return std_logic_vector is
    variable result : std_logic_vector(31 downto 0) := (others => '0');
  begin
    result(value'length - 1 downto 0) := value;
    return result;
  end function;

  function word_of (value : std_logic) return std_logic_vector is
    variable result : std_logic_vector(31 downto 0) := (others => '0');
  begin
    result(0) := value;
    return result;
  end function;

  -- Returns the operand if the gate is high, else zeros.
  function gated (value : std_logic_vector; gate : std_logic) return std_logic_vector is
    variable result : std_logic_vector(value'range);
  begin
    for k in value'range loop
      result(k) := value(k) and gate;
    end loop;
    return result;
  end function;

  -- A rule that the range of one generic cannot express is checked by the range of a constant.
  constant SYNC_IS_0_2_OR_3    : natural range 0 to 0 := boolean'pos(SYNC = 1);
  constant SYNC_IS_3_AT_100MHZ : natural range 0 to 0 := boolean'pos(SYNC = 2 and CLOCK_HZ >= 100000000);

  signal whole, none      : std_logic;
  signal global_write     : std_logic;
  signal global_word      : natural range 0 to 15;
  signal group_word       : natural range 0 to 31;
  signal node_word        : natural range 0 to 15;
  signal group_here       : std_logic_vector(G - 1 downto 0);
  signal group_write      : std_logic_vector(G - 1 downto 0);
  signal node_here        : std_logic_vector(N - 1 downto 0);
  signal node_write       : std_logic_vector(N - 1 downto 0);

  signal enable_q      : std_logic := '0';
  signal scratch_q     : std_logic_vector(31 downto 0) := (others => '0');
  signal intr_q        : std_logic_vector(24 downto 0) := (others => '0');
  signal intr_enable_q : std_logic_vector(24 downto 0) := (others => '0');
  signal events        : std_logic_vector(24 downto 0);
  signal time_q        : unsigned(63 downto 0) := (others => '0');
  signal pulse_q       : std_logic_vector(24 downto 0) := (others => '0');
  signal start_time_q  : std_logic_vector(31 downto 0) := (others => '0');
  signal starts        : std_logic;
  signal begins        : std_logic;

  signal releases, expires, early, refusals : std_logic_vector(G - 1 downto 0);
  signal level, overdue, busy               : std_logic_vector(G - 1 downto 0);
  signal sets_mask, sets_limit, drops       : std_logic_vector(G - 1 downto 0);
  signal refused                            : std_logic;

  signal arrive_q       : std_logic_vector(G * N - 1 downto 0) := (others => '0');
  signal arrive         : std_logic_vector(G * N - 1 downto 0);
  signal wires, line    : std_logic_vector(G * N - 1 downto 0);
  signal counted        : std_logic_vector(G * N - 1 downto 0);
  signal mask, arrived  : std_logic_vector(G * N - 1 downto 0);
  signal late, set_mask : std_logic_vector(G * N - 1 downto 0);
  signal release_q      : std_logic_vector(G * N - 1 downto 0) := (others => '0');
  signal limits         : std_logic_vector(G * 8 - 1 downto 0);
  signal earlies        : std_logic_vector(G * 8 - 1 downto 0);
  signal limit          : std_logic_vector(G * 32 - 1 downto 0);
  signal first_q        : std_logic_vector(G * 32 - 1 downto 0) := (others => '0');
  signal last_q         : std_logic_vector(G * 32 - 1 downto 0) := (others => '0');
  signal began_q        : std_logic_vector(G * 32 - 1 downto 0) := (others => '0');
  signal busy_q         : std_logic_vector(G - 1 downto 0) := (others => '0');
  signal released_q     : std_logic_vector(G * 32 - 1 downto 0) := (others => '0');

  signal node_intr_q   : std_logic_vector(16 * N - 1 downto 0) := (others => '0');
  signal node_enable_q : std_logic_vector(16 * N - 1 downto 0) := (others => '0');

  signal writable : std_logic;
begin
  ---------------------------------------------------------------------------------------------------- decoding

  whole        <= wstrb_i(3) and wstrb_i(2) and wstrb_i(1) and wstrb_i(0);
  none         <= not any_high(wstrb_i);
  global_write <= write_i and whole and bit_of(unsigned(waddr_i(18 downto 6)) = 0);
  global_word  <= to_integer(unsigned(waddr_i(5 downto 2)));
  group_word   <= to_integer(unsigned(waddr_i(6 downto 2)));
  node_word    <= to_integer(unsigned(waddr_i(5 downto 2)));

  decode_groups : for k in 0 to G - 1 generate
    group_here(k) <= bit_of(unsigned(waddr_i(18 downto 7)) = SETS + k);
  end generate;

  decode_nodes : for k in 0 to N - 1 generate
    node_here(k) <= bit_of(unsigned(waddr_i(18 downto 6)) = PAGES + k * PAGE);
  end generate;

  group_write <= gated(group_here, write_i and whole);
  node_write  <= gated(node_here, write_i and whole);

  ---------------------------------------------------------------------------------------------------- the block

  refused <= any_high(refusals);

  process (releases, expires, early, refused)
  begin
    events <= (others => '0');
    events(G - 1 downto 0)       <= releases;
    events(8 + G - 1 downto 8)   <= expires;
    events(16 + G - 1 downto 16) <= early;
    events(24)                   <= refused;
  end process;

  process (clk_i)
    variable cleared, tested : std_logic_vector(24 downto 0);
  begin
    if rising_edge(clk_i) then
      if rst_i = '1' then
        enable_q      <= '0';
        scratch_q     <= (others => '0');
        intr_q        <= (others => '0');
        intr_enable_q <= (others => '0');
      else
        if global_write = '1' and global_word = GLOBAL_CTRL then
          enable_q <= wdata_i(0);
        end if;
        if global_write = '1' and global_word = GLOBAL_SCRATCH then
          scratch_q <= wdata_i;
        end if;
        if global_write = '1' and global_word = GLOBAL_INTR_ENABLE then
          intr_enable_q <= wdata_i(24 downto 0) and INTR;
        end if;
        cleared := gated(wdata_i(24 downto 0), global_write and bit_of(global_word = GLOBAL_INTR_STATE));
        tested  := gated(wdata_i(24 downto 0), global_write and bit_of(global_word = GLOBAL_INTR_TEST)) and INTR;
        intr_q  <= (intr_q and not cleared) or tested or events;
      end if;
    end if;
  end process;

  irq_o <= any_high(intr_q and intr_enable_q);

  has_time : if STAMPS = 1 generate
    process (clk_i)
    begin
      if rising_edge(clk_i) then
        if rst_i = '1' then
          time_q <= (others => '0');
        else
          time_q <= time_q + 1;
        end if;
      end if;
    end process;
  end generate;

  ---------------------------------------------------------------------------------------------------- the start pulse

  has_pulse : if PULSE = 1 generate
    for all : start_pulse use entity work.start_pulse(rtl);
  begin
    starts <= any_high(releases and pulse_q(17 + G - 1 downto 17));

    process (clk_i)
    begin
      if rising_edge(clk_i) then
        if rst_i = '1' then
          pulse_q      <= (others => '0');
          start_time_q <= (others => '0');
        else
          if global_write = '1' and global_word = GLOBAL_PULSE then
            pulse_q <= (wdata_i(31 downto 24) and ALL_GROUPS) & wdata_i(16 downto 0);
          end if;
          if begins = '1' then
            start_time_q <= std_logic_vector(time_q(31 downto 0));
          end if;
        end if;
      end if;
    end process;

    pulse_line : start_pulse
      port map (
        clk_i     => clk_i,
        rst_i     => rst_i,
        release_i => starts,
        width_i   => pulse_q(15 downto 0),
        invert_i  => pulse_q(16),
        begins_o  => begins,
        start_o   => start_o
      );
  end generate;

  has_no_pulse : if PULSE = 0 generate
    start_o <= '0';
  end generate;

  start_time_o <= start_time_q;

  ---------------------------------------------------------------------------------------------------- lines of the nodes

  process (arrive_q, node_write, node_word, wdata_i, enter_i)
    variable value : std_logic;
  begin
    for g_of in 0 to G - 1 loop
      for n_of in 0 to N - 1 loop
        value := arrive_q(g_of * N + n_of);
        if node_write(n_of) = '1' and node_word = NODE_ARRIVE then
          value := wdata_i(g_of);
        end if;
        if node_write(n_of) = '1' and node_word = NODE_TOGGLE then
          value := value xor wdata_i(g_of);
        end if;
        arrive(g_of * N + n_of) <= value xor enter_i(g_of * N + n_of);
      end loop;
    end loop;
  end process;

  process (clk_i)
  begin
    if rising_edge(clk_i) then
      if rst_i = '1' then
        arrive_q <= (others => '0');
      else
        arrive_q <= arrive;
      end if;
    end if;
  end process;

  sync_wires : synchroniser
    generic map (N => G * N, STAGES => SYNC)
    port map (clk_i => clk_i, rst_i => rst_i, level_i => node_i, level_o => wires);

  line <= arrive_q xor wires;

  ---------------------------------------------------------------------------------------------------- groups

  groups : for k in 0 to G - 1 generate
    for all : channel_machine use entity work.channel_machine(rtl);
    signal members, levels, own   : std_logic_vector(N - 1 downto 0);
    signal enables, wanted        : std_logic_vector(N - 1 downto 0);
    signal at_rest, changes, acts : std_logic;
    signal sets_low, sets_high    : std_logic;
  begin
    members <= mask(k * N + N - 1 downto k * N);
    own     <= line(k * N + N - 1 downto k * N);
    levels  <= (others => level(k));
    enables <= (others => enable_q);

    sets_low  <= group_write(k) and bit_of(group_word = GROUP_MASK0);
    sets_high <= group_write(k) and bit_of(group_word = GROUP_MASK1);
    changes   <= sets_low or sets_high;
    acts      <= group_write(k) and bit_of(group_word = GROUP_ACTION);

    process (members, sets_low, sets_high, wdata_i)
    begin
      wanted <= members;
      for n_of in 0 to N - 1 loop
        if sets_low = '1' and n_of < 32 then
          wanted(n_of) <= wdata_i(n_of mod 32);
        end if;
        if sets_high = '1' and n_of >= 32 then
          wanted(n_of) <= wdata_i(n_of mod 32);
        end if;
      end loop;
    end process;

    at_rest       <= not any_high((own xor levels) and (members or wanted));
    sets_mask(k)  <= changes and at_rest;
    sets_limit(k) <= group_write(k) and bit_of(group_word = GROUP_LIMIT);
    drops(k)      <= acts and overdue(k) and bit_of(wdata_i = x"A5000001");
    refusals(k)   <= (changes and not at_rest) or (acts and not drops(k));

    set_mask(k * N + N - 1 downto k * N) <= arrived(k * N + N - 1 downto k * N) when drops(k) = '1' else wanted;
    counted(k * N + N - 1 downto k * N)  <= (own and enables) or (levels and not enables);

    machine : channel_machine
      generic map (N => N, EARLY_EDGES => 1)
      port map (
        clk_i       => clk_i,
        rst_i       => rst_i,
        line_i      => counted(k * N + N - 1 downto k * N),
        set_mask_i  => sets_mask(k),
        mask_i      => set_mask(k * N + N - 1 downto k * N),
        set_limit_i => sets_limit(k),
        limit_i     => wdata_i,
        drop_i      => drops(k),
        toggle_o    => releases(k),
        expires_o   => expires(k),
        early_now_o => early(k),
        level_o     => level(k),
        mask_o      => mask(k * N + N - 1 downto k * N),
        arrived_o   => arrived(k * N + N - 1 downto k * N),
        late_o      => late(k * N + N - 1 downto k * N),
        limit_o     => limit(k * 32 + 31 downto k * 32),
        overdue_o   => overdue(k),
        expired_o   => limits(k * 8 + 7 downto k * 8),
        early_o     => earlies(k * 8 + 7 downto k * 8)
      );

    busy(k) <= any_high(arrived(k * N + N - 1 downto k * N));

    process (clk_i)
      variable began : std_logic_vector(31 downto 0);
    begin
      if rising_edge(clk_i) then
        release_q(k * N + N - 1 downto k * N) <= gated(members, releases(k) and not rst_i);
        if rst_i = '1' then
          released_q(k * 32 + 31 downto k * 32) <= (others => '0');
        elsif releases(k) = '1' then
          released_q(k * 32 + 31 downto k * 32) <= std_logic_vector(unsigned(released_q(k * 32 + 31 downto k * 32)) + 1);
        end if;

        if STAMPS = 1 then
          if busy_q(k) = '1' then
            began := began_q(k * 32 + 31 downto k * 32);
          else
            began := std_logic_vector(time_q(31 downto 0));
          end if;
          busy_q(k) <= busy(k) and not releases(k) and not rst_i;
          began_q(k * 32 + 31 downto k * 32) <= began;
          if rst_i = '1' then
            first_q(k * 32 + 31 downto k * 32) <= (others => '0');
            last_q(k * 32 + 31 downto k * 32)  <= (others => '0');
          elsif releases(k) = '1' then
            first_q(k * 32 + 31 downto k * 32) <= began;
            last_q(k * 32 + 31 downto k * 32)  <= std_logic_vector(time_q(31 downto 0));
          end if;
        end if;
      end if;
    end process;
  end generate;

  level_o   <= level;
  release_o <= release_q;

  ---------------------------------------------------------------------------------------------------- events of the nodes

  nodes : for k in 0 to N - 1 generate
    process (clk_i)
      variable cleared, tested, happened : std_logic_vector(15 downto 0);
    begin
      if rising_edge(clk_i) then
        happened := (others => '0');
        for g_of in 0 to G - 1 loop
          happened(g_of)     := releases(g_of) and mask(g_of * N + k);
          happened(8 + g_of) := expires(g_of) and mask(g_of * N + k);
        end loop;
        cleared := gated(wdata_i(15 downto 0), node_write(k) and bit_of(node_word = NODE_INTR_STATE));
        tested  := gated(wdata_i(15 downto 0), node_write(k) and bit_of(node_word = NODE_INTR_TEST)) and NODE_INTR;
        if rst_i = '1' then
          node_intr_q(16 * k + 15 downto 16 * k)   <= (others => '0');
          node_enable_q(16 * k + 15 downto 16 * k) <= (others => '0');
        else
          node_intr_q(16 * k + 15 downto 16 * k) <=
            (node_intr_q(16 * k + 15 downto 16 * k) and not cleared) or tested or happened;
          if node_write(k) = '1' and node_word = NODE_INTR_ENABLE then
            node_enable_q(16 * k + 15 downto 16 * k) <= wdata_i(15 downto 0) and NODE_INTR;
          end if;
        end if;
      end if;
    end process;

    wake_o(k) <= any_high(node_intr_q(16 * k + 15 downto 16 * k) and node_enable_q(16 * k + 15 downto 16 * k));
  end generate;

  ---------------------------------------------------------------------------------------------------- reads

  process (raddr_i, scratch_q, enable_q, intr_q, intr_enable_q, time_q, pulse_q, start_time_q, mask, arrived, late, overdue, busy, level,
           released_q, limit, limits, earlies, first_q, last_q, arrive_q, line, node_intr_q, node_enable_q)
    variable data  : std_logic_vector(31 downto 0);
    variable found : std_logic;
    variable word  : natural range 0 to 31;
    variable members_of, arrived_of, late_of : std_logic_vector(63 downto 0);
    variable arrive_of, done_of              : std_logic_vector(G - 1 downto 0);
  begin
    data  := (others => '0');
    found := '0';
    word  := 0;
    members_of := (others => '0');
    arrived_of := (others => '0');
    late_of    := (others => '0');
    arrive_of  := (others => '0');
    done_of    := (others => '0');

    if unsigned(raddr_i(18 downto 6)) = 0 then
      found := '1';
      word  := to_integer(unsigned(raddr_i(5 downto 2)));
      if word = GLOBAL_ID then
        data := IDENTITY;
      elsif word = GLOBAL_VERSION then
        data := VERSION;
      elsif word = GLOBAL_CAPS then
        data := std_logic_vector(to_unsigned(PULSE * 64 + STAMPS * 8 + SYNC, 32));
      elsif word = GLOBAL_SIZES then
        data := std_logic_vector(to_unsigned(STRIDE * 65536 + G * 256 + N, 32));
      elsif word = GLOBAL_CLOCK_HZ then
        data := std_logic_vector(to_unsigned(CLOCK_HZ, 32));
      elsif word = GLOBAL_SCRATCH then
        data := scratch_q;
      elsif word = GLOBAL_CTRL then
        data := word_of(enable_q);
      elsif word = GLOBAL_INTR_STATE then
        data := word_of(intr_q);
      elsif word = GLOBAL_INTR_ENABLE then
        data := word_of(intr_enable_q);
      elsif word = GLOBAL_INTR_TEST then
        data := (others => '0');
      elsif word = GLOBAL_TIME_LO then
        data := std_logic_vector(time_q(31 downto 0));
      elsif word = GLOBAL_TIME_HI then
        data := std_logic_vector(time_q(63 downto 32));
      elsif word = GLOBAL_PULSE then
        data := pulse_q(24 downto 17) & "0000000" & pulse_q(16 downto 0);
      elsif word = GLOBAL_START then
        data := start_time_q;
      else
        found := '0';
      end if;
    end if;

    for k in 0 to G - 1 loop
      if unsigned(raddr_i(18 downto 7)) = SETS + k then
        found := '1';
        word  := to_integer(unsigned(raddr_i(6 downto 2)));
        members_of := (others => '0');
        arrived_of := (others => '0');
        late_of    := (others => '0');
        members_of(N - 1 downto 0) := mask(k * N + N - 1 downto k * N);
        arrived_of(N - 1 downto 0) := arrived(k * N + N - 1 downto k * N);
        late_of(N - 1 downto 0)    := late(k * N + N - 1 downto k * N);
        if word = GROUP_MASK0 then
          data := members_of(31 downto 0);
        elsif word = GROUP_MASK1 then
          data := members_of(63 downto 32);
        elsif word = GROUP_ARRIVED0 then
          data := arrived_of(31 downto 0);
        elsif word = GROUP_ARRIVED1 then
          data := arrived_of(63 downto 32);
        elsif word = GROUP_LATE0 then
          data := late_of(31 downto 0);
        elsif word = GROUP_LATE1 then
          data := late_of(63 downto 32);
        elsif word = GROUP_STATUS then
          data := word_of(overdue(k) & busy(k) & level(k));
        elsif word = GROUP_RELEASES then
          data := released_q(k * 32 + 31 downto k * 32);
        elsif word = GROUP_LIMIT then
          data := limit(k * 32 + 31 downto k * 32);
        elsif word = GROUP_COUNTS then
          data := x"00" & earlies(k * 8 + 7 downto k * 8) & x"00" & limits(k * 8 + 7 downto k * 8);
        elsif word = GROUP_FIRST then
          data := first_q(k * 32 + 31 downto k * 32);
        elsif word = GROUP_LAST then
          data := last_q(k * 32 + 31 downto k * 32);
        elsif word = GROUP_ACTION then
          data := (others => '0');
        else
          found := '0';
        end if;
      end if;
    end loop;

    for k in 0 to N - 1 loop
      if unsigned(raddr_i(18 downto 6)) = PAGES + k * PAGE then
        found := '1';
        word  := to_integer(unsigned(raddr_i(5 downto 2)));
        for g_of in 0 to G - 1 loop
          arrive_of(g_of) := arrive_q(g_of * N + k);
          done_of(g_of)   := not (line(g_of * N + k) xor level(g_of));
        end loop;
        if word = NODE_ARRIVE then
          data := word_of(arrive_of);
        elsif word = NODE_LEVEL then
          data := word_of(level);
        elsif word = NODE_DONE then
          data := word_of(done_of);
        elsif word = NODE_INTR_STATE then
          data := word_of(node_intr_q(16 * k + 15 downto 16 * k));
        elsif word = NODE_INTR_ENABLE then
          data := word_of(node_enable_q(16 * k + 15 downto 16 * k));
        elsif word = NODE_INTR_TEST then
          data := (others => '0');
        elsif word = NODE_TOGGLE then
          data := (others => '0');
        else
          found := '0';
        end if;
      end if;
    end loop;

    rdata_o  <= data;
    rerror_o <= not found;
  end process;

  ---------------------------------------------------------------------------------------------------- errors of writes

  process (waddr_i, global_word, group_word, node_word, group_here, node_here)
  begin
    writable <= '0';
    if unsigned(waddr_i(18 downto 6)) = 0 then
      writable <= bit_of(global_word = GLOBAL_SCRATCH or global_word = GLOBAL_CTRL or global_word = GLOBAL_INTR_STATE or
                         global_word = GLOBAL_INTR_ENABLE or global_word = GLOBAL_INTR_TEST or
                         global_word = GLOBAL_PULSE);
    elsif any_high(group_here) = '1' then
      writable <= bit_of(group_word = GROUP_MASK0 or group_word = GROUP_MASK1 or group_word = GROUP_LIMIT or
                         group_word = GROUP_ACTION);
    elsif any_high(node_here) = '1' then
      writable <= bit_of(node_word = NODE_ARRIVE or node_word = NODE_INTR_STATE or node_word = NODE_INTR_ENABLE or
                         node_word = NODE_INTR_TEST or node_word = NODE_TOGGLE);
    end if;
  end process;

  werror_o <= not none and (not whole or not writable or refused);
end architecture;
