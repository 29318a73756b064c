-- The planner's rows of decode: one query, bf16 (`dtype=f16`: f16), keys of 16 and of 8 bits, pages,
-- the latent form; a run for each shape bucket of docs/measurements.md.  One command measures them
-- and puts them into the table:
--
--   ptxsmith sweep decode_rows --graph --device cuda:0 --into lua/planner.txt
--
-- By graph replay, as all rows of decode are: an engine captures a decode step, and launches that are
-- not captured take the host's time as well, which differs from one host to the next by more than
-- the points do.  `only=few`, `many`, `pages`, `e4m3` or `latent` takes a part.  `size=small` is for
-- the interpreter, whose times are modelled and make no rows: it shows that the points are right.
-- A point is tried where docs/ladder.md (R4, R5, R7) has it ahead or close; the first is the
-- template's default.  Batch x KV heads is a power of two: rows of clusters hold for as many items
-- as were measured and for more, not for fewer.
local listed = require("ptxsmith.listed")

local defaults = {
  bf16 = { tile_q = 16, tile_k = 16, warps = 4, stages = 3, helpers = 4, cluster = 1, box = 0,
    lanes = 0, quick = 0 },
  e4m3 = { tile_q = 16, tile_k = 32, warps = 4, stages = 3, helpers = 4, cluster = 1, box = 0,
    lanes = 0, quick = 0 },
}

-- Points that name all parameters: the defaults and what differs from them.
local function points(kind, list)
  local out = {}
  for i, changes in ipairs(list) do
    out[i] = {}
    for name, value in pairs(defaults[kind]) do out[i][name] = value end
    for name, value in pairs(changes) do out[i][name] = value end
  end
  return out
end

local boxes = { box = 32, tile_k = 32, stages = 2 }
local eight_warps = { warps = 8, stages = 2, tile_q = 4, helpers = 2 }

-- 8 items of up to 4 rows, of 8 rows; 64 and 32 items.
local one_to_four = points("bf16", {
  {}, { lanes = 1, quick = 1 }, eight_warps,
  { cluster = 8, stages = 5 },
  { cluster = 8, stages = 6, tile_q = 8, lanes = 1 },
  { cluster = 8, warps = 8, stages = 3, tile_q = 4 },
  { cluster = 8, warps = 8, stages = 3, tile_q = 4, lanes = 1 },
  { cluster = 8, box = 32, tile_k = 32, stages = 3, tile_q = 8, lanes = 1 },
})
local eight_rows = points("bf16", {
  {}, { helpers = 8 }, { helpers = 8, lanes = 1, quick = 1 },
  { cluster = 8, stages = 5, lanes = 1 },
  { cluster = 8, box = 32, tile_k = 32, stages = 3, tile_q = 8 },
  { cluster = 8, box = 32, tile_k = 32, stages = 3, tile_q = 8, lanes = 1 },
})
local items_64 = points("bf16", {
  {}, { lanes = 1, quick = 1 }, boxes,
  { cluster = 2 }, { cluster = 2, lanes = 1 },
  { cluster = 2, lanes = 1, box = 32, tile_k = 32, stages = 2 },
})
local items_32 = points("bf16", {
  {}, { lanes = 1, quick = 1 }, eight_warps,
  { cluster = 2, stages = 6, tile_q = 4 }, { cluster = 2, stages = 6, tile_q = 4, lanes = 1 },
})
local large = points("bf16", {
  {}, { lanes = 1, quick = 1 }, boxes, { box = 32, tile_k = 32, stages = 2, lanes = 1, quick = 1 },
})
local large_four = points("bf16", {
  {}, { lanes = 1, quick = 1 }, boxes, { box = 32, tile_k = 32, stages = 2, lanes = 1, quick = 1 },
  eight_warps,
})
local pages = points("bf16", {
  {}, eight_warps, { box = 16, tile_k = 32, stages = 2 },
  { box = 16, tile_k = 32, stages = 2, lanes = 1, quick = 1 },
  { cluster = 2, box = 16, tile_k = 32, stages = 2, lanes = 1 },
})
-- Where lengths differ a row of clusters is never taken.
local uneven = points("bf16", {
  {}, { lanes = 1, quick = 1 }, eight_warps, { box = 16, tile_k = 32, stages = 2 },
  { box = 16, tile_k = 32, stages = 2, lanes = 1, quick = 1 },
})
local bytes = points("e4m3", {
  {}, { tile_q = 4 }, { lanes = 1, quick = 1 }, { lanes = 1, quick = 1, tile_q = 4 }, { box = 32 },
})
local byte_pages = points("e4m3", { {}, { lanes = 1, quick = 1 }, { box = 16 } })

