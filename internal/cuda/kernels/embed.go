//go:build !packed

package kernels

import (
	"embed"
	"io/fs"
)

//go:embed kernels.json ptx/sm_75 ptx/sm_80
var text embed.FS

func embedded() fs.FS { return text }
