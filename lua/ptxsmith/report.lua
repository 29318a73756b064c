-- report: rows of results as text.  A row has the fields that a worker replied, and
--   point  its parameters     kind  "ok", "pruned", "failed", "late", "died", "cut"     why
local report = {}

local tie = 0.01 -- differences below 1 % are none

local function pad(text, width, right)
  local space = string.rep(" ", width - #text)
  if right then return space .. text end
  return text .. space
end

-- Columns as wide as their widest entry.  Those of `right` are set flush right.
function report.table(head, lines, right)
  local width = {}
  for i, title in ipairs(head) do width[i] = #title end
  for _, line in ipairs(lines) do
    for i, text in ipairs(line) do width[i] = math.max(width[i], #text) end
  end
  local out = {}
  local function put(line)
    local cells = {}
    for i, text in ipairs(line) do cells[i] = pad(text, width[i], rawget(right, i)) end
    out[#out + 1] = (string.gsub("  " .. table.concat(cells, "  "), " +$", ""))
  end
  put(head)
  for _, line in ipairs(lines) do put(line) end
  return table.concat(out, "\n") .. "\n"
end

-- The rows that have a time, best first; equal ones in the order they were tried.
function report.rank(rows, objective)
  local ranked = {}
  for order, row in ipairs(rows) do
    if row.kind == "ok" then
      row.order = order
      row.cost = objective and objective(row) or row.median_us
      if type(row.cost) ~= "number" or row.cost ~= row.cost then
        refuse("objective: no number for " .. row.point .. ", but " ..
               (row.cost ~= row.cost and "NaN" or "a " .. type(row.cost)))
      end
      ranked[#ranked + 1] = row
    end
  end
  table.sort(ranked, function(a, b)
    if a.cost ~= b.cost then return a.cost < b.cost end
    return a.order < b.order
  end)
  return ranked
end

local function unit(row) return row.by_bytes == 1 and "GB/s" or "GFLOP/s" end

local function ranked_lines(ranked)
  local lines = {}
  for place, row in ipairs(ranked) do
    local best = ranked[1].cost
    local tied = place > 1 and math.abs(row.cost - best) <= tie * math.abs(best)
    lines[place] = {
      tied and "=" or tostring(place), row.point,
      string.format("%.2f", row.median_us), string.format("%.2f..%.2f", row.low_us, row.high_us),
      string.format("%.1f", row.rate), string.format("%.1f %%", 100 * row.rate / row.roof),
      string.format("%d", math.tointeger(row.regs)),
    }
  end
  return lines
end

-- "a, b, c and 9 more": the names of rows that share a fate.
local function names_of(rows)
  local names, most = {}, 4
  for i = 1, math.min(#rows, most) do names[i] = rows[i].point end
  local text = table.concat(names, ", ")
  if #rows > most then text = text .. " and " .. (#rows - most) .. " more" end
  return text
end

-- What was not timed: how often each reason pruned, and every variant that should have run.
function report.skipped(rows)
  local because, reasons, out = {}, {}, {}
  for _, row in ipairs(rows) do
    if row.kind == "pruned" then
      local same = rawget(because, row.why)
      if not same then
        same = {}
        because[row.why] = same
        reasons[#reasons + 1] = row.why
      end
      same[#same + 1] = row
    end
  end
  for _, why in ipairs(reasons) do
    local same = because[why]
    out[#out + 1] = string.format("  pruned %d: %s (%s)\n", #same, why, names_of(same))
  end
  for _, row in ipairs(rows) do
    if row.kind ~= "ok" and row.kind ~= "pruned" then
      out[#out + 1] = string.format("  %s: %s: %s\n", row.kind, row.point, row.why)
    end
  end
  return table.concat(out)
end

-- Of a long list of lengths the first ones.
local function short(problem)
  return (problem:gsub("=(%d+/%d+/%d+/)([%d/]+)", function(first, rest)
    local _, more = rest:gsub("/", "")
    if more < 6 then return "=" .. first .. rest end
    return ("=%s... (%d)"):format(first, more + 4)
  end))
end

-- One run's ranked table.  `run`: name, template, problem, pruned (by its `where`), objective.
function report.sweep(run, rows)
  local ranked = report.rank(rows, rawget(run, "objective"))
  local out = { string.format("%s on %s\n", run.name, short(run.problem)) }
  if #ranked > 0 then
    local first = ranked[1]
    out[#out + 1] = string.format("  %s, %s; roof %.0f %s%s\n", first.device_name, first.method,
      first.roof, unit(first), first.modelled == 1 and " (modelled)" or " (measured)")
    local head = { "", "parameters", first.modelled == 1 and "modelled us" or "us", "95 %",
      unit(first), "of roof", "regs" }
    local right = { [3] = true, [4] = true, [5] = true, [6] = true, [7] = true }
    out[#out + 1] = report.table(head, ranked_lines(ranked), right)
  else
    out[#out + 1] = "  nothing was timed\n"
  end
  if run.pruned > 0 then
    out[#out + 1] = string.format("  pruned %d: the script's where\n", run.pruned)
  end
  out[#out + 1] = report.skipped(rows)
  return table.concat(out)
end

-- A rung's rows with expected beside found, in the order they were predicted.
function report.rung(run, rows)
  local lines, unit_text, found = {}, "", "found us"
  for _, row in ipairs(rows) do
    if row.kind == "ok" then
      local off = 100 * (row.median_us - row.expected_us) / row.expected_us
      lines[#lines + 1] = { row.point, string.format("%.2f", row.expected_us),
        string.format("%.2f", row.median_us), string.format("%+.0f %%", off),
        string.format("%.1f", row.rate), string.format("%.1f %%", 100 * row.rate / row.roof) }
      unit_text = unit(row)
      if row.modelled == 1 then found = "modelled us" end
    end
  end
  local out = { string.format("%s: %s on %s\n", run.name, run.template, short(run.problem)) }
  if rawget(run, "doc") then out[#out + 1] = "  " .. run.doc .. "\n" end
  if #lines > 0 then
    local head = { "parameters", "expected us", found, "off", unit_text, "of roof" }
    local right = { [2] = true, [3] = true, [4] = true, [5] = true, [6] = true }
    out[#out + 1] = report.table(head, lines, right)
  end
  out[#out + 1] = report.skipped(rows)
  return table.concat(out)
end

return report
