package cuda

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// headOf plans a head of n rows of width k, with the sum of the losses and both gradients.
func headOf(t *testing.T, dt dtype.DType, n, k, classes int) *device.Kernel {
	t.Helper()
	op := ir.New(ir.LinearCrossEntropy, ir.Attr{Flag: ir.Total | ir.GradX | ir.GradW}, ir.Dense(dt, n, k), ir.Dense(dt, classes, k), ir.Dense(dtype.I64, n))
	p, err := Plan(Full, op)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func blocks(k *device.Kernel) (all int64) {
	for i := range k.Steps {
		all += k.Steps[i].Blocks()
	}
	return all
}

// TestHeadOfGPT2 is what the head of GPT-2 costs at 64×1024 tokens: few kernels, five passes over the logits, no memory for
// all of them, products that fill a card, and next to nothing for a vocabulary that is no multiple of 64.
func TestHeadOfGPT2(t *testing.T) {
	const n, k, classes = 64 << 10, 768, 50257
	for _, dt := range []dtype.DType{dtype.BF16, dtype.F32} {
		own, even := headOf(t, dt, n, k, classes), headOf(t, dt, n, k, 50304)
		logits := int64(dt.Size()) * n * classes
		if own.Bytes > 6*logits || own.Written() > 5*logits/2 {
			t.Errorf("%s: %d bytes, %d written, for logits of %d", dt, own.Bytes, own.Written(), logits)
		}
		if own.Workspace > 5<<29 || own.Workspace > logits/3 {
			t.Errorf("%s: %d bytes of scratch memory for logits of %d", dt, own.Workspace, logits)
		}
		if len(own.Steps) != len(even.Steps) || len(own.Steps) > 33 {
			t.Errorf("%s: %d kernels, %d for a vocabulary of whole tiles", dt, len(own.Steps), len(even.Steps))
		}
		if a, b := float64(own.Bytes)/float64(even.Bytes), float64(blocks(own))/float64(blocks(even)); a > 1.05 || b > 1.05 {
			t.Errorf("%s: %.3f times the bytes and %.3f times the blocks of a vocabulary of whole tiles", dt, a, b)
		}
		for i := range own.Steps {
			s := &own.Steps[i]
			if name := s.Name; strings.HasPrefix(name, "gemm") && (!strings.HasPrefix(name, "gemm128") || s.Blocks() < 264) {
				t.Errorf("%s: %s with %d blocks", dt, name, s.Blocks())
			}
		}
	}
}

// TestHeadWithoutGradients makes one product of each chunk, and writes nothing but logits and losses.
func TestHeadWithoutGradients(t *testing.T) {
	bf16, f32 := dtype.BF16, dtype.F32
	for _, c := range []struct {
		flag     ir.Flag
		products int
	}{{0, 1}, {ir.Total, 1}, {ir.Total | ir.GradX, 2}, {ir.Total | ir.GradW, 2}} {
		for _, dt := range []dtype.DType{bf16, f32} {
			op := ir.New(ir.LinearCrossEntropy, ir.Attr{Flag: c.flag}, ir.Dense(dt, 4096, 64), ir.Dense(dt, 50000, 64), ir.Dense(dtype.I64, 4096))
			k, err := Plan(Full, op)
			if err != nil {
				t.Fatal(err)
			}
			products, rows := 0, 0
			for i := range k.Steps {
				switch name := k.Steps[i].Name; {
				case strings.HasPrefix(name, "gemm_sum"):
				case strings.HasPrefix(name, "gemm"):
					products++
				case strings.HasPrefix(name, "head"):
					rows++
				}
			}
			if rows != 4 || products != c.products*rows {
				t.Errorf("%s of %s: %d products of %d chunks", c.flag, dt, products, rows)
			}
		}
	}
}
