//go:build !nocuda && !(windows || (linux && (amd64 || arm64)))

package dl

import "runtime"

const unavailable = "shared libraries are not opened on " + runtime.GOOS + "/" + runtime.GOARCH
