//go:build !linux

package hostmem

import "errors"

func readProcess(int, []byte, uintptr) (int, error)  { return 0, errors.ErrUnsupported }
func writeProcess(int, []byte, uintptr) (int, error) { return 0, errors.ErrUnsupported }
