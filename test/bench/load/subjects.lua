-- For wrk: each request for the next of so many subjects (first argument), in turn; figures as one line of JSON at the
-- end.

function init(args)
  subjects = tonumber(args[1])
  at = 0
end

function request()
  at = at % subjects + 1
  return 'GET /v1/things HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Weir-Subject: s' .. at .. '\r\n\r\n'
end

function done(summary, latency)
  local failed = summary.errors
  io.write(string.format(
    '{"requests":%d,"tookUs":%d,"p50Us":%d,"p99Us":%d,"p999Us":%d,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9),
    failed.status, failed.connect + failed.read + failed.write + failed.timeout
  ))
end
