package train

import (
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// TestParamsLeaveNothing: parameters that became bfloat16 are all that is left of it, without a collection.
func TestParamsLeaveNothing(t *testing.T) {
	env, err := tensor.Fresh(testutil.Device())
	if err != nil {
		t.Fatal(err)
	}
	m := nn.Sequential{nn.NewLinear(env, 40, 30), nn.NewLayerNorm(env, 30)}
	ParamsBF16.put(m)
	want := int64(0)
	for _, p := range nn.Params(m) {
		want += p.Bytes()
		if narrow := p.DType() == dtype.BF16; narrow != (p.Rank() > 1) {
			t.Errorf("%s%v", p.DType(), p.Shape())
		}
	}
	if got := env.Device().Memory().Used; got != want {
		t.Errorf("%d bytes are held, and parameters are %d", got, want)
	}
}
