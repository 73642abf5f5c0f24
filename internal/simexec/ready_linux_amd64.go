package simexec

import _ "embed"

// ready is the library made beforehand: sh libcuda/build.sh.
//
//go:embed libcuda/libcuda_linux_amd64.so
var ready []byte
