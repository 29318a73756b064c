-- The planner's rows of 16-bit and 8-bit prefill, a run for each shape bucket: 16,384 tokens, 2,048
-- columns.  One command measures them and puts them into the table:
--
--   ptxsmith sweep prefill_rows --device cuda:0 --into lua/planner.txt
--
-- (`only=wgmma`, `only=mma` or `only=e4m3` takes a part; what was measured before an interruption is
-- not measured again.)  The points are those that docs/ladder.md found ahead somewhere.
local lengths = { 512, 1024, 2048, 4096, 8192, 16384 }

-- d -> alternatives; what a point leaves open is the template's default.
local spaces = {
  wgmma = {
    template = "prefill_wgmma", dtype = "bf16",
    [64] = { params = { tile_q = { 64, 128, 192 }, tile_k = { 64, 128 }, per_sm = { 1, 3 },
        stages = { 2, 3 } },
      where = function(p) -- blocks of one warpgroup share an SM
        if p.tile_q == 64 then return p.per_sm == 3 and p.tile_k == 64 end
        return p.per_sm == 1 and p.tile_k == 128 and p.stages == 2
      end },
    [128] = { params = { tile_q = { 128 }, tile_k = { 96, 128, 144 } } },
    [256] = { params = { tile_q = { 128 }, tile_k = { 64, 80 } } },
  },
  mma = {
    template = "prefill_mma", dtype = "bf16",
    [64] = { params = { tile_q = { 64, 128 }, tile_k = { 32, 64 }, stages = { 1, 2 } } },
    [128] = { params = { tile_q = { 64, 128 }, tile_k = { 64 }, stages = { 1, 2 } } },
    [256] = { params = { tile_q = { 64, 128 }, tile_k = { 32, 64 }, stages = { 1 } } },
  },
  e4m3 = {
    template = "prefill_wgmma", dtype = "e4m3",
    [64] = { params = { tile_q = { 128, 192 }, tile_k = { 128, 160 } } },
    [128] = { params = { tile_q = { 128, 192 }, tile_k = { 96, 128, 224 } } },
    [256] = { params = { tile_q = { 128 }, tile_k = { 64, 96, 128 } } },
  },
}

local only = given.only
local order = only and { only } or { "wgmma", "mma", "e4m3" }
local runs = {}
for _, name in ipairs(order) do
  local space = rawget(spaces, name)
  if not space then refuse("only=" .. name .. ": it is wgmma, mma or e4m3") end
  for _, d in ipairs { 64, 128, 256 } do
    for _, s in ipairs(lengths) do
      for causal = 0, 1 do
        local more = space.dtype == "e4m3" and ",descale=1" or ""
        runs[#runs + 1] = {
          name = ("%s: d=%d s=%d causal=%d"):format(name, d, s, causal),
          template = space.template,
          problems = { ("b=%d,hq=%d,hkv=%d,sq=%d,sk=%d,d=%d,causal=%d,dtype=%s%s"):format(
            16384 // s, 2048 // d, 2048 // d, s, s, d, causal, space.dtype, more) },
          params = space[d].params,
          where = rawget(space[d], "where"),
          limit = 300,
        }
      end
    end
  end
end
return runs
