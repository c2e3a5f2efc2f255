-- APB front (bus adapter) of the register block, equivalent to apb_front.v, which explains it.
library ieee;
use ieee.std_logic_1164.all;

entity apb_front is
  generic (ADDRESS : positive range 13 to 19 := 19);
  port (
    psel_i    : in  std_logic;
    penable_i : in  std_logic;
    pwrite_i  : in  std_logic;
    paddr_i   : in  std_logic_vector(ADDRESS - 1 downto 0);
    pwdata_i  : in  std_logic_vector(31 downto 0);
    pstrb_i   : in  std_logic_vector(3 downto 0);
    prdata_o  : out std_logic_vector(31 downto 0);
    pready_o  : out std_logic;
    pslverr_o : out std_logic;
    raddr_o   : out std_logic_vector(18 downto 0);
    rdata_i   : in  std_logic_vector(31 downto 0);
    rerror_i  : in  std_logic;
    write_o   : out std_logic;
    waddr_o   : out std_logic_vector(18 downto 0);
    wdata_o   : out std_logic_vector(31 downto 0);
    wstrb_o   : out std_logic_vector(3 downto 0);
    werror_i  : in  std_logic
  );
end entity;

architecture rtl of apb_front is
  signal enabled : std_logic;
begin
  enabled <= psel_i and penable_i;

  prdata_o  <= rdata_i;
  pready_o  <= '1';
  pslverr_o <= enabled and ((pwrite_i and werror_i) or (not pwrite_i and rerror_i));

  write_o <= enabled and pwrite_i;
  wdata_o <= pwdata_i;
  wstrb_o <= pstrb_i;

  -- The bus has fewer address bits than the block; the others are 0.
  process (paddr_i)
  begin
    waddr_o <= (others => '0');
    raddr_o <= (others => '0');
    waddr_o(ADDRESS - 1 downto 0) <= paddr_i;
    raddr_o(ADDRESS - 1 downto 0) <= paddr_i;
  end process;
end architecture;
