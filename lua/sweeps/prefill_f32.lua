-- fp32 prefill on tensor cores: tiles of prefill_mma's split tf32, for the planner's table.
-- 16,384 tokens, 2,048 columns.  `ptxsmith sweep lua/sweeps/prefill_f32.lua` prints its rows.
local function points(d, params)
  local list = {}
  for _, s in ipairs { 512, 1024, 2048, 4096, 8192, 16384 } do
    for causal = 0, 1 do
      list[#list + 1] = {
        name = ("split tf32: d=%d s=%d causal=%d"):format(d, s, causal),
        template = "prefill_mma",
        problems = { ("b=%d,hq=%d,hkv=%d,sq=%d,sk=%d,d=%d,causal=%d,dtype=f32"):format(
          16384 // s, 2048 // d, 2048 // d, s, s, d, causal) },
        params = params,
      }
    end
  end
  return list
end

local all = points(64, { tile_q = { 64, 128 }, tile_k = { 32, 64 } })
for _, point in ipairs(points(128, { tile_q = { 64, 128 }, tile_k = { 16, 32 } })) do
  all[#all + 1] = point
end
return all
