package simt

import "fmt"

// Gap is bytes [Lo, Hi) of shared or local memory between arrays, behind one of so many bytes.
type Gap struct {
	Lo, Hi int64
	After  string // the array before, empty for none
	Size   int64
	Shift  int64 // by how much what is behind lies further on for this gap and those before it
}

// FindGap is the gap that an access touches, nil if it touches none.
func FindGap(gaps []Gap, addr int64, size int) *Gap {
	for i := range gaps {
		if g := &gaps[i]; addr < g.Hi && addr+int64(size) > g.Lo {
			return g
		}
	}
	return nil
}

// Describe says where an address is that lies in the gap.
func (g *Gap) Describe(addr int64) string {
	if g.After == "" {
		return fmt.Sprintf("%d bytes past the end of an array, %d before the next", addr-g.Lo, g.Hi-addr)
	}
	return fmt.Sprintf("%d bytes past the end of %s of %d bytes", addr-g.Lo, g.After, g.Size)
}
