package nn

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor"
)

// TestRanges: the Forward of every layer is a range under the layer's path, which ends where it began, and what it launches
// is attributed to it, in Backward too; what follows is not.
func TestRanges(t *testing.T) {
	env := freshEnv(t)
	m := &struct {
		Body Sequential `nn:"body"`
		Head *Attention `nn:"head"`
	}{Sequential{Flatten{}, NewLinear(env, 6, 8), ReLU{}, NewLayerNorm(env, 8), Sequential{NewLinear(env, 8, 8), Tanh{}}}, NewAttention(env, 8, AttentionConfig{Heads: 2})}
	for range Params(m) { // tells the parameters their paths
	}
	run := func() *tensor.Tensor {
		x := m.Body.Forward(env.Ones(4, 2, 3))
		return m.Head.Forward(x.Reshape(1, 4, 8)).Square().Sum()
	}
	want := run().Item()
	var began, open []string
	work := map[string]map[bool]int{}
	stop := env.Device().Observe(func(e *device.Event) {
		name := ""
		if e.Range != nil {
			name = e.Range.Name
		}
		switch {
		case e.Kind == device.KindLaunch:
			if work[name] == nil {
				work[name] = map[bool]int{}
			}
			work[name][e.Backward]++
		case e.End:
			if len(open) == 0 || open[len(open)-1] != name {
				t.Errorf("%s ends in %v", name, open)
			}
			open = open[:len(open)-1]
		default:
			began, open = append(began, name), append(open, name)
		}
	}, device.KindLaunch, device.KindRange)
	loss := run()
	loss.Backward()
	stop()
	if got := loss.Item(); got != want {
		t.Errorf("the loss is %v under observation, else %v", got, want)
	}
	paths := []string{"body.0", "body.1", "body.2", "body.3", "body.4", "body.4.0", "body.4.1", "head", "head.c_attn", "head.c_proj"}
	if !slices.Equal(began, paths) || len(open) > 0 {
		t.Errorf("ranges %v, want %v; %v are open", began, paths, open)
	}
	for _, path := range []string{"body.1", "body.2", "body.3", "body.4.0", "body.4.1", "head", "head.c_attn", "head.c_proj"} {
		if work[path][false] == 0 || work[path][true] == 0 {
			t.Errorf("%s has launched %d forward, %d backward", path, work[path][false], work[path][true])
		}
	}
	if work[""][false] == 0 {
		t.Error("the loss is attributed to a layer")
	}
}

// TestSummariesBesideOthers: a summary sees its own run of a model only.
func TestSummariesBesideOthers(t *testing.T) {
	env := freshEnv(t)
	m := Sequential{NewLinear(env, 3, 4), ReLU{}, NewLinear(env, 4, 2)}
	want := fmt.Sprint(Summary(m, 5, 3))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				if got := fmt.Sprint(Summary(m, 5, 3)); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			}
		})
		wg.Go(func() {
			for range 50 {
				m.Forward(env.Ones(7, 3))
			}
		})
	}
	wg.Wait()
}
