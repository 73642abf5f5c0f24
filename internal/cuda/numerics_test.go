package cuda_test

import (
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/conform"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// runCases runs conformance cases on a simulated machine of its own, which a finding fails, and returns the sums of the
// results' bytes in the order of the cases.
func runCases(t *testing.T, c simcuda.Config, cases []*conform.Case) []uint64 {
	t.Helper()
	dev := opener(t, c)()
	r, err := conform.NewRunner(dev)
	if err != nil {
		t.Fatal(err)
	}
	sums := make([]uint64, len(cases))
	for i, k := range cases {
		res := r.Run(k)
		if sums[i] = res.Sum; res.Status == conform.Failed || res.Status == conform.Unsupported {
			t.Error(res.String())
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	return sums
}

// TestNumerics: products are within tolerance when tensor cores sum exactly, and when they cut sums off, as those of A100
// and H100 do, instead of rounding them. A run takes one case in four, but all products, whose bits tell whether a tensor
// core took part.
func TestNumerics(t *testing.T) {
	codes := []ir.Code{ir.MatMul, ir.Linear, ir.Conv2d, ir.Conv2dGradInput, ir.Conv2dGradWeight, ir.Attention, ir.AttentionGrad}
	wide := []ir.Code{ir.Linear, ir.Attention, ir.AttentionGrad}
	seed := testutil.Seed(t)
	spread := testutil.NewSpread(t, seed, 4)
	for _, code := range codes {
		t.Run(code.String(), func(t *testing.T) {
			all := conform.Cases(conform.Options{Seed: seed, Short: true, Codes: []ir.Code{code}})
			cases := slices.DeleteFunc(slices.Collect(all), func(c *conform.Case) bool {
				switch c.Op.In(0).DType {
				case dtype.BF16, dtype.F16:
					return false
				case dtype.F32:
					return !slices.Contains(wide, code)
				}
				return true
			})
			if len(cases) == 0 {
				t.Fatal("no case")
			}
			if code != ir.MatMul {
				cases = testutil.Some(spread, cases, func(c *conform.Case) string { return c.Name })
			}
			cut := runCases(t, simcuda.Config{Checks: gpusim.AllChecks, Numerics: gpusim.Truncating}, cases)
			exact := runCases(t, simcuda.Config{Numerics: gpusim.Exact}, cases)
			if code == ir.MatMul && (slices.Equal(cut, exact) || slices.Equal(cut, runCases(t, simcuda.Config{}, cases))) {
				t.Error("the same bits as with other sums: no tensor core took part")
			}
		})
	}
}

// TestOrders: the order of blocks, warps and lanes shows in no result and makes for no finding. Each of four orders takes
// one of eight cases, and of these a run takes one in four; the natural order is that of all other tests.
func TestOrders(t *testing.T) {
	codes := []ir.Code{ir.Copy, ir.Cat, ir.Sum, ir.ArgMax, ir.CumSum, ir.Softmax, ir.LayerNorm, ir.LayerNormGrad, ir.BatchNorm,
		ir.CrossEntropy, ir.LinearCrossEntropy, ir.LinearCrossEntropyGrad, ir.SumSquares, ir.EmbeddingGrad, ir.ScatterAdd, ir.MatMul, ir.Conv2dGradWeight, ir.Attention, ir.AttentionGrad}
	r := testutil.Rand(t)
	options := conform.Options{Seed: r.Uint64(), Short: true, Codes: codes}
	orders := []simcuda.Config{{Seed: 1}, {Seed: 2, Schedule: gpusim.Independent}, {Seed: 3}, {Seed: 4, Schedule: gpusim.Independent}}
	parts := make([][]*conform.Case, 2*len(orders))
	at := r.IntN(len(parts))
	for c := range conform.Cases(options) {
		if dt := c.Op.In(0).DType; dt.IsFloat() && dt != dtype.F64 {
			parts[at%len(parts)] = append(parts[at%len(parts)], c)
			at++
		}
	}
	spread := testutil.NewSpread(t, options.Seed, 4)
	for i, order := range orders {
		parts[i] = testutil.Some(spread, parts[i], func(c *conform.Case) string { return c.Name })
		order.Checks = gpusim.AllChecks
		natural := runCases(t, simcuda.Config{}, parts[i])
		for j, sum := range runCases(t, order, parts[i]) {
			if sum != natural[j] {
				t.Errorf("seed %d: other bits than in the natural order: %s", order.Seed, parts[i][j].Name)
			}
		}
	}
}
