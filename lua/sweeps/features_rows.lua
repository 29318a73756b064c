-- The planner's rows of 16-bit prefill under a causal window and of packed sequences: a run for
-- each shape bucket, as tests/peers/features.py measures them (16,384 tokens of one sequence; 32,768
-- of many short ones; 2,048 columns).  One command measures them and puts them into the table:
--
--   ptxsmith sweep features_rows --device cuda:0 --into lua/planner.txt
--
-- `only=windows` or `only=lengths`, `template=wgmma` or `template=mma` take a part.  `size=small` is for the
-- interpreter, whose times are modelled and make no rows: it shows that the points are right.
-- The first point of each head_dim is the template's default; a small tile wastes less at a
-- window's edges and on a short sequence's last one, a large one reads K and V less often.
local listed = require("ptxsmith.listed")

local points = {
  windows = {
    wgmma = {
      [64] = {
        { tile_q = 192, tile_k = 128, per_sm = 1, stages = 2, early = 0, staged = 0 },
        { tile_q = 192, tile_k = 128, per_sm = 1, stages = 2, early = 1, staged = 1 },
        { tile_q = 64, tile_k = 64, per_sm = 3, stages = 2, early = 0, staged = 0 },
        { tile_q = 64, tile_k = 64, per_sm = 3, stages = 2, early = 1, staged = 1 },
      },
      [128] = {
        { tile_q = 128, tile_k = 128, per_sm = 1, stages = 2, early = 0, staged = 0 },
        { tile_q = 128, tile_k = 128, per_sm = 1, stages = 2, early = 1, staged = 1 },
        { tile_q = 64, tile_k = 64, per_sm = 2, stages = 2, early = 1, staged = 1 },
      },
    },
    mma = {
      [64] = {
        { tile_q = 64, tile_k = 64, warps = 2, stages = 2, narrow = 0, slack = 0 },
        { tile_q = 64, tile_k = 64, warps = 2, stages = 2, narrow = 32, slack = 0 },
        { tile_q = 64, tile_k = 64, warps = 2, stages = 2, narrow = 32, slack = 8 },
        { tile_q = 128, tile_k = 64, warps = 4, stages = 2, narrow = 32, slack = 8 },
      },
      [128] = {
        { tile_q = 64, tile_k = 64, warps = 2, stages = 1, narrow = 0, slack = 0 },
        { tile_q = 64, tile_k = 64, warps = 2, stages = 1, narrow = 32, slack = 0 },
        { tile_q = 64, tile_k = 64, warps = 2, stages = 1, narrow = 32, slack = 8 },
        { tile_q = 128, tile_k = 64, warps = 4, stages = 1, narrow = 32, slack = 8 },
      },
    },
  },
  lengths = {
    wgmma = {
      [64] = {
        { tile_q = 192, tile_k = 128, per_sm = 1, stages = 2 },
        { tile_q = 64, tile_k = 64, per_sm = 3, stages = 2 },
      },
      [128] = {
        { tile_q = 128, tile_k = 128, per_sm = 1, stages = 2 },
        { tile_q = 64, tile_k = 64, per_sm = 2, stages = 2 },
      },
    },
    mma = {
      [64] = {
        { tile_q = 128, tile_k = 64, warps = 4, stages = 2, narrow = 0, slack = 0 },
        { tile_q = 128, tile_k = 64, warps = 4, stages = 2, narrow = 32, slack = 8 },
        { tile_q = 64, tile_k = 64, warps = 2, stages = 2, narrow = 32, slack = 8 },
      },
      [128] = {
        { tile_q = 128, tile_k = 64, warps = 4, stages = 1, narrow = 0, slack = 0 },
        { tile_q = 128, tile_k = 64, warps = 4, stages = 1, narrow = 32, slack = 8 },
        { tile_q = 64, tile_k = 64, warps = 2, stages = 1, narrow = 32, slack = 8 },
      },
    },
  },
}
local templates = { wgmma = "prefill_wgmma", mma = "prefill_mma" }
local large = {
  tokens = { windows = 16384, lengths = 32768 }, dims = { 64, 128 }, columns = 2048,
  windows = { 128, 256, 512, 1024, 2048 }, lengths = { 128, 512, 2048 },
}
local small = {
  tokens = { windows = 64, lengths = 64 }, dims = { 64 }, columns = 64,
  windows = { 8, 16 }, lengths = { 16 },
}

local function one_of(name, values)
  local want = given[name]
  if not want then return values end
  for _, value in ipairs(values) do
    if value == want then return { value } end
  end
  refuse(("%s=%s: it is %s"):format(name, want, table.concat(values, " or ")))
end

-- From 1 to twice the mean less 1 in equal steps, which make the mean exactly, the short ones among
-- the long ones: 5 is odd, and the numbers of sequences are powers of two.
local function spread(count, mean)
  local list = {}
  for i = 0, count - 1 do
    local at = (5 * i + 1) % count
    list[i + 1] = 1 + (at * (2 * mean - 2) + (count - 1) // 2) // (count - 1)
  end
  return table.concat(list, "/")
end

local size = one_of("size", { "large", "small" })[1] == "small" and small or large
local runs = {}
local function add(what, name, d, text, problem)
  runs[#runs + 1] = listed.run(("%s: d=%d %s"):format(name, d, text), templates[name], problem,
    points[what][name][d])
end

local makers = {
  windows = function(name, d)
    local s, heads = size.tokens.windows, size.columns // d
    for _, width in ipairs(size.windows) do
      add("windows", name, d, ("window %d"):format(width),
        ("b=1,hq=%d,hkv=%d,sq=%d,sk=%d,d=%d,causal=1,wl=%d,dtype=bf16"):format(heads, heads, s, s, d,
          width))
    end
  end,
  lengths = function(name, d)
    local heads = size.columns // d
    for _, mean in ipairs(size.lengths) do
      local count = size.tokens.lengths // mean
      local list = spread(count, mean)
      for causal = 0, 1 do
        add("lengths", name, d, ("%d of 1 to %d causal=%d"):format(count, 2 * mean - 1, causal),
          ("hq=%d,hkv=%d,seqlens_q=%s,seqlens_k=%s,d=%d,causal=%d,dtype=bf16"):format(heads, heads,
            list, list, d, causal))
      end
    end
  end,
}

local names = one_of("template", { "wgmma", "mma" })
for _, what in ipairs(one_of("only", { "windows", "lengths" })) do
  for _, d in ipairs(size.dims) do
    for _, name in ipairs(names) do makers[what](name, d) end
  end
end
return runs
