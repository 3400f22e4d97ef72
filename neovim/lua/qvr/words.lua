--- Figures of runs in words.
local M = {}

local BLOCKS = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }

--- Four digits; a dash for what is not there.
function M.number(value)
  return type(value) == "number" and (("%.4g"):format(value):gsub("^-", "−")) or "–"
end

function M.duration(seconds)
  if seconds < 60 then
    return ("%d s"):format(math.ceil(seconds))
  elseif seconds < 3600 then
    return ("%d min %d s"):format(seconds / 60, seconds % 60)
  end
  return ("%d h %d min"):format(seconds / 3600, seconds % 3600 / 60)
end

--- Numbers as blocks between `low` (or the least) and the largest, in at most `width` of them.
function M.sparkline(values, width, low)
  local count = math.min(width, #values)
  local means, least, most = {}, low or math.huge, -math.huge
  for cell = 1, count do
    local from, to = math.floor((cell - 1) * #values / count) + 1, math.floor(cell * #values / count)
    local sum = 0
    for at = from, to do
      sum = sum + values[at]
    end
    means[cell] = sum / (to - from + 1)
    least, most = math.min(least, means[cell]), math.max(most, means[cell])
  end
  local parts = {}
  for cell, mean in ipairs(means) do
    local share = most > least and (mean - least) / (most - least) or 0
    parts[cell] = BLOCKS[1 + math.floor(share * (#BLOCKS - 1) + 0.5)]
  end
  return table.concat(parts)
end

--- A share of one as a bar.
function M.bar(share, width)
  local full = math.floor(math.max(0, math.min(1, share)) * width + 0.5)
  return ("█"):rep(full) .. ("░"):rep(width - full)
end

--- The checks of a run's end that say that its result is not to be trusted.
function M.grave(ending)
  local found = {}
  for _, check in ipairs(type(ending) == "table" and ending.event == "finished" and ending.checks or {}) do
    if check.grave then
      found[#found + 1] = check
    end
  end
  return found
end

--- How a run ended, in one line.
function M.ending(event)
  if event.event == "failed" then
    return event.message
  elseif event.event == "crashed" then
    return event.signal and ("ended by " .. event.signal) or "the worker ended"
  elseif event.event ~= "finished" then
    return event.event
  end
  local grave = M.grave(event)
  if #grave > 0 then
    local parts = vim.tbl_map(function(check)
      return ("%s: %s"):format(check.name, check.text)
    end, grave)
    return "not to be trusted: " .. table.concat(parts, "; ")
  elseif type(event.held_out) == "table" then
    return ("%s bits per byte held out"):format(M.number(event.held_out.bits_per_byte))
  elseif type(event.accuracies) == "table" then
    local parts = vim.tbl_map(function(one)
      return ("%s %.1f %% right"):format(one.site, 100 * one.accuracy)
    end, event.accuracies.sites)
    return table.concat(parts, ", ")
  end
  local worst
  for _, row in ipairs(event.posterior or {}) do
    worst = row.r_hat and math.max(worst or 0, row.r_hat) or worst
  end
  if worst then
    return ("largest R-hat %.3f · %d divergences"):format(worst, event.divergences or 0)
  end
  return event.losses and ("−ELBO %s"):format(M.number(event.losses.mean_of_last or event.losses.last)) or "finished"
end

return M
