--- A page on this machine only: the SVG, the nodes of the cursor, and clicks back. The path holds a secret, so that no
--- other page of the browser can read it.
local M = {}

-- bytes of a request: ours are a line and what a browser says of itself
local MOST = 65536
local server, port, secret
local state = { turn = 0, name = "", svg = "", stale = false, nodes = {} }
local clicked

local HTML = [[<!doctype html><meta charset="utf-8"><title>QVR</title>
<style>
body{margin:0;font:14px system-ui;background:#fff;color:#222}header{padding:8px 14px;border-bottom:1px solid #ddd}
main{padding:14px;overflow:auto}svg{max-width:100%;height:auto}.node{cursor:pointer}
.node.current path,.node.current ellipse,.node.current polygon{stroke-width:3.5;stroke:#d6336c}
#stale{color:#b35c00;margin-left:10px}
</style><header><b id="name"></b><span id="stale"></span></header><main id="main"></main>
<script>
let turn=-1;const get=p=>fetch(location.pathname+p,{cache:"no-store"});
async function poll(){try{const s=await(await get("/state?turn="+turn)).json();
if(s.svg!==undefined){turn=s.turn;document.title=s.name;document.getElementById("name").textContent=s.name;
document.getElementById("main").innerHTML=s.svg.slice(s.svg.indexOf("<svg"));
for(const a of document.querySelectorAll("svg a"))a.replaceWith(...a.childNodes);
for(const g of document.querySelectorAll("g.node"))g.onclick=()=>get("/click?"+encodeURIComponent(g.id.slice(5)));}
document.getElementById("stale").textContent=s.stale?"stale: the file has errors":"";
for(const g of document.querySelectorAll("g.node"))g.classList.toggle("current",s.nodes.includes(g.id.slice(5)));
}catch(e){document.getElementById("stale").textContent="the editor is gone";}setTimeout(poll,250);}poll();
</script>]]

local function answer(socket, status, kind, body)
  local head = ("HTTP/1.1 %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: %d\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"):format(status, kind, #body)
  socket:write(head .. body, function()
    if not socket:is_closing() then
      socket:close()
    end
  end)
end

local function route(socket, target)
  local path, query = target:match("^/" .. secret .. "([^?]*)%??(.*)$")
  if path == "" then
    answer(socket, "200 OK", "text/html", HTML)
  elseif path == "/state" then
    local news = { turn = state.turn, nodes = state.nodes, stale = state.stale }
    if tonumber(query:match("turn=(-?%d+)")) ~= state.turn then
      news.svg, news.name = state.svg, state.name
    end
    answer(socket, "200 OK", "application/json", vim.json.encode(news))
  elseif path == "/click" then
    local id = vim.uri_decode(query)
    vim.schedule(function()
      if clicked then
        clicked(id)
      end
    end)
    answer(socket, "200 OK", "text/plain", "")
  else
    answer(socket, "404 Not Found", "text/plain", "")
  end
end

function M.start()
  if server then
    return
  end
  secret = assert(vim.uv.random(16)):gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end)
  server = assert(vim.uv.new_tcp())
  assert(server:bind("127.0.0.1", 0))
  port = server:getsockname().port
  server:listen(16, function()
    local socket = assert(vim.uv.new_tcp())
    server:accept(socket)
    local text = ""
    socket:read_start(function(_, chunk)
      text = text .. (chunk or "")
      if #text > MOST then
        socket:close()
        return
      end
      local target = text:match("^GET (%S+) HTTP/")
      if target and text:find("\r\n\r\n", 1, true) then
        socket:read_stop()
        route(socket, target)
      elseif not chunk and not socket:is_closing() then
        socket:close()
      end
    end)
  end)
end

function M.stop()
  if server then
    server:close()
    server = nil
  end
end

function M.url()
  return ("http://127.0.0.1:%d/%s"):format(port, secret)
end

function M.show(name, svg, stale, click)
  state = { turn = state.turn + 1, name = name, svg = svg, stale = stale, nodes = state.nodes }
  clicked = click
end

function M.highlight(nodes)
  state.nodes = nodes
end

return M
