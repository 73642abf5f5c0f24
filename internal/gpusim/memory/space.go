package memory

import "github.com/warpline-ml/warpline/internal/ptx"

// Window is the start of a space in generic addressing.
func Window(s ptx.Space) uint64 {
	switch s {
	case ptx.Shared:
		return sharedBase
	case ptx.Local:
		return localBase
	case ptx.Param:
		return paramBase
	}
	return 0
}

// SpaceAt is the space that a generic address is in.
func SpaceAt(addr uint64) ptx.Space {
	switch {
	case addr >= sharedBase && addr < localBase: // with the blocks of the cluster
		return ptx.Shared
	case addr >= localBase && addr < localBase+WindowSize:
		return ptx.Local
	case addr >= paramBase && addr < paramBase+WindowSize:
		return ptx.Param
	}
	return ptx.Global
}
