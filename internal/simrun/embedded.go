//go:build !packed

package simrun

import (
	"embed"
	"io/fs"
)

//go:embed simgpu.py
var own embed.FS

// python is where simgpu.py lies.
var python fs.FS = own
