//go:build !unix && !windows

package main

import "os"

// terminalWidth knows no terminals on this system.
func terminalWidth(*os.File) (int, bool) { return 0, false }
