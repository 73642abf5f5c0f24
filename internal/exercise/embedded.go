//go:build !packed

package exercise

import (
	"embed"
	"io/fs"
)

//go:embed _files
var own embed.FS

// files has a folder for each exercise in Go, and one for the puzzles. Programs end in .go.txt, so that no tool takes them for
// packages of this module: what an exercise begins with fails its tests.
var files fs.FS = own
