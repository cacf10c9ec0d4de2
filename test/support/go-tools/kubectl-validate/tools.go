//go:build tools

// Package tools names the program that is built here; go.sum pins it and all it is made of by hash.
package tools

import _ "sigs.k8s.io/kubectl-validate"
