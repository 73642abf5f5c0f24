//go:build packed

package lab

import "github.com/warpline-ml/warpline/internal/tables"

var (
	assets  = tables.Folder("internal/lab") // scripts and styles of the pages, in assets
	kernels = tables.Folder("examples/sim")
)
