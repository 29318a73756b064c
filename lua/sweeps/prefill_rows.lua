-- The planner's rows of 16-bit and 8-bit prefill, a run for each shape bucket: 16,384 tokens, 2,048
-- columns, and one head alone.  One command measures them and puts them into the table:
--
--   ptxsmith sweep prefill_rows --device cuda:0 --into lua/planner.txt
--
-- (`only=wgmma`, `only=mma` or `only=e4m3` takes a part; what was measured before an interruption is
-- not measured again.)  A point is tried at the lengths where docs/ladder.md has it ahead or close;
-- the first of each head_dim is the template's default.  Shapes that have the default alone come
-- last: what runs for them is the same without a row.
local listed = require("ptxsmith.listed")
local templates = {
  wgmma = { "prefill_wgmma", "bf16" }, mma = { "prefill_mma", "bf16" },
  e4m3 = { "prefill_wgmma", "e4m3" },
}
local both = { 0, 1 }

-- Which masks (causal 0, 1), from and to which length; the points of a template and a head_dim name
-- the same parameters.
local points = {
  wgmma = {
    [64] = {
      { both, 512, 16384, { tile_q = 192, tile_k = 128, per_sm = 1, stages = 2, turns = 1, early = 0,
          staged = 0 } },
      { { 1 }, 512, 16384, { tile_q = 192, tile_k = 128, per_sm = 1, stages = 2, turns = 1, early = 0,
          staged = 1 } },
      { { 1 }, 8192, 16384, { tile_q = 192, tile_k = 128, per_sm = 1, stages = 2, turns = 0, early = 0,
          staged = 0 } },
      { both, 512, 1024, { tile_q = 64, tile_k = 64, per_sm = 3, stages = 3, turns = 1, early = 0,
          staged = 0 } },
      { { 1 }, 512, 1024, { tile_q = 64, tile_k = 64, per_sm = 3, stages = 3, turns = 1, early = 1,
          staged = 1 } },
    },
    [128] = {
      { both, 512, 16384, { tile_q = 128, tile_k = 128, turns = 1, early = 0, staged = 0 } },
      { { 0 }, 4096, 16384, { tile_q = 128, tile_k = 144, turns = 1, early = 0, staged = 0 } },
      { { 1 }, 512, 16384, { tile_q = 128, tile_k = 128, turns = 1, early = 0, staged = 1 } },
      { { 1 }, 4096, 16384, { tile_q = 128, tile_k = 128, turns = 0, early = 0, staged = 0 } },
      { { 1 }, 4096, 16384, { tile_q = 128, tile_k = 128, turns = 0, early = 1, staged = 1 } },
    },
    [256] = {
      { { 0 }, 512, 16384, { tile_q = 128, tile_k = 80 } },
      { { 1 }, 512, 16384, { tile_q = 128, tile_k = 64 } },
      { { 1 }, 8192, 16384, { tile_q = 128, tile_k = 80 } },
    },
  },
  mma = {
    [64] = {
      { both, 512, 16384, { tile_q = 128, tile_k = 64, stages = 2 } },
      { { 1 }, 512, 1024, { tile_q = 64, tile_k = 64, stages = 2 } },
      { both, 8192, 16384, { tile_q = 128, tile_k = 64, stages = 1 } },
    },
    [128] = {
      { both, 512, 16384, { tile_q = 128, tile_k = 64, stages = 1, warps = 4 } },
      { { 1 }, 512, 512, { tile_q = 64, tile_k = 64, stages = 1, warps = 2 } },
      { { 0 }, 8192, 16384, { tile_q = 128, tile_k = 48, stages = 1, warps = 4 } },
    },
    [256] = {
      { both, 512, 16384, { tile_q = 64, tile_k = 64, warps = 4 } },
      { both, 1024, 16384, { tile_q = 128, tile_k = 96, warps = 8 } },
    },
  },
  e4m3 = {
    [64] = {
      { both, 512, 16384, { tile_q = 192, tile_k = 128 } },
      { both, 2048, 16384, { tile_q = 192, tile_k = 160 } },
      { both, 512, 1024, { tile_q = 128, tile_k = 128 } },
    },
    [128] = {
      { both, 512, 16384, { tile_q = 192, tile_k = 96, turns = 1 } },
      { both, 512, 2048, { tile_q = 128, tile_k = 128, turns = 1 } },
      { { 1 }, 4096, 16384, { tile_q = 192, tile_k = 96, turns = 0 } },
      { { 1 }, 4096, 16384, { tile_q = 128, tile_k = 224, turns = 1 } },
    },
    [256] = {
      { both, 512, 16384, { tile_q = 128, tile_k = 96 } },
      { { 1 }, 512, 512, { tile_q = 128, tile_k = 64 } },
    },
  },
}

local function holds(entry, s, causal)
  local masks, first, last = entry[1], entry[2], entry[3]
  return s >= first and s <= last and (causal == masks[1] or causal == rawget(masks, 2))
end

local only = given.only
if only and not rawget(points, only) then
  refuse("only=" .. only .. ": it is wgmma, mma or e4m3")
end
local runs, alone = {}, {}
local function add(run, npoints)
  local to = npoints > 1 and runs or alone
  to[#to + 1] = run
end
for _, name in ipairs(only and { only } or { "wgmma", "mma", "e4m3" }) do
  local template, dtype = templates[name][1], templates[name][2]
  for _, d in ipairs { 64, 128, 256 } do
    for _, s in ipairs { 512, 1024, 2048, 4096, 8192, 16384 } do
      for causal = 0, 1 do
        local list = {}
        for _, entry in ipairs(points[name][d]) do
          if holds(entry, s, causal) then list[#list + 1] = entry[4] end
        end
        add(listed.run(("%s: d=%d s=%d causal=%d"):format(name, d, s, causal), template,
          ("b=%d,hq=%d,hkv=%d,sq=%d,sk=%d,d=%d,causal=%d,dtype=%s%s"):format(16384 // s, 2048 // d,
            2048 // d, s, s, d, causal, dtype, dtype == "e4m3" and ",descale=1" or ""), list), #list)
      end
    end
  end
  if name == "wgmma" then -- fewer items than SMs: the longest one sets the time
    add(listed.run("wgmma: one head", template,
      "b=1,hq=1,hkv=1,sq=4663,sk=4663,d=64,causal=1,dtype=bf16",
      { { tile_q = 64 }, { tile_q = 128 }, { tile_q = 192 } }), 3)
  end
end
for _, run in ipairs(alone) do runs[#runs + 1] = run end
return runs
