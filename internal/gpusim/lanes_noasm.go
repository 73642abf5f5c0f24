//go:build !amd64 || purego

package gpusim

import "github.com/warpline-ml/warpline/internal/cpufeat"

var engines map[cpufeat.Level]*engine
