-- space: from what a sweep or a campaign returns to a flat list of runs, each a template on one
-- problem with the points of its parameter space that are to be tried.
--
--   return {
--     template = "decode_splitk",
--     problems = { "b=1,hq=8,hkv=8,sq=1,sk=1024,d=64" },     -- values, or names of problem.lua
--     params   = { vec = { 1, 2, 4 }, chunks = { 1, 8 } },   -- a lone value stands for itself
--     where    = function(p, problem) return p.vec * p.chunks < 32 end,   -- optional
--     objective = function(r) return r.median_us end,        -- optional: the least wins
--   }
--
-- `params` names parameters of the template, and values of the problem (chunks).  A script may also
-- return a list of such tables.
local space = {}

-- field -> what it must be, and whether it must be there.
local fields = {
  name = { "string" },
  doc = { "string" },
  template = { "string", true },
  problems = { "table", true },
  params = { "table" },
  where = { "function" },
  objective = { "function" },
  predict = { "function" },
  limit = { "number" },   -- seconds a variant may take
  samples = { "number" }, -- timed launches
}

local function field_names()
  local names = {}
  for name in pairs(fields) do names[#names + 1] = name end
  table.sort(names)
  return table.concat(names, ", ")
end

local function check(sweep, label)
  if type(sweep) ~= "table" then refuse(label .. " is a " .. type(sweep) .. ", not a table") end
  for name in pairs(sweep) do
    if not rawget(fields, name) then
      refuse(label .. " has a field " .. tostring(name) .. "; known are " .. field_names())
    end
  end
  for name, rule in pairs(fields) do
    local value = rawget(sweep, name)
    if value == nil and rule[2] then refuse(label .. ": " .. name .. " is missing") end
    if value ~= nil and type(value) ~= rule[1] then
      refuse(label .. ": " .. name .. " is a " .. type(value) .. ", not a " .. rule[1])
    end
  end
  local limit, samples = rawget(sweep, "limit"), rawget(sweep, "samples")
  if limit and not (limit > 0 and limit < math.huge) then
    refuse(label .. ": limit=" .. limit .. " is no number of seconds")
  end
  if samples and not (samples >= 1 and samples < 2 ^ 31 and samples == math.floor(samples)) then
    refuse(label .. ": samples=" .. samples .. " is no number of launches")
  end
end

-- The axes' names, sorted: the order of a product must not change from run to run.
local function axis_names(axes)
  local names = {}
  for name in pairs(axes) do
    if type(name) ~= "string" then refuse("params: every entry is name = values") end
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

local function values_of(axes, name)
  local values = axes[name]
  if type(values) ~= "table" then return { values } end
  if #values == 0 then refuse("params: " .. name .. " has no values") end
  return values
end

-- Every combination of the axes as a list of { name = value }, the first name slowest.
function space.product(axes)
  local points = { {} }
  for _, name in ipairs(axis_names(axes)) do
    local longer = {}
    for _, point in ipairs(points) do
      for _, value in ipairs(values_of(axes, name)) do
        local copy = {}
        for k, v in pairs(point) do copy[k] = v end
        copy[name] = value
        longer[#longer + 1] = copy
      end
    end
    points = longer
  end
  return points
end

local function value_text(name, value)
  if type(value) == "boolean" then return value and "1" or "0" end
  if math.type(value) == "integer" or type(value) == "string" then return tostring(value) end
  refuse("params: " .. name .. " has a value that is neither an integer, a truth nor a text")
end

-- "chunks=8 vec=4": names sorted.
function space.text(point)
  local words = {}
  for _, name in ipairs(axis_names(point)) do
    words[#words + 1] = name .. "=" .. value_text(name, point[name])
  end
  return table.concat(words, " ")
end

-- Powers of two from `first` to `last`, both included.
function space.powers(first, last)
  local list = {}
  while first <= last do
    list[#list + 1] = first
    first = first * 2
  end
  return list
end

-- A point whose missing names are mistakes, not nil.
local strict = {
  __index = function(point, name)
    error("the point has no " .. tostring(name) .. "; it has " ..
      table.concat(axis_names(point), ", "), 2)
  end,
}

local function add_run(runs, sweep, label, spec)
  local values = problem(spec)
  local run = {
    name = rawget(sweep, "name") or sweep.template, template = sweep.template, problem = spec,
    doc = rawget(sweep, "doc"), objective = rawget(sweep, "objective"),
    predict = rawget(sweep, "predict"), limit = rawget(sweep, "limit"),
    samples = rawget(sweep, "samples"), points = {}, params = {}, pruned = 0,
  }
  local where = rawget(sweep, "where")
  for _, point in ipairs(space.product(rawget(sweep, "params") or {})) do
    setmetatable(point, strict)
    if not where or where(point, values) then
      run.points[#run.points + 1] = space.text(point)
      run.params[#run.params + 1] = point
    else
      run.pruned = run.pruned + 1
    end
  end
  runs[#runs + 1] = run
end

-- What a script returned as a list of runs.
function space.runs(script)
  if type(script) ~= "table" then
    refuse("the script returns a " .. type(script) .. ", not a table")
  end
  local list = rawget(script, "template") and { script } or rawget(script, "rungs") or script
  local runs = {}
  if #list == 0 then refuse("the script returns neither a sweep nor a list of them") end
  for i, sweep in ipairs(list) do
    local label = "sweep " .. i
    check(sweep, label)
    if #sweep.problems == 0 then refuse(label .. ": problems is empty") end
    for _, spec in ipairs(sweep.problems) do add_run(runs, sweep, label, spec) end
  end
  return runs
end

return space
