-- Rows of the planner's table for prefill_wgmma, where its defaults are not the fastest.
-- `ptxsmith sweep prefill_hopper --device cuda:0`; what was tried besides is in docs/ladder.md.
local function shape(b, h, s, d, causal)
  return ("b=%d,hq=%d,hkv=%d,sq=%d,sk=%d,d=%d,causal=%d,dtype=bf16"):format(b, h, h, s, s, d, causal)
end

return {
  {
    -- Items are short: three blocks of one warpgroup on an SM, each with items of its own.
    name = "short, causal, head_dim 64",
    template = "prefill_wgmma",
    problems = { shape(32, 32, 512, 64, 1), shape(16, 32, 1024, 64, 1) },
    params = { tile_q = { 64, 192 }, tile_k = { 64, 128 }, per_sm = { 1, 3 }, stages = { 2, 3 } },
    where = function(p)
      if p.tile_q == 64 then return p.per_sm == 3 and p.tile_k == 64 end
      return p.per_sm == 1 and p.tile_k == 128 and p.stages == 2
    end,
  },
  {
    -- Fewer items than SMs: the longest one sets the time.
    name = "one head",
    template = "prefill_wgmma",
    problems = { shape(1, 1, 4663, 64, 1) },
    params = { tile_q = { 64, 128, 192 } },
  },
  {
    name = "long, causal, head_dim 256",
    template = "prefill_wgmma",
    problems = { shape(2, 8, 8192, 256, 1), shape(1, 8, 16384, 256, 1) },
    params = { tile_k = { 64, 80 } },
  },
  {
    name = "long, head_dim 128",
    template = "prefill_wgmma",
    problems = { shape(2, 16, 8192, 128, 0) },
    params = { tile_k = { 128, 144 } },
  },
}
