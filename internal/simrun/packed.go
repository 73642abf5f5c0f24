//go:build packed

package simrun

import "github.com/warpline-ml/warpline/internal/tables"

// python is where simgpu.py lies.
var python = tables.Folder("internal/simrun")
