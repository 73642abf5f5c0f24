//go:build packed

package kernels

import (
	"archive/zip"
	_ "embed"
	"io/fs"
	"strings"

	"github.com/warpline-ml/warpline/internal/tables"
)

// archive has the files of all targets: go run ./gen -pack makes it, and nobody commits it.
//
//go:embed kernels.pack
var archive string

// embedded unpacks the archive, which takes some 50 ms and 9 MB.
func embedded() (fs.FS, error) {
	files := tables.Unpack(archive)
	return zip.NewReader(strings.NewReader(files), int64(len(files)))
}
