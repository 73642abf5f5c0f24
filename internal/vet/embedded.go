//go:build !packed

package vet

import (
	"embed"
	"io/fs"
)

//go:embed programs
var own embed.FS

// programs are the examples, in the folder of that name.
var programs fs.FS = own
