-- How fast memory can be read: sizes from 64 MB to 4 GB, and how the loads are arranged.
-- `ptxsmith sweep ceilings`.  On an H200 rows of a warp and a block for each tile were best from
-- 256 MB up (docs/measurements.md); at small sizes launch and drain count, and small blocks win.
local MB = 1 << 18 -- in words

return {
  name = "ceilings",
  template = "ceiling_read",
  problems = {
    "words=" .. 64 * MB, "words=" .. 128 * MB, "words=" .. 256 * MB,
    "words=" .. 1024 * MB, "words=" .. 4096 * MB,
  },
  params = {
    unroll = { 2, 4, 8 },
    block = { 128, 256, 512 },
    hint = { "plain", "no_allocate" },
    walk = { "stride", "chunk" },
    rows = { "warp", "block" },
    persistent = { false, true },
  },
  -- A block with one tile has no second one to walk to.
  where = function(point) return point.persistent or point.walk == "stride" end,
}
