package tensor_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// keptOtherwise are the operations that keep other bytes than PyTorch's, with how many more, and why.
var keptOtherwise = map[string]struct {
	more   int64
	reason string
}{
	"attention":                        {-112, "a sum of exponentials for each of 4 rows, without PyTorch's padding to 32"},
	"binary_cross_entropy_with_logits": {144, "made of operations, which keep a mask, a difference and an exponential; PyTorch's has a kernel of its own"},
	"cross_entropy":                    {-32, "the largest logit and the sum of exponentials of each row, in place of the logarithms of all probabilities"},
	"dropout":                          {-16, "the mask is drawn again"},
	"linear_cross_entropy":             {64, "both gradients, in place of the logarithms of all probabilities; logits are not kept"},
	"logsumexp":                        {68, "made of operations, which keep the exponentials, and which rows are -Inf alone"},
	"mse_loss":                         {64, "made of operations, which keep the difference"},
	"norm":                             {1, "a bool that tells a sum of zero"},
	"prod":                             {-16, "the product is computed again"},
	"self_attention":                   {80, "queries, keys and values packed into one value here, where PyTorch has one operand thrice; less the padding"},
	"softsign":                         {-64, "from the operand; PyTorch's keeps the denominator"},
	"var":                              {64, "made of operations, which keep the difference from the mean"},
}

// TestKeptIsPyTorchs compares the bytes that each operation keeps for its gradient, but for operands, with the storages that
// PyTorch's keeps on a card. Each difference has a reason.
func TestKeptIsPyTorchs(t *testing.T) {
	raw, err := os.ReadFile("testdata/kept.txt")
	if err != nil {
		t.Fatal(err)
	}
	env, err := tensor.Fresh("null:h100-80")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		var name string
		var want int64
		if n, _ := fmt.Sscan(line, &name, &want); n != 2 {
			continue
		}
		f := autocast[name]
		if f == nil {
			t.Errorf("nothing is called for %s", name)
			continue
		}
		told[name] = true
		if got, differs := keptBy(env, f), keptOtherwise[name]; got != want+differs.more {
			t.Errorf("%s keeps %d bytes, PyTorch's %d, which is to differ by %d", name, got, want, differs.more)
		}
	}
	for name, differs := range keptOtherwise {
		if !told[name] || differs.more == 0 || differs.reason == "" {
			t.Errorf("%s: %+v is no difference", name, differs)
		}
	}
}

// keptBy is what an operation keeps on two operands that are parameters.
func keptBy(env *tensor.Env, f func(x, y *tensor.Tensor) *tensor.Tensor) (bytes int64) {
	e, scope := env.Scope()
	defer scope.End()
	x, y := nn.NewParam(e.Ones(4, 4)), nn.NewParam(e.Ones(4, 4))
	kept := func() (n int64) {
		e.Device().Inventory(func(all *tensor.Inventory) {
			for _, v := range all.Values {
				if v.Held && v.Label != device.LabelParameter {
					n += v.Bytes
				}
			}
		})
		return n
	}
	before := kept()
	f(x, y)
	return kept() - before
}
