-- Wishbone B4 classic front (bus adapter) of the register block, equivalent to wishbone_front.v, which explains it.
library ieee;
use ieee.std_logic_1164.all;

entity wishbone_front is
  generic (ADDRESS : positive range 13 to 19 := 19);
  port (
    clk_i    : in  std_logic;
    rst_i    : in  std_logic;
    cyc_i    : in  std_logic;
    stb_i    : in  std_logic;
    we_i     : in  std_logic;
    adr_i    : in  std_logic_vector(ADDRESS - 1 downto 0);
    dat_i    : in  std_logic_vector(31 downto 0);
    sel_i    : in  std_logic_vector(3 downto 0);
    dat_o    : out std_logic_vector(31 downto 0);
    ack_o    : out std_logic;
    err_o    : out std_logic;
    raddr_o  : out std_logic_vector(18 downto 0);
    rdata_i  : in  std_logic_vector(31 downto 0);
    rerror_i : in  std_logic;
    write_o  : out std_logic;
    waddr_o  : out std_logic_vector(18 downto 0);
    wdata_o  : out std_logic_vector(31 downto 0);
    wstrb_o  : out std_logic_vector(3 downto 0);
    werror_i : in  std_logic
  );
end entity;

architecture rtl of wishbone_front is
  signal second_q, rerror_q : std_logic := '0';
  signal rdata_q            : std_logic_vector(31 downto 0) := (others => '0');
  signal asks, ends, error  : std_logic;
begin
  asks  <= cyc_i and stb_i;
  ends  <= asks and second_q and not rst_i;
  error <= werror_i when we_i = '1' else rerror_q;

  process (clk_i)
  begin
    if rising_edge(clk_i) then
      second_q <= asks and not second_q and not rst_i;
      rerror_q <= rerror_i;
      rdata_q  <= rdata_i;
    end if;
  end process;

  dat_o <= rdata_q;
  ack_o <= ends and not error;
  err_o <= ends and error;

  write_o <= ends and we_i;
  wdata_o <= dat_i;
  wstrb_o <= sel_i;

  -- The bus has fewer address bits than the block; the others are 0.
  process (adr_i)
  begin
    waddr_o <= (others => '0');
    raddr_o <= (others => '0');
    waddr_o(ADDRESS - 1 downto 0) <= adr_i;
    raddr_o(ADDRESS - 1 downto 0) <= adr_i;
  end process;
end architecture;
