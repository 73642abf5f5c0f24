//go:build !purego

package cpufeat

import "encoding/binary"

// cpuid runs the instruction of that name, sub-leaf 0.
func cpuid(leaf uint32) (a, b, c, d uint32)

// identify reads the maker, family and model.
func identify() ID {
	_, b, c, d := cpuid(0)
	maker := binary.LittleEndian.AppendUint32(nil, b)
	maker = binary.LittleEndian.AppendUint32(maker, d)
	maker = binary.LittleEndian.AppendUint32(maker, c)
	signature, _, _, _ := cpuid(1)
	return decode(string(maker), signature)
}
