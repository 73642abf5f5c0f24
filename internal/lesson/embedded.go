//go:build !packed

package lesson

import (
	"embed"
	"io/fs"

	"github.com/warpline-ml/warpline/examples/lessons"
)

//go:embed text/*.txt assets
var own embed.FS

var (
	texts    fs.FS = own // of lessons and checks, in text
	assets   fs.FS = own // scripts and styles, in assets
	programs fs.FS = lessons.Source
)
