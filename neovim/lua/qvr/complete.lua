--- What may be typed behind `:QvrRun`.
local M = {}

local KEYS = { "steps", "learning_rate", "batch_size", "guide", "particles", "seed", "warmup", "samples", "chains", "target_accept", "max_tree_depth", "engine", "time_limit", "held_out_rows" }
local SUFFIXES = {
  text = false,
  csv = { csv = true, tsv = true },
  parquet = { parquet = true },
  ndjson = { ndjson = true, jsonl = true },
  json = { json = true },
  npz = { npz = true },
}
local MOST = 200

--- The folder that data paths start from.
local function root()
  local attached = vim.lsp.get_clients({ name = "qvr", bufnr = 0 })[1]
  local file = vim.api.nvim_buf_get_name(0)
  return attached and attached.root_dir or (file ~= "" and vim.fs.dirname(file)) or vim.fn.getcwd()
end

--- `data=csv:d.csv`, … for what has been typed behind `data=`: sources, then files and folders.
local function data(typed)
  local source, path = typed:match("^(%a+):(.*)$")
  if not source or SUFFIXES[source] == nil then
    local found = {}
    for name in vim.spairs(SUFFIXES) do
      found[#found + 1] = ("data=%s:"):format(name)
    end
    found[#found + 1] = "data=synthetic"
    return found
  end
  local folder, start = path:match("^(.*/)([^/]*)$")
  folder, start = folder or "", start or path
  local base = folder:sub(1, 1) == "/" and folder or vim.fs.joinpath(root(), folder)
  local found = {}
  for name, kind in vim.fs.dir(base) do
    local fits = not SUFFIXES[source] or SUFFIXES[source][(name:match("%.([^.]+)$") or ""):lower()]
    local visible = name:sub(1, 1) ~= "." or start:sub(1, 1) == "."
    if #found < MOST and visible and vim.startswith(name, start) and (kind == "directory" or fits) then
      found[#found + 1] = ("data=%s:%s%s%s"):format(source, folder, name, kind == "directory" and "/" or "")
    end
  end
  table.sort(found)
  return found
end

local function programs()
  local found = {}
  for _, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    local name = line:match("^program%s+([%w_]+)")
    if name then
      found[#found + 1] = "program=" .. name
    end
  end
  return found
end

--- Words that go on from `lead`.
function M.run(lead)
  local words
  if vim.startswith(lead, "data=") then
    words = data(lead:sub(#"data=" + 1))
  elseif vim.startswith(lead, "program=") then
    words = programs()
  else
    words = { "svi", "nuts", "program=", "data=" }
    for _, key in ipairs(KEYS) do
      words[#words + 1] = key .. "="
    end
  end
  return vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, words)
end

return M
