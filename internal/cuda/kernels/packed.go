//go:build packed

package kernels

import (
	_ "embed"
	"io/fs"

	"github.com/warpline-ml/warpline/internal/tables"
)

// archive has the files of all targets: go run ./gen -pack makes it, and nobody commits it.
//
//go:embed kernels.pack
var archive string

// embedded unpacks the archive, which takes some 100 ms and 12 MB.
func embedded() fs.FS { return tables.Files(archive) }

func init() { tables.Keep("internal/cuda/kernels/kernels.pack", archive) }
