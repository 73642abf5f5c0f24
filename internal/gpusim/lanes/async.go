package lanes

import (
	"unsafe"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// AsyncState is the copies of cp.async that the lanes of a warp have under way, in the order of their issue. The assembly
// uses the head of it while all lanes are in the same group.
type AsyncState struct {
	pending unsafe.Pointer // to the first of list
	Copies  int64          // in list
	room    int64          // the length of list; 0 keeps the assembly out
	Group   int64          // of the next copy; groups are waited for by number
	List    []AsyncCopy
	Groups  *[simt.WarpSize]int64 // by lane, once they differ
	Chance  bool                  // a write may fall on any moment
	Odd     bool                  // a copy under way is not one of 16 bytes by the whole warp, which is all the assembly ends
}

// AsyncCopy is one instruction's copies of some lanes.
type AsyncCopy struct {
	At     [simt.WarpSize]uint32 // in shared memory
	Data   [simt.WarpSize][16]byte
	Group  int64
	Lanes  uint32 // that have not waited for it
	Size   uint32
	Landed uint32                // lanes whose part is written
	Access int32                 // the ID of what the instruction accesses
	first  uint64                // where the first lane read, or the one of the copy that stood here before: a hint for the assembly
	From   [simt.WarpSize]uint64 // in global memory, and so many bytes from there; the assembly does not set them
	Read   [simt.WarpSize]uint8
}

// Reset forgets all copies. Where they land by chance, the assembly is kept out.
func (s *AsyncState) Reset(chance bool) {
	s.Copies, s.Group, s.Groups, s.Chance, s.Odd = 0, 0, nil, chance, false
	s.Admit()
}

// Admit lets the assembly in, or keeps it out.
func (s *AsyncState) Admit() {
	if s.room = 0; s.Groups == nil && !s.Chance && !s.Odd {
		s.room = int64(len(s.List))
	}
}

// Of is the group of a lane's next copy.
func (s *AsyncState) Of(lane int) int64 {
	if s.Groups != nil {
		return s.Groups[lane]
	}
	return s.Group
}

// Add makes room for a copy.
func (s *AsyncState) Add() *AsyncCopy {
	if int(s.Copies) == len(s.List) {
		const first = 8
		list := simt.Aligned[AsyncCopy](max(first, 2*len(s.List)))
		copy(list, s.List)
		s.List, s.pending = list, unsafe.Pointer(&list[0])
		s.Admit()
	}
	s.Copies++
	return &s.List[s.Copies-1]
}
