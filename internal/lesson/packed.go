//go:build packed

package lesson

import "github.com/warpline-ml/warpline/internal/tables"

var (
	texts    = tables.Folder("internal/lesson") // of lessons and checks, in text
	assets   = texts                            // scripts and styles, in assets
	programs = tables.Folder("examples/lessons")
)
