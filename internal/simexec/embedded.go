//go:build linux && !packed

package simexec

import (
	"embed"
	"io/fs"
)

//go:embed libcuda/libcuda.c libcuda/functions.h libcuda/build.sh libcuda/libcuda_linux_amd64.so
var own embed.FS

// library is what makes libcuda.so.1, and one that is made, in the folder libcuda.
var library fs.FS = own
