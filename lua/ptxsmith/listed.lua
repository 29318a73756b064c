-- listed: points that are listed one by one, where a product of axes would be too many.
local listed = {}

-- A run of a template on one problem with the points of `list`, which name the same parameters:
-- every value that a parameter has in one of them is an axis, and of the combinations only the
-- points themselves are kept.
function listed.run(name, template, problem, list)
  local axes = {}
  for _, point in ipairs(list) do
    for axis, value in pairs(point) do
      local values = rawget(axes, axis) or {}
      axes[axis] = values
      local known = false
      for _, v in ipairs(values) do known = known or v == value end
      if not known then values[#values + 1] = value end
    end
  end
  local function is_listed(p)
    for _, point in ipairs(list) do
      local same = true
      for axis, value in pairs(point) do same = same and p[axis] == value end
      if same then return true end
    end
    return false
  end
  return { name = name, template = template, problems = { problem }, params = axes,
    where = is_listed, limit = 300 }
end

return listed
