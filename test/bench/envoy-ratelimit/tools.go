//go:build tools

// Package reference names the program that is built here; go.sum pins it and all it is made of by hash.
package reference

import _ "github.com/envoyproxy/ratelimit/src/service_cmd"
