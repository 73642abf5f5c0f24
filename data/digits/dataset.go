package digits

import (
	"github.com/warpline-ml/warpline/data"
)

// DefaultSeed names the set that [Split] hands out.
const DefaultSeed = 1

// Set is a run of consecutive samples of the set that Seed names: pictures [1,28,28] and labels 0 to 9. It draws them
// whenever they are read, and keeps none. It may be used by several goroutines at once.
type Set struct {
	Seed  uint64
	First int // index of the first sample; any index is valid
	N     int
}

// Split returns train and test samples of the default set, which have none in common. The test set is the same whatever
// the size of the other.
func Split(train, test int) (data.Source[data.Pair], data.Source[data.Pair]) {
	return SplitSeed(DefaultSeed, train, test)
}

// SplitSeed is [Split] of the set that seed names.
func SplitSeed(seed uint64, train, test int) (data.Source[data.Pair], data.Source[data.Pair]) {
	return Set{seed, 0, train}, Set{seed, -test, test}
}

// Len implements [data.Source].
func (s Set) Len() int { return max(s.N, 0) }

// Fields implements [data.Source].
func (s Set) Fields() []data.Field { return data.PairFields([]int{1, side, side}) }

// Fill implements [data.Source].
func (s Set) Fill(_ *data.Pair, row data.Row, i int) error {
	label := Draw(data.Values[float32](row, 0), s.Seed, s.First+i)
	data.Values[int64](row, 1)[0] = int64(label)
	return nil
}
