//go:build !packed

package live

import (
	"embed"
	"io/fs"
)

//go:embed page
var own embed.FS

// pages are the files of the page, in the folder page.
var pages fs.FS = own
