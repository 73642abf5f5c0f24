// Package numbers reads and writes numbers of 1, 2, 4 or 8 bytes, little-endian, as devices and files have them, where the size is known
// at run time only.
package numbers

import "encoding/binary"

// Get is the number in the first bytes of p.
func Get(p []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(p))
	case 4:
		return uint64(binary.LittleEndian.Uint32(p))
	}
	return binary.LittleEndian.Uint64(p)
}

// Put writes the low bytes of v into the first of p.
func Put(p []byte, size int, v uint64) {
	switch size {
	case 1:
		p[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(p, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(p, uint32(v))
	default:
		binary.LittleEndian.PutUint64(p, v)
	}
}
