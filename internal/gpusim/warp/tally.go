package warp

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// Spread turns the counts of chains into those of blocks.
func (t *Tally) Spread(k *Code) {
	for b, n := range t.chains {
		for i := b; n > 0 && i <= k.Blocks[b].Chain.Last; i++ {
			t.Execs[i] += n
			t.Lanes[i] += simt.WarpSize * n
		}
	}
}

// Amount is how many instructions warps executed, how many sectors they touched and how many passes over the banks they took.
func (t *Tally) Amount(k *Code) (instructions, sectors, wavefronts uint64) {
	for b, n := range t.Execs {
		instructions += n * uint64(k.Blocks[b].N)
	}
	for b, n := range t.chains {
		for i := b; n > 0 && i <= k.Blocks[b].Chain.Last; i++ {
			instructions += n * uint64(k.Blocks[i].N)
		}
	}
	for i := range t.Sites {
		sectors += t.Sites[i].Sectors
		wavefronts += t.Sites[i].Wavefronts
	}
	return instructions, sectors, wavefronts
}

// Tally counts what was executed: by block, how often, by how many lanes and how often lanes parted behind it, and by block how
// often its chain; by instruction the transactions that it caused, where they are counted.
type Tally struct {
	Execs, Lanes, Parted, chains []uint64
	Branches                     uint64
	Sites                        []MemoryCounts // by Site.Id; empty where nothing was counted
}

// NewTally counts nothing yet.
func NewTally(k *Code) Tally {
	n := len(k.Blocks)
	all := make([]uint64, 4*n)
	return Tally{Execs: all[:n:n], Lanes: all[n : 2*n : 2*n], Parted: all[2*n : 3*n : 3*n], chains: all[3*n:]}
}

func (t *Tally) reset() {
	clear(t.Execs)
	clear(t.Lanes)
	clear(t.Parted)
	clear(t.chains)
	t.Branches, t.Sites = 0, t.Sites[:0]
}

// site is the counts of an instruction.
func (t *Tally) site(id uint32) *MemoryCounts {
	if n := int(id) + 1; n > len(t.Sites) {
		old := len(t.Sites)
		t.Sites = slices.Grow(t.Sites, n-old)[:n]
		clear(t.Sites[old:])
	}
	return &t.Sites[id]
}

// Add adds what another tally counted.
func (t *Tally) Add(o *Tally) {
	for i := range o.Execs {
		t.Execs[i] += o.Execs[i]
		t.Lanes[i] += o.Lanes[i]
		t.Parted[i] += o.Parted[i]
		t.chains[i] += o.chains[i]
	}
	t.Branches += o.Branches
	for i := range o.Sites {
		t.site(uint32(i)).Add(&o.Sites[i])
	}
}
