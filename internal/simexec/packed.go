//go:build linux && packed

package simexec

import "github.com/warpline-ml/warpline/internal/tables"

// library is what makes libcuda.so.1, and one that is made, in the folder libcuda.
var library = tables.Folder("internal/simexec")
