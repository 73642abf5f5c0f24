package tensor_test

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

// TestEinsumRefuses equations that say nothing, or not enough.
func TestEinsumRefuses(t *testing.T) {
	env := open(t)
	x, y := env.Ones(2, 3), env.Ones(4, 5)
	for _, c := range []struct {
		equation, want string
		in             []*tensor.Tensor
	}{
		{"ij,jk->ik", "sizes 3 and 4", []*tensor.Tensor{x, y}},
		{"ij,jk->ik", "2 operands, and 1 are given", []*tensor.Tensor{x}},
		{"i->i", "for 2 dimensions", []*tensor.Tensor{x}},
		{"ijk->i", "for 2 dimensions", []*tensor.Tensor{x}},
		{"ij->ik", `has "k"`, []*tensor.Tensor{x}},
		{"ij->ii", `has "i"`, []*tensor.Tensor{x}},
		{"i1->i", `"i1"`, []*tensor.Tensor{x}},
		{"ij->i.", `"i."`, []*tensor.Tensor{x}},
		{"", "no operands", nil},
	} {
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor { return tensor.Einsum(c.equation, c.in...) })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.equation, err, c.want)
		}
	}
}
