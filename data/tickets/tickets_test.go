package tickets_test

import (
	"hash/fnv"
	"math"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/tickets"
	"github.com/warpline-ml/warpline/tensor"
)

// TestDraw: tickets are the same each time, differ from one another, and have the shapes, masks and shares that the package tells.
func TestDraw(t *testing.T) {
	env, err := tensor.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	train, test := tickets.Split(200, 100)
	if train.Len() != 200 || test.Len() != 100 {
		t.Fatal(train.Len(), test.Len())
	}
	seen, counts, tokens := map[uint64]bool{}, [3]int{}, 0
	for _, set := range []tickets.Set{train, test} {
		for b, err := range data.Batches(env, set, data.Config{Size: 50}) {
			if err != nil {
				t.Fatal(err)
			}
			if s := b.X.Shape(); s[0] != 50 || s[1] != 128 || s[2] != 768 || b.Mask.Dim(1) != 128 {
				t.Fatal(s, b.Mask.Shape())
			}
			x, mask := tensor.Data[float32](b.X), tensor.Data[bool](b.Mask)
			for i, y := range tensor.Data[int64](b.Y) {
				counts[y]++
				h := fnv.New64()
				for _, v := range x[i*128*768:][:1000] {
					h.Write([]byte{byte(math.Float32bits(v)), byte(math.Float32bits(v) >> 8)})
				}
				if seen[h.Sum64()] {
					t.Error("a ticket comes twice")
				}
				seen[h.Sum64()] = true
				for k := 1; k < 128; k++ {
					if mask[i*128+k] && !mask[i*128+k-1] {
						t.Fatal("a token behind padding")
					}
				}
				for k := range 128 {
					if mask[i*128+k] {
						tokens++
					}
				}
			}
		}
	}
	for _, n := range counts {
		if n < 75 || n > 125 { // 100 and three deviations
			t.Errorf("outcomes come %v times", counts)
		}
	}
	if mean := float64(tokens) / 300; mean < 69 || mean > 83 { // 76 and three and a half deviations of 1.75
		t.Errorf("%.1f tokens in a ticket", mean)
	}
	var x, again [128 * 768]float32
	var mask [128]bool
	if tickets.Draw(x[:], mask[:], 3, -5) != tickets.Draw(again[:], mask[:], 3, -5) || x != again {
		t.Error("a ticket is another when drawn again")
	}
}
