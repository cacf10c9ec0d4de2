#!/bin/sh
# Writes the addresses that Weir blocks into a list of nginx, and reloads nginx if they have changed. Run it every few seconds, one at a time.
# Where the console does not answer, or cannot name every address, the list stays as it is. Change the three places marked <--.
set -eu
list=/etc/nginx/weir-blocked.list
url='http://127.0.0.1:8090/v1/blocks?format=text&limit=otp'     # <-- the console, and the limits that may shut out an address
header=/etc/nginx/weir-token.header                             # <-- one line: Authorization: Bearer TOKEN, of scope read
curl -fsS --max-time 10 -H "@$header" -D "$list.headers" -o "$list.text" "$url"
grep -qi '^weir-complete: *true' "$list.headers"
sed 's/$/ 1;/' "$list.text" > "$list.next"
if ! cmp -s "$list.next" "$list"; then
  mv "$list.next" "$list"
  nginx -s reload                                               # <-- as your system reloads it
fi
