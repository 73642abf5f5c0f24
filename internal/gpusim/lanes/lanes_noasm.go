//go:build !amd64 || purego

package lanes

import "github.com/warpline-ml/warpline/internal/cpufeat"

var engines map[cpufeat.Level]*Engine
