//go:build !linux

package nvkernel

import "errors"

// errSystem is of systems where the driver has no such nodes.
var errSystem = errors.New("ENOSYS")

// Version is that of the module; it is for Linux alone.
func Version(string) (string, error) { return "", errSystem }

// Cards are those that the driver has brought up; it is for Linux alone.
func Cards(string) ([]Card, error) { return nil, errSystem }

// InitializeUVM readies unified memory; it is for Linux alone.
func InitializeUVM(string) (uint32, error) { return 0, errSystem }