-- batch, query heads, KV heads, keys.
local shapes = {
  few = {
    { 1, 8, 8, 16384, one_to_four }, { 1, 32, 8, 16384, one_to_four },
    { 1, 64, 8, 32768, eight_rows },
    { 8, 32, 8, 8192, items_64 }, { 1, 32, 32, 16384, items_32 },
  },
  many = {
    { 1, 32, 8, 131072, large }, { 16, 64, 8, 8192, large }, { 128, 32, 8, 1024, large_four },
    { 16, 32, 8, 16384, large }, { 64, 32, 8, 4096, large }, { 16, 32, 32, 4096, large },
  },
  pages = { { 8, 32, 8, 8192, pages } },
  uneven = { { 8, 32, 8, 8192, uneven } },
  e4m3 = {
    { 1, 8, 8, 16384, bytes }, { 1, 32, 8, 131072, bytes }, { 128, 32, 8, 1024, bytes },
    { 16, 32, 8, 16384, bytes },
  },
  e4m3_pages = { { 8, 32, 8, 8192, byte_pages } },
  latent = { { 1, 16, 1, 16384 }, { 16, 16, 1, 16384 }, { 64, 16, 1, 8192 } },
}

local function one_of(name, values, otherwise)
  local want = given[name]
  if not want then return otherwise end
  for _, value in ipairs(values) do
    if value == want then return want end
  end
  refuse(("%s=%s: it is %s"):format(name, want, table.concat(values, " or ")))
end

local small = one_of("size", { "large", "small" }, "large") == "small"
local dtype = one_of("dtype", { "bf16", "f16" }, "bf16")
local parts = { "few", "many", "pages", "e4m3", "latent" }
local only = one_of("only", parts)
local runs = {}

-- A 128th of the keys, and of many sequences four: enough for every point to be run.
local function sizes(shape)
  local batch, keys = shape[1], shape[4]
  if not small then return batch, keys end
  return math.min(batch, 4), keys // 128
end

local function add(name, template, shape, rest, list)
  local batch, keys = sizes(shape)
  runs[#runs + 1] = listed.run(("%s: %d %d %d %d%s"):format(name, batch, shape[2], shape[3], keys,
    rest:gsub(",", " ")), template, ("b=%d,hq=%d,hkv=%d,sq=1,sk=%d,dtype=%s%s"):format(batch,
    shape[2], shape[3], keys, dtype, rest), list)
end

-- From an eighth of the longest to the longest: 8 of them, the longest in the middle.
local function lengths(shape)
  local batch, keys = sizes(shape)
  local list = {}
  for i = 1, batch do list[i] = keys * ((3 * i + batch // 2) % batch + 1) // batch end
  return ",seqlens_k=" .. table.concat(list, "/")
end

local function span(what, name, rest)
  for _, shape in ipairs(shapes[what]) do
    add(name, "decode_span", shape, ",d=128" .. rest, shape[5])
  end
end

local makers = {
  few = function() span("few", "few", "") end,
  many = function() span("many", "many", "") end,
  pages = function()
    for _, page in ipairs { 16, 64 } do
      span("pages", "pages", ",page=" .. page)
      local shape = shapes.uneven[1]
      span("uneven", "pages, lengths", ",page=" .. page .. lengths(shape))
    end
  end,
  e4m3 = function()
    span("e4m3", "e4m3", ",dtype_kv=e4m3,descale=1")
    for _, page in ipairs { 16, 64 } do
      span("e4m3_pages", "e4m3, pages", ",dtype_kv=e4m3,descale=1,page=" .. page)
    end
  end,
  -- decode_latent has a row, too: decode_latent_few is taken only where both were measured.
  latent = function()
    local rest = ",d=576,dv=512,shared=1"
    for _, shape in ipairs(shapes.latent) do
      for _, template in ipairs { "decode_latent", "decode_latent_few" } do
        add("latent", template, shape, rest, { { fused = 1 }, { fused = 0 } })
      end
    end
  end,
}
for _, part in ipairs(only and { only } or parts) do makers[part]() end
return runs
