--- What the drives of a real Neovim share: steps that tell how they went, and waiting.
local M = { messages = {} }

vim.opt.swapfile = false
vim.notify = function(text)
  table.insert(M.messages, text)
end

function M.step(name, act)
  local good, problem = xpcall(act, debug.traceback)
  io.stdout:write(("%s %s\n"):format(good and "ok" or "FAILED", name))
  if not good then
    io.stdout:write(problem .. "\nmessages: " .. vim.inspect(M.messages) .. "\n")
    os.exit(1)
  end
end

function M.eventually(what, test, seconds)
  local found
  local good = vim.wait((seconds or 20) * 1000, function()
    found = test()
    return found and true or false
  end, 50)
  assert(good, "not within time: " .. what)
  return found
end

--- The first message that holds `text`.
function M.told(text)
  for _, message in ipairs(M.messages) do
    if message:find(text, 1, true) then
      return message
    end
  end
end

function M.attached()
  return M.eventually("attached", function()
    return vim.lsp.get_clients({ bufnr = 0, name = "qvr" })[1]
  end)
end

return M
