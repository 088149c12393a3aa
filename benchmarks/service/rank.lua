-- Requests for wrk: those of a file, in turn. The first line is the path, the second the key.
local lines = {}
for line in io.lines(os.getenv("BENCH_REQUESTS")) do lines[#lines + 1] = line end
local path, key = lines[1], lines[2]
local headers = {["Content-Type"] = "application/json"}
if key ~= "" then headers["Authorization"] = "Bearer " .. key end
local prepared, at = {}, 0

function init(args)
  for i = 3, #lines do prepared[i - 2] = wrk.format("POST", path, headers, lines[i]) end
end

function request()
  at = at % #prepared + 1
  return prepared[at]
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format("RESULT %d %d %d %.3f %.3f\n", summary.requests, summary.duration,
    errors.status + errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
