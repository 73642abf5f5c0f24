//go:build packed

package live

import "github.com/warpline-ml/warpline/internal/tables"

// pages are the files of the page, in the folder page.
var pages = tables.Folder("internal/live")
