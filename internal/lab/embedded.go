//go:build !packed

package lab

import (
	"embed"
	"io/fs"

	"github.com/warpline-ml/warpline/examples/sim"
)

//go:embed assets
var own embed.FS

var (
	assets  fs.FS = own // scripts and styles of the pages, in assets
	kernels fs.FS = sim.Files
)
