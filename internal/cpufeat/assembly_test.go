//go:build !purego

package cpufeat

import "runtime"

const assembly = runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64"
