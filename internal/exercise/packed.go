//go:build packed

package exercise

import "github.com/warpline-ml/warpline/internal/tables"

// files has a folder for each exercise in Go, and one for the puzzles. Programs end in .go.txt, so that no tool takes them for
// packages of this module: what an exercise begins with fails its tests.
var files = tables.Folder("internal/exercise")
