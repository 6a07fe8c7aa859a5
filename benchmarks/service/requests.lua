-- One kind of request, again and again, for wrk:
-- wrk --script requests.lua URL -- METHOD PATHS BODY [HEADER...]
-- PATHS and BODY are files: a path a line, taken in turns; BODY may be "-" for none. Each HEADER is
-- "Name: value"; a request with a body also has an Idempotency-Key of its own. Prints one line of
-- JSON when it is done.

local threads = {}

function setup(thread)
  table.insert(threads, thread)
  thread:set("thread_number", #threads)
end

function init(args)
  headers = {}
  method = args[1]
  paths = {}
  for line in io.lines(args[2]) do
    table.insert(paths, line)
  end
  if args[3] ~= "-" then
    local file = assert(io.open(args[3]))
    body = file:read("*a")
    file:close()
    headers["Content-Type"] = "application/json"
  end
  for i = 4, #args do
    local name, value = args[i]:match("^(%S+): (.*)$")
    headers[name] = value
  end
  run = string.format("%d-%d", os.time(), math.random(1e9) + thread_number)
  num_sent = 0
  num_2xx, num_3xx, num_4xx, num_5xx = 0, 0, 0, 0
end

function request()
  num_sent = num_sent + 1
  if body then
    headers["Idempotency-Key"] = run .. "-" .. num_sent
  end
  return wrk.format(method, paths[(num_sent - 1) % #paths + 1], headers, body)
end

function response(status)
  if status < 300 then
    num_2xx = num_2xx + 1
  elseif status < 400 then
    num_3xx = num_3xx + 1
  elseif status < 500 then
    num_4xx = num_4xx + 1
  else
    num_5xx = num_5xx + 1
  end
end

function done(summary, latency, requests)
  local function total(name)
    local sum = 0
    for _, thread in ipairs(threads) do
      sum = sum + thread:get(name)
    end
    return sum
  end
  local errors = summary.errors
  io.write(string.format(
    '{"seconds": %f, "p50_ms": %f, "p99_ms": %f, "num_2xx": %d, "num_3xx": %d, "num_4xx": %d, '
      .. '"num_5xx": %d, "num_broken": %d}\n',
    summary.duration / 1e6,
    latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3,
    total("num_2xx"),
    total("num_3xx"),
    total("num_4xx"),
    total("num_5xx"),
    errors.connect + errors.read + errors.write + errors.timeout
  ))
end
