//go:build packed

package kernels

import (
	"archive/zip"
	_ "embed"
	"io/fs"
	"strings"
)

// archive has the files of all targets: go run ./gen -pack makes it, and nobody commits it.
//
//go:embed kernels.pack
var archive string

func embedded() (fs.FS, error) { return zip.NewReader(strings.NewReader(archive), int64(len(archive))) }
