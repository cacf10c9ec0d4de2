-- Asks Weir before a request goes on, for HAProxy 2.6 or later.
--
--   global:    lua-load-per-thread /etc/haproxy/weir.lua
--   frontend:  http-request lua.weir abns@weir closed
--
-- The first argument is a listener of HAProxy's own whose servers are Weir's API listeners: there it has retries,
-- health checks and timeouts, which the client inside Lua has not. The second decides what happens to requests while
-- Weir cannot be reached: `closed` refuses them with 503, `open` serves them uncounted. A refusal of Weir's goes to the
-- client as it is. Of an allowed request the upstream is told who calls, and txn.weir_ratelimit,
-- txn.weir_ratelimit_policy and txn.weir_decision hold what the response is to carry. txn.weir_drop is there for a
-- request that is to get no answer. txn.weir_allowed is there for a request that may go on: HAProxy itself goes on
-- after an error in a script.

local timeout_ms = 5000 -- above those of the listener, which end it before

-- The question has to fit into a buffer (tune.bufsize, less tune.maxrewrite). Refused beyond that, also with `open`:
-- else a client would be served uncounted for sending more.
local question_bytes_max = 28000

-- Headers of the client that are not for Weir: those of the body and the connection, and whatever Weir would believe.
local withheld = {
  ["connection"] = true, ["content-length"] = true, ["content-type"] = true, ["expect"] = true, ["forwarded"] = true,
  ["host"] = true, ["keep-alive"] = true, ["te"] = true, ["transfer-encoding"] = true, ["upgrade"] = true,
  ["x-original-method"] = true, ["x-original-uri"] = true, ["x-original-url"] = true,
  ["x-forwarded-for"] = true, ["x-forwarded-method"] = true, ["x-forwarded-uri"] = true,
  ["traceparent"] = true, ["tracestate"] = true,
  ["x-weir-subject"] = true, ["x-weir-plan"] = true, -- and every other header of identity.trustedHeaders
}

local told_upstream = { "x-weir-subject", "x-weir-plan", "x-weir-key-id", "x-weir-degraded" }
local told_client = { "ratelimit", "ratelimit-policy", "weir-decision", "retry-after", "www-authenticate", "weir-challenge" }

local function values(list)
  local found = {}
  for _, value in pairs(list) do found[#found + 1] = value end
  return found
end

-- The headers of the question, and their size with what each costs in a buffer.
local function question(txn)
  local headers, bytes = {}, #txn.f:pathq()
  for name, list in pairs(txn.http:req_get_headers()) do
    if not withheld[name] then
      headers[name] = values(list)
      for _, value in ipairs(headers[name]) do bytes = bytes + #name + #value + 8 end
    end
  end
  headers["x-original-method"] = { txn.f:method() }
  headers["x-original-uri"] = { txn.f:pathq() }
  headers["x-forwarded-for"] = { txn.f:src() }
  return headers, bytes
end

local function first(answer, name)
  local list = answer.headers and answer.headers[name]
  return list and list[0]
end

local function refuse(txn, status, headers, body)
  local reply = txn:reply({ status = status })
  for name, value in pairs(headers) do reply:add_header(name, value) end
  reply:add_header("content-type", "application/problem+json")
  reply:add_header("cache-control", "no-store")
  if txn.f:method() ~= "HEAD" then reply:set_body(body) end
  txn:done(reply)
end

local function refuse_plainly(txn, status, title, detail)
  refuse(txn, status, {},
    string.format('{"type":"about:blank","title":"%s","status":%d,"detail":"%s"}', title, status, detail))
end

-- What HAProxy itself says when it cannot reach Weir is no problem+json. A 500 is a fault of Weir's.
local function is_away(answer, is_problem)
  local status = answer.status or 503
  return status == 500 or (not is_problem and status >= 500)
end

core.register_action("weir", { "http-req" }, function(txn, weir, when_away)
  -- None of CONNECT, and of "OPTIONS *".
  if not txn.f:pathq() then return refuse_plainly(txn, 400, "Bad request", "The request has no path.") end
  local headers, bytes = question(txn)
  if bytes > question_bytes_max then
    return refuse_plainly(txn, 431, "Request header fields too large", "The headers are too large to be checked.")
  end
  local answer = core.httpclient():get({
    url = "http://weir/v1/authorize?request_id=" .. txn.f:uuid(),
    dst = weir,
    headers = headers,
    timeout = timeout_ms,
  })
  for _, name in ipairs(told_upstream) do txn.http:req_del_header(name) end

  if answer.status == 200 then
    for _, name in ipairs(told_upstream) do
      local value = first(answer, name)
      if value and value ~= "" then txn.http:req_set_header(name, value) end
    end
    -- the header that carried the key: between the client and Weir
    local credential = first(answer, "x-weir-credential")
    if credential and credential ~= "" then txn.http:req_del_header(credential) end
    txn:set_var("txn.weir_ratelimit", first(answer, "ratelimit"))
    txn:set_var("txn.weir_ratelimit_policy", first(answer, "ratelimit-policy"))
    txn:set_var("txn.weir_decision", first(answer, "weir-decision"))
    return txn:set_var("txn.weir_allowed", "yes")
  end

  local is_problem = first(answer, "content-type") == "application/problem+json"
  if is_away(answer, is_problem) then
    if when_away == "open" then return txn:set_var("txn.weir_allowed", "yes") end
    return refuse_plainly(txn, 503, "Service unavailable", "The request could not be checked.")
  end
  if not is_problem then return refuse_plainly(txn, 400, "Bad request", "The request could not be read.") end
  if first(answer, "weir-on-exceed") == "drop" then
    return txn:set_var("txn.weir_drop", "yes")
  end
  local passed_on = {}
  for _, name in ipairs(told_client) do passed_on[name] = first(answer, name) end
  refuse(txn, answer.status, passed_on, answer.body)
end, 2)
