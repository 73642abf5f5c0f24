package warp

import "github.com/warpline-ml/warpline/internal/gpusim/simt"

// Spread turns the counts of chains into those of blocks.
func (t *Tally) Spread(k *Code) {
	for b, n := range t.chains {
		for i := b; n > 0 && i <= k.Blocks[b].Chain.Last; i++ {
			t.Execs[i] += n
			t.Lanes[i] += simt.WarpSize * n
		}
	}
}

// Tally counts what was executed: by block, how often and by how many lanes, and by block how often its chain.
type Tally struct {
	Execs, Lanes, chains []uint64
	Branches, Divergent  uint64
	Mem                  MemoryCounts
}

// NewTally counts nothing yet.
func NewTally(k *Code) Tally {
	n := len(k.Blocks)
	all := make([]uint64, 3*n)
	return Tally{Execs: all[:n:n], Lanes: all[n : 2*n : 2*n], chains: all[2*n:]}
}

func (t *Tally) reset() {
	clear(t.Execs)
	clear(t.Lanes)
	clear(t.chains)
	t.Branches, t.Divergent, t.Mem = 0, 0, MemoryCounts{}
}

// Add adds what another tally counted.
func (t *Tally) Add(o *Tally) {
	for i := range o.Execs {
		t.Execs[i] += o.Execs[i]
		t.Lanes[i] += o.Lanes[i]
		t.chains[i] += o.chains[i]
	}
	t.Branches += o.Branches
	t.Divergent += o.Divergent
	t.Mem.add(o.Mem)
}
